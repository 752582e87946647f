"""Activations, outputs, parameterizations and sizes to choose from; JAX starts on first use."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from ntk_core.terms import Term, table

if TYPE_CHECKING:
    from jax import Array


def _jax() -> ModuleType:
    import jax

    return jax


@dataclass(frozen=True)
class Function(Term):
    """An activation σ, or an output function φ.

    σ acts on pre-activations z of any shape, φ maps pre-outputs f to outputs, both of shape (n, C).

    Attributes:
        apply: function of an array; elementwise except softmax, which couples the C entries of a
            row.
        min_slope: the largest ρ with |φ'| ≥ ρ everywhere; 0 if there is none.
        bound: bound of the Jacobian's norm if the function is not elementwise; else None.
        smooth: False if the function has a kink (ReLU): Hessians then exist only almost everywhere,
            see ``almost_everywhere``.
        negative_slope: s of a function that is z above 0 and s z below; else None.
        values: infimum and supremum of the values.
        is_output: whether an activation is also an output φ.
        live: where *Live* offers it; its function is in
            ``linearity_lab/dashboard/live/functions.js``.
    """

    apply: "Callable[[Array], Array]"
    min_slope: float = 0.0
    bound: float | None = None
    smooth: bool = True
    negative_slope: float | None = None
    values: tuple[float, float] = (-math.inf, math.inf)
    is_output: bool = False
    live: tuple[Literal["activation", "output"], ...] = ()


# Slopes and moments follow from `apply`.
ACTIVATIONS = table(
    Function(
        "relu",
        "ReLU",
        "max(z, 0)",
        lambda z: _jax().numpy.maximum(z, 0),
        smooth=False,
        negative_slope=0.0,
        values=(0, math.inf),
        is_output=True,
        live=("activation",),
    ),
    Function(
        "leaky_relu",
        "leaky ReLU",
        "max(z, 0.01 z)",
        lambda z: _jax().numpy.where(z > 0, z, 0.01 * z),
        min_slope=0.01,
        smooth=False,
        negative_slope=0.01,
        is_output=True,
    ),
    Function(
        "tanh",
        "tanh",
        "tanh z",
        lambda z: _jax().numpy.tanh(z),
        values=(-1, 1),
        is_output=True,
        live=("activation", "output"),
    ),
    Function(
        "erf",
        "erf",
        "erf z",
        lambda z: _jax().scipy.special.erf(z),
        values=(-1, 1),
        is_output=True,
        live=("activation",),
    ),
    Function(
        "sigmoid",
        "sigmoid",
        "1 / (1 + e⁻ᶻ)",
        lambda z: _jax().nn.sigmoid(z),
        values=(0, 1),
        is_output=True,
    ),
    Function(
        "softplus",
        "softplus",
        "log(1 + eᶻ)",
        lambda z: _jax().nn.softplus(z),
        values=(0, math.inf),
        is_output=True,
    ),
    Function(
        "log_sigmoid",
        "log sigmoid",
        "−log(1 + e⁻ᶻ)",
        lambda z: _jax().nn.log_sigmoid(z),
        values=(-math.inf, 0),
    ),
    Function(
        "squareplus",
        "squareplus",
        "(z + √(z² + 4)) / 2",
        lambda z: _jax().nn.squareplus(z),
        values=(0, math.inf),
    ),
    Function(
        "swish",
        "swish",
        "z · sigmoid(z)",
        lambda z: _jax().nn.silu(z),
        values=(-0.2785, math.inf),
        is_output=True,
        live=("activation", "output"),
    ),
    Function(
        "gelu",
        "GELU",
        "z · Φ(z), Φ the normal distribution function",
        lambda z: _jax().nn.gelu(z, approximate=False),
        values=(-0.17, math.inf),
        is_output=True,
        live=("activation",),
    ),
    Function(
        "quadratic",
        "quadratic",
        "z² / 2",
        lambda z: 0.5 * z * z,
        values=(0, math.inf),
        is_output=True,
    ),
    Function(
        "identity",
        "identity",
        "z",
        lambda z: z,
        min_slope=1.0,
        negative_slope=1.0,
    ),
    Function(
        "elu",
        "ELU",
        "z above 0, eᶻ − 1 below",
        lambda z: _jax().nn.elu(z),
        values=(-1, math.inf),
    ),
    Function(
        "selu",
        "SELU",
        "1.0507 z above 0, 1.7581 (eᶻ − 1) below",
        lambda z: _jax().nn.selu(z),
        smooth=False,
        values=(-1.7581, math.inf),
    ),
    Function(
        "mish",
        "mish",
        "z · tanh(log(1 + eᶻ))",
        lambda z: _jax().nn.mish(z),
        values=(-0.3089, math.inf),
    ),
    Function(
        "softsign",
        "softsign",
        "z / (1 + |z|)",
        lambda z: _jax().nn.soft_sign(z),
        values=(-1, 1),
    ),
    Function(
        "arctan",
        "arctan",
        "arctan z",
        lambda z: _jax().numpy.arctan(z),
        values=(-math.pi / 2, math.pi / 2),
    ),
    Function(
        "sin",
        "sin",
        "sin z",
        lambda z: _jax().numpy.sin(z),
        values=(-1, 1),
    ),
    Function(
        "cos",
        "cos",
        "cos z",
        lambda z: _jax().numpy.cos(z),
        values=(-1, 1),
    ),
    Function(
        "abs",
        "|z|",
        "|z|",
        lambda z: _jax().numpy.abs(z),
        min_slope=1.0,
        smooth=False,
        negative_slope=-1.0,
        values=(0, math.inf),
    ),
)
SAME = Term("same", "same as the other layers", "σ of the other layers")
# Sizes that a spec can sweep or let grow with m.
SIZES = table(
    Term("width", "width m", "neurons of each hidden layer"),
    Term("bottleneck_width", "bottleneck width", "neurons of the narrow layer"),
    Term("input_dim", "input dimension d", "numbers in one input"),
    Term("num_tokens", "number of tokens T", "positions of a sequence"),
    Term("head_dim", "head dimension d", "entries of queries, keys and values"),
    Term("num_heads", "number of heads H", "heads of each attention layer"),
    Term("mlp_width", "width of the MLPs", "hidden neurons of each MLP"),
)
# Further names of the same functions.
ALIASES = {
    "silu": "swish",
    "celu": "elu",
    "soft_sign": "softsign",
}
# Functions of jax.nn with kinks away from 0, whose infinite-width kernels are inexact: not
# in specs and forms.
KINKED = (
    "relu6",
    "hard_tanh",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "sparse_plus",
    "sparse_sigmoid",
)


def _as_output(sigma: Function) -> Function:
    return replace(
        sigma,
        title=f"{sigma.title} output",
        formula=sigma.formula.translate(str.maketrans("zᶻ", "fᶠ")),
    )


# The first outputs of the papers, then the other activations that are also outputs.
_FIRST = (
    # The identity is called linear.
    replace(
        ACTIVATIONS["identity"],
        name="linear",
        title="linear output",
        formula="f",
        live=("output",),
    ),
    Function(
        "softmax",
        "softmax output",
        "e^{f_c} / Σ e^{f_k}",
        lambda f: _jax().nn.softmax(f),
        bound=0.5,
        values=(0, 1),
    ),
    _as_output(ACTIVATIONS["swish"]),
    Function(
        "leaky_softplus",
        "0.2 f + 0.8 softplus(f)",
        "0.2 f + 0.8 log(1 + e^f), slope at least 0.2 everywhere",
        lambda f: 0.2 * f + 0.8 * _jax().nn.softplus(f),
        min_slope=0.2,
    ),
)
_NAMES = {function.name for function in _FIRST}
_OTHERS = [sigma for sigma in ACTIVATIONS.values() if sigma.is_output and sigma.name not in _NAMES]
OUTPUTS = table(*_FIRST, *map(_as_output, _OTHERS))


@dataclass(frozen=True)
class SubModel(Term):
    """Small model g that an assembly copies m times, with weights and biases ~ N(0, 1).

    Attributes:
        per_input, others: number of parameters per input coordinate, and of all others.
    """

    per_input: int
    others: int


SUB_MODELS = table(
    SubModel("neurons", "three tanh neurons", "Σₖ uₖ tanh(wₖ·x / √d) / √3", 3, 3),
    SubModel(
        "tree", "soft decision tree", "two levels: Σ leaf · Π σ(±wₖ·x / √d), four leaves", 3, 4
    ),
    SubModel("sines", "product of sines", "sin(w₁·x / √d + b₁) · sin(w₂·x / √d + b₂)", 2, 2),
)

PARAMETERIZATIONS = table(
    Term("ntk", "NTK", "z = W a / √fan_in + b, all W, b ~ N(0, 1)"),
    Term("standard", "standard", "z = W a + b, W ~ N(0, 1/fan_in), b ~ N(0, 1)"),
    Term(
        "lecun",
        "LeCun (Liu et al., App. A)",
        "every parameter u = w/√m: u ~ N(0, 1/m), K and ‖H‖ both grow m-fold",
    ),
)


def almost_everywhere(activations: Iterable[str], outputs: Iterable[str] = ()) -> str:
    """Describe the curvature that Hessians miss at kinks (ReLU, leaky ReLU).

    Empty without kinks.
    """
    used = [*(ACTIVATIONS[name] for name in activations), *(OUTPUTS[name] for name in outputs)]
    kinked = dict.fromkeys(function.title for function in used if not function.smooth)
    if not kinked:
        return ""
    return (
        f"With {' and '.join(kinked)}, ‖H‖ is that of the almost-everywhere Hessian. It is not 0 "
        "if two or more layers are trained. It misses the kinks, which contain the curvature "
        "within a layer, so ‖H‖R does not bound ΔK."
    )
