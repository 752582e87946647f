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


ARCHITECTURES = table(
    Term("fully-connected", "fully connected", "α⁽ˡ⁾ = σ(W α⁽ˡ⁻¹⁾ / √m + b)"),
    Term("bottleneck", "with a bottleneck", "fully connected, one hidden layer narrow"),
    Term("resnet", "ResNet", "α⁽ˡ⁾ = σ(z⁽ˡ⁾) + α⁽ˡ⁻¹⁾"),
    Term("densenet", "DenseNet", "every layer sees all layers below it; edges may be dropped"),
    Term("convnet", "ConvNet", "convolutions, then a readout; the width is the number of channels"),
    Term("mixed", "convolution, then dense", "one convolution, then dense layers"),
    Term("composed", "your own layers", "registered layers in the order in which you write them"),
)

HESSIAN_NETWORKS = table(
    Term("linear", "linear output", "fully connected, the output layer linear"),
    Term("nonlinear-output", "nonlinear output", "the same network with a nonlinear output φ(f)"),
    Term("bottleneck", "bottleneck", "fully connected, a narrow layer between wide ones, linear output"),
    Term("resnet", "ResNet", "α⁽ˡ⁾ = σ(z⁽ˡ⁾) + α⁽ˡ⁻¹⁾, linear output"),
    Term("resnet-nonlinear-output", "ResNet, nonlinear output", "the ResNet with φ"),
    Term("densenet", "DenseNet", "every layer sees all layers below it, linear output"),
    Term("convnet", "CNN", "convolutions, flattened, linear output; the width is the number of channels"),
    Term("convnet-nonlinear-output", "CNN, nonlinear output", "the CNN with φ"),
    Term("convnet-bottleneck", "CNN, bottleneck", "the CNN with a convolution of few channels between wide ones"),
    Term("mixed", "mixed", "one convolution, then dense layers, linear output; the width counts channels and neurons"),
    Term("mixed-nonlinear-output", "mixed, nonlinear output", "the mixed network with φ"),
    Term("mixed-bottleneck", "mixed, bottleneck", "one convolution, a narrow dense layer, then wide ones"),
    Term("shallow", "shallow, diagonal", "f = Σ v_i σ(w_i x)/√m with v = ±1 fixed and scalar x = 1: H is diagonal"),
    Term(
        "quadratic-bottleneck",
        "quadratic bottleneck",
        "f = vᵀσ(w₃ w₂ᵀσ(w₁x)/√m)/√m with σ(z) = z²/2 and scalar x = 1: a bottleneck of one neuron",
    ),
    Term("composed", "your own layers", "registered layers in the order in which you write them, linear output"),
    Term("composed-nonlinear-output", "your own layers, nonlinear output", "your own layers with φ"),
)
