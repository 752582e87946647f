"""Activations, outputs and parameterizations that people choose from: one entry each; JAX starts when one is used."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ntk_core.settings.vocabulary import Term, table


def _jax() -> Any:
    import jax

    return jax


@dataclass(frozen=True)
class Function(Term):
    """A function σ of pre-activations z of any shape, or φ from pre-outputs f to outputs, both of shape (n, C).

    Attributes:
        apply: the function of an array; entry by entry but for the softmax, which couples the C entries of a row.
        min_slope: the largest ρ with |φ'| ≥ ρ everywhere; 0 where there is none.
        max_slope: the least bound of |φ'| to four digits (for the softmax of the norm of the Jacobian), or infinity.
        smooth: False where the function is linear but for a kink (ReLU and leaky ReLU), so that the Hessian of a
            network built from it exists almost everywhere only, see ``almost_everywhere``.
        negative_slope: s of a function that is z above 0 and s z below; None for any other.
    """

    apply: Callable[[Any], Any]
    min_slope: float
    max_slope: float
    smooth: bool = True
    negative_slope: float | None = None


ACTIVATIONS = table(
    Function(
        "relu", "ReLU", "max(z, 0)", lambda z: _jax().numpy.maximum(z, 0), 0.0, 1.0, smooth=False, negative_slope=0.0
    ),
    Function(
        "leaky_relu",
        "leaky ReLU",
        "max(z, 0.01 z)",
        lambda z: _jax().numpy.where(z > 0, z, 0.01 * z),
        min_slope=0.01,
        max_slope=1.0,
        smooth=False,
        negative_slope=0.01,
    ),
    Function("tanh", "tanh", "tanh z", lambda z: _jax().numpy.tanh(z), 0.0, 1.0),
    Function("erf", "erf", "erf z", lambda z: _jax().scipy.special.erf(z), 0.0, 2 / math.sqrt(math.pi)),
    Function("sigmoid", "sigmoid", "1 / (1 + e⁻ᶻ)", lambda z: _jax().nn.sigmoid(z), 0.0, 0.25),
    Function("softplus", "softplus", "log(1 + eᶻ)", lambda z: _jax().nn.softplus(z), 0.0, 1.0),
    Function("swish", "swish", "z · sigmoid(z)", lambda z: _jax().nn.silu(z), 0.0, 1.0998),
    Function(
        "gelu",
        "GELU",
        "z · Φ(z), Φ the normal distribution function",
        lambda z: _jax().nn.gelu(z, approximate=False),
        min_slope=0.0,
        max_slope=1.129,
    ),
    Function("quadratic", "quadratic", "z² / 2", lambda z: 0.5 * z * z, 0.0, math.inf),
    Function("identity", "identity", "z", lambda z: z, 1.0, 1.0, negative_slope=1.0),
)


def _as_output(name: str) -> Function:
    sigma = ACTIVATIONS[name]
    return replace(sigma, title=f"{sigma.title} output", formula=sigma.formula.translate(str.maketrans("zᶻ", "fᶠ")))


# Every activation is an output too, the identity under another name.
_FIRST = (
    replace(ACTIVATIONS["identity"], name="linear", title="linear output", formula="f"),
    Function("softmax", "softmax output", "e^{f_c} / Σ e^{f_k}", lambda f: _jax().nn.softmax(f), 0.0, 0.5),
    _as_output("swish"),
    Function(
        "leaky_softplus",
        "0.2 f + 0.8 softplus(f)",
        "0.2 f + 0.8 log(1 + e^f), slope at least 0.2 everywhere",
        lambda f: 0.2 * f + 0.8 * _jax().nn.softplus(f),
        min_slope=0.2,
        max_slope=1.0,
    ),
)
OUTPUTS = table(*_FIRST, *(_as_output(name) for name in ACTIVATIONS if name not in ("swish", "identity")))

PARAMETERIZATIONS = table(
    Term("ntk", "NTK", "z = W a / √fan_in + b, all W, b ~ N(0, 1)"),
    Term("standard", "standard", "z = W a + b, W ~ N(0, 1/fan_in), b ~ N(0, 1)"),
    Term("lecun", "LeCun (Liu et al., App. A)", "every parameter u = w/√m: u ~ N(0, 1/m), K and ‖H‖ both grow m-fold"),
)


def almost_everywhere(activations: Iterable[str], outputs: Iterable[str] = ()) -> str:
    """What a Hessian misses where one of these functions has a kink (ReLU, leaky ReLU): a sentence, empty for others.

    The identity has none: σ'' = 0 everywhere, and nothing is missed.
    """
    used = [*(ACTIVATIONS[name] for name in activations), *(OUTPUTS[name] for name in outputs)]
    kinked = dict.fromkeys(function.title for function in used if not function.smooth)
    if not kinked:
        return ""
    return (
        f"With {' and '.join(kinked)}, ‖H‖ is that of the almost-everywhere Hessian. Where two or more layers are "
        "trained it is not 0, but the curvature within a layer sits in the kinks, which it misses: ‖H‖R does not bound "
        "how far the kernel moves."
    )
