"""The names that people choose from, with what a page says about each; free of JAX, so that forms stay light."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class Term:
    """One choice: the name used in specs, a title for people, a formula or one-line explanation."""

    name: str
    title: str
    formula: str


AnyTerm = TypeVar("AnyTerm", bound=Term)
VOCABULARIES: list[Mapping[str, Term]] = []  # every table, in the order of their making


def table(*terms: AnyTerm) -> dict[str, AnyTerm]:
    """Name → term, known to forms and URLs from now on."""
    made = {term.name: term for term in terms}
    VOCABULARIES.append(made)
    return made


LOSSES = table(
    Term("square", "square loss", "(1/2n) Σ ‖φ(f) − y‖²"),
    Term("cross-entropy", "cross-entropy", "−(1/n) Σ log softmax(f) · y"),
    Term("logistic", "logistic loss", "(1/n) Σ log(1 + e^(−y f)), y = ±1"),
)

OPTIMIZERS = table(
    Term("gradient-descent", "gradient descent", "w ← w − η ∇L(w), all samples in each step"),
    Term("sgd", "SGD", "w ← w − η ∇L_B(w), B a batch; every sample once an epoch"),
    Term("momentum", "momentum", "v ← μ v + ∇L(w), w ← w − η v"),
    Term("adam", "Adam", "steps of about η for each weight, whatever its gradient"),
)

METHODS = table(
    OPTIMIZERS["gradient-descent"],
    Term("large-rate", "large rate", "gradient descent, η at 3.6 times: 0.9 of the stable rate when η is auto"),
    Term("beyond-stable", "beyond the stable rate", "gradient descent, η at 6 times: 1.5 of the stable rate"),
    OPTIMIZERS["sgd"],
    OPTIMIZERS["momentum"],
    OPTIMIZERS["adam"],
)

ARCHITECTURES = table(
    Term("fully-connected", "fully connected", "α⁽ˡ⁾ = σ(W α⁽ˡ⁻¹⁾ / √m + b)"),
    Term("bottleneck", "bottleneck", "fully connected, one hidden layer narrow"),
    Term("resnet", "ResNet", "α⁽ˡ⁾ = σ(z⁽ˡ⁾) + α⁽ˡ⁻¹⁾"),
    Term("densenet", "DenseNet", "every layer sees all layers below it; edges may be dropped"),
    Term("convnet", "CNN", "convolutions, then a readout; the width is the number of channels"),
    Term("mixed", "mixed", "one convolution, then dense layers; the width counts channels and neurons"),
    Term("composed", "your own layers", "registered layers in the order in which you write them"),
)

DATASETS = table(
    Term("gaussian-mixture", "Gaussian mixture", "label y uniform, x ~ N(μ_y, s² I), |μ_y| = 2; our choice of law"),
    Term("sine", "sine curve", "y = sin 2x + s ε with x uniform on [−2, 2]; no classes; our choice of law"),
    Term("mnist", "MNIST", "handwritten digits, 28 × 28"),
    Term("fashion-mnist", "Fashion-MNIST", "clothing, 28 × 28"),
    Term("cifar2", "CIFAR-2", "cats and horses of CIFAR-10, in color"),
    Term("digits", "digits", "MNIST averaged to 7 × 7"),
    Term("upload", "your data", "what you brought on the page Your data: a table, arrays or images"),
)
