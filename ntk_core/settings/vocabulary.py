"""The names that people choose from, with what a page says about each; free of JAX, so that forms stay light."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ntk_core.errors import InvalidInput


@dataclass(frozen=True)
class Term:
    """One choice: the name used in specs, a title for people, a formula or one-line explanation.

    Attributes:
        smooth: False where the second derivative vanishes almost everywhere or does not exist, so that Hessian norms
            of a network built from it say nothing (ReLU and leaky ReLU).
        min_slope: for an output φ the largest ρ with |φ'| ≥ ρ everywhere; 0 where there is none.
    """

    name: str
    title: str
    formula: str
    smooth: bool = True
    min_slope: float = 0.0


def _table(*terms: Term) -> dict[str, Term]:
    return {term.name: term for term in terms}


ACTIVATIONS = _table(
    Term("relu", "ReLU", "max(z, 0)", smooth=False),
    Term("leaky_relu", "leaky ReLU", "max(z, 0.01 z)", smooth=False),
    Term("tanh", "tanh", "tanh z"),
    Term("erf", "erf", "erf z"),
    Term("sigmoid", "sigmoid", "1 / (1 + e⁻ᶻ)"),
    Term("softplus", "softplus", "log(1 + eᶻ)"),
    Term("swish", "swish", "z · sigmoid(z)"),
    Term("gelu", "GELU", "z · Φ(z), Φ the normal distribution function"),
    Term("quadratic", "quadratic", "z² / 2"),
    Term("identity", "identity", "z"),
)

OUTPUTS = _table(
    Term("linear", "linear output", "f", min_slope=1.0),
    Term("softmax", "softmax output", "e^{f_c} / Σ e^{f_k}"),
    Term("swish", "swish output", "f · sigmoid(f)"),
    Term(
        "leaky_softplus",
        "0.2 f + 0.8 softplus(f)",
        "0.2 f + 0.8 log(1 + e^f), slope at least 0.2 everywhere",
        min_slope=0.2,
    ),
    Term("sigmoid", "sigmoid output", "1 / (1 + e⁻ᶠ)"),
    Term("tanh", "tanh output", "tanh f"),
    Term("erf", "erf output", "erf f"),
    Term("softplus", "softplus output", "log(1 + eᶠ)"),
    Term("gelu", "GELU output", "f · Φ(f)"),
    Term("quadratic", "quadratic output", "f² / 2"),
    Term("relu", "ReLU output", "max(f, 0)", smooth=False),
    Term("leaky_relu", "leaky ReLU output", "max(f, 0.01 f)", smooth=False, min_slope=0.01),
)

LOSSES = _table(
    Term("square", "square loss", "(1/2n) Σ ‖φ(f) − y‖²"),
    Term("cross-entropy", "cross-entropy", "−(1/n) Σ log softmax(f) · y"),
    Term("logistic", "logistic loss", "(1/n) Σ log(1 + e^(−y f)), y = ±1"),
)

OPTIMIZERS = _table(
    Term("gradient-descent", "gradient descent", "w ← w − η ∇L(w), all samples in each step"),
    Term("sgd", "SGD", "w ← w − η ∇L_B(w), B a batch; every sample once an epoch"),
    Term("momentum", "momentum", "v ← μ v + ∇L(w), w ← w − η v"),
    Term("adam", "Adam", "steps of about η for each weight, whatever its gradient"),
)

METHODS = _table(
    OPTIMIZERS["gradient-descent"],
    Term("large-rate", "large rate", "gradient descent, η at 3.6 times: 0.9 of the stable rate when η is auto"),
    Term("beyond-stable", "beyond the stable rate", "gradient descent, η at 6 times: 1.5 of the stable rate"),
    OPTIMIZERS["sgd"],
    OPTIMIZERS["momentum"],
    OPTIMIZERS["adam"],
)

PARAMETERIZATIONS = _table(
    Term("ntk", "NTK", "z = W a / √fan_in + b, all W, b ~ N(0, 1)"),
    Term("standard", "standard", "z = W a + b, W ~ N(0, 1/fan_in), b ~ N(0, 1)"),
    Term("lecun", "LeCun (Liu et al., App. A)", "every parameter u = w/√m: u ~ N(0, 1/m), K and ‖H‖ both grow m-fold"),
)

ARCHITECTURES = _table(
    Term("fully-connected", "fully connected", "α⁽ˡ⁾ = σ(W α⁽ˡ⁻¹⁾ / √m + b)"),
    Term("bottleneck", "bottleneck", "fully connected, one hidden layer narrow"),
    Term("resnet", "ResNet", "α⁽ˡ⁾ = σ(z⁽ˡ⁾) + α⁽ˡ⁻¹⁾"),
    Term("densenet", "DenseNet", "every layer sees all layers below it; edges may be dropped"),
    Term("convnet", "CNN", "convolutions, then a readout; the width is the number of channels"),
    Term("mixed", "mixed", "one convolution, then dense layers; the width counts channels and neurons"),
    Term("composed", "your own layers", "registered layers in the order in which you write them"),
)

DATASETS = _table(
    Term("gaussian-mixture", "Gaussian mixture", "label y uniform, x ~ N(μ_y, s² I), |μ_y| = 2; our choice of law"),
    Term("sine", "sine curve", "y = sin 2x + s ε with x uniform on [−2, 2]; no classes; our choice of law"),
    Term("mnist", "MNIST", "handwritten digits, 28 × 28"),
    Term("fashion-mnist", "Fashion-MNIST", "clothing, 28 × 28"),
    Term("cifar2", "CIFAR-2", "cats and horses of CIFAR-10, in color"),
    Term("digits", "digits", "MNIST averaged to 7 × 7"),
    Term("upload", "your data", "what you brought on the page Your data: a table, arrays or images"),
)


def network_title(kind: str, output: str = "linear") -> str:
    """``softmax output`` of a fully connected network; else ``ResNet``, or ``CNN, bottleneck, softmax output``.

    Args:
        kind: an architecture, followed by ``-bottleneck`` where one of its layers is narrow.
    """
    if kind == "fully-connected":
        return OUTPUTS[output].title
    plain = kind.removesuffix("-bottleneck")
    said = [ARCHITECTURES[plain].title, *(["bottleneck"] if plain != kind else [])]
    return ", ".join([*said, *([] if output == "linear" else [OUTPUTS[output].title])])


def check_second_derivative(field: str, name: str, table: Mapping[str, Term]) -> None:
    """Refuse a choice of ``table`` whose Hessian says nothing, and name those that are smooth.

    Raises:
        InvalidInput: for ReLU and leaky ReLU.
    """
    if table[name].smooth:
        return
    smooth = ", ".join(term.name for term in table.values() if term.smooth and term.name not in ("identity", "linear"))
    raise InvalidInput(
        field,
        name,
        f"a smooth function ({smooth}), since the second derivative of {table[name].title} is 0 almost everywhere and "
        "missing at its kink, so that its Hessian says nothing",
    )
