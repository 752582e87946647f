"""Settings of networks: activations, output functions and checks.

Activations are given by name or as functions, all others by name.

Pointwise functions act on pre-activations z of any shape; output functions act on the last axis of
pre-outputs f of shape (n, C).
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.errors import InvalidInput, check_choice, kind_of, reason_of
from ntk_core.networks.choices import ACTIVATIONS, ALIASES, KINKED, OUTPUTS, Function

Pointwise = Callable[[Array], Array]
Activation = str | Pointwise
REACH = 10.0  # inputs on which a function must be finite
# Where slopes are compared: densely where activations bend, and far outside.
GRID = np.concatenate([np.linspace(-30, 30, 60_001), np.linspace(-1e4, 1e4, 2_000)])
MAX_WIDTH = 10_000_000
PADDINGS = ("circular", "zero")


def activation_of(given: Activation, field: str = "activation") -> Function:
    """Return properties of an activation.

    It is given by name or as an elementwise function, finite and differentiable.
    """
    if isinstance(given, str) and (name := ALIASES.get(given, given)) in ACTIVATIONS:
        return ACTIVATIONS[name]
    if isinstance(given, str) and given in KINKED:
        return _described(getattr(jax.nn, given))
    if isinstance(given, str) or not callable(given):
        allowed = (
            "one of "
            + ", ".join([*ACTIVATIONS, *ALIASES, *KINKED])
            + ", or an elementwise JAX function"
        )
        raise InvalidInput(field, given, allowed)
    problem = _problem(given)
    if problem is not None:
        raise InvalidInput(
            field,
            f"{kind_of(given)}, {problem}",
            "a name, or an elementwise function of one JAX array",
        )
    return _described(given)


def activation_function(given: Activation, field: str = "activation") -> Pointwise:
    """Return the pointwise function σ of that name, or the function itself."""
    return activation_of(given, field).apply


@lru_cache(maxsize=256)
def _problem(function: Pointwise) -> str | None:
    """Why it is not an elementwise function; None if it is."""
    z = np.random.default_rng(0).uniform(-REACH, REACH, (4, 5))
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        try:
            together = np.asarray(function(jnp.asarray(z)))
            alone = np.asarray(jax.vmap(function)(jnp.asarray(z).ravel())).reshape(z.shape)
            slopes = np.asarray(jax.vmap(jax.grad(function))(jnp.asarray(z).ravel()))
        except Exception as error:  # any error of a function that does not take one array
            return f"which fails on an array, a number or its derivative ({reason_of(error)})"
    if together.shape != z.shape or not np.allclose(
        together, alone, rtol=1e-9, atol=1e-12, equal_nan=True
    ):
        return "which mixes the entries of an array"
    if not (np.isfinite(together).all() and np.isfinite(slopes).all()):
        return f"which is not finite everywhere from {-REACH:g} to {REACH:g}"
    return None


@lru_cache(maxsize=256)
def _described(function: Pointwise) -> Function:
    """Properties of a function, from its values."""
    name = kind_of(function)
    z = GRID[np.abs(GRID) <= REACH]
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        values = np.asarray(function(jnp.asarray(z)))
        negative = -float(function(jnp.asarray(-1.0)))
        erf = np.asarray(jax.scipy.special.erf(jnp.asarray(z)))
        kinks = slope_jumps(function)
    if np.allclose(values, erf, rtol=1e-12, atol=1e-14):
        return ACTIVATIONS["erf"]
    straight = np.allclose(values, np.where(z > 0, z, negative * z), rtol=1e-12, atol=1e-14)
    smooth = not kinks[0]
    return Function(
        name, name, "σ(z)", function, smooth=smooth, negative_slope=negative if straight else None
    )


@lru_cache(maxsize=256)
def slope_jumps(function: Pointwise) -> tuple[bool, bool]:
    """Whether the first and the second derivative jump at 0."""
    found = []
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        derivative = function
        for _ in range(2):
            derivative = jax.grad(derivative)
            below, above = (float(derivative(jnp.asarray(z))) for z in (-1e-7, 1e-7))
            found.append(abs(above - below) > 1e-5 * max(1.0, abs(above), abs(below)))
    return found[0], found[1]


@lru_cache(maxsize=256)
def largest_slope(function: Function) -> float:
    """Return the least bound of |φ'|, to four digits; infinite if |φ'| grows without bound.

    For a function that is not elementwise: the stated bound of its Jacobian.
    """
    if function.bound is not None:
        return function.bound
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        slopes = np.abs(np.asarray(jax.vmap(jax.grad(function.apply))(jnp.asarray(GRID))))
    inside = np.abs(GRID) <= 1e3
    largest = float(slopes[inside].max())
    return largest if slopes.max() <= largest * (1 + 1e-3) else float("inf")


def output_function(name: str, field: str = "output") -> Pointwise:
    """Return the function φ from pre-outputs to outputs, (n, C) both.

    Softmax couples the C entries of a row.
    """
    check_choice(field, name, OUTPUTS)
    return OUTPUTS[name].apply


def output_jacobian(name: str, f: Array) -> Array:
    """J[i, a, b] = ∂φ_a/∂f_b at row i; shape (n, C, C) from pre-outputs ``f`` of shape (n, C)."""
    return jax.vmap(jax.jacfwd(output_function(name)))(f)


def check_count(field: str, given: object, highest: int, lowest: int = 1) -> int:
    """``given`` as an integer in [lowest, highest], else InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, int) or not lowest <= given <= highest:
        raise InvalidInput(field, given, f"an integer from {lowest:,} to {highest:,}")
    return given


def check_switch(field: str, given: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(given, bool):
        raise InvalidInput(field, given, "True or False")


def check_drop_probability(given: object) -> None:
    """Refuse a probability outside [0, 1)."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1:
        raise InvalidInput("drop_probability", given, "a number from 0 up to, but not including, 1")


def _check_exponent(field: str, given: float) -> None:
    if not 0 <= given <= 1:
        raise InvalidInput(field, given, "a number from 0 to 1")


_CHOICES = {
    "base": ("fully-connected", "bottleneck", "resnet", "densenet"),
    "normalization": ("none", "plain", "gains"),
    "padding": PADDINGS,
    "positions": ("none", "fixed", "learned"),
    "readout": ("flatten", "global-average"),
    "token_readout": ("mean", "first"),
    "trained": ("all", "first", "hidden", "last"),
}
_LARGEST = {
    **dict.fromkeys(("bottleneck_width", "adapter_rank", "num_heads", "head_dim"), MAX_WIDTH),
    **{
        "depth": 64,
        "num_blocks": 64,
        "num_outputs": 10_000,
        "kernel_size": 1024,
        "pool_size": 1024,
    },
    **{"dimensions": 2, "skip_every": 2},
}
# Setting of a network → check of (its name, its value); each network checks relations between its
# settings.
CHECKS: dict[str, Callable[[str, Any], object]] = {
    **{name: partial(check_choice, allowed=names) for name, names in _CHOICES.items()},
    **{name: partial(check_count, highest=most) for name, most in _LARGEST.items()},
    **dict.fromkeys(("causal", "output_signs", "symmetric"), check_switch),
    **dict.fromkeys(("score_exponent", "rank_exponent"), _check_exponent),
    "activation": lambda field, given: activation_function(given, field),
    "drop_probability": lambda _, given: check_drop_probability(given),
    "output": lambda field, given: output_function(given, field),
}


def hidden_widths(width: int | tuple[int, ...], depth: int) -> tuple[int, ...]:
    """Return one width per hidden layer, from one number or a tuple of ``depth`` numbers."""
    if isinstance(width, tuple):
        if len(width) != depth:
            raise InvalidInput(
                "width",
                width,
                f"one integer, or a tuple of {depth} integers (one per hidden layer)",
            )
        return tuple(check_count("width", each, MAX_WIDTH) for each in width)
    return (check_count("width", width, MAX_WIDTH),) * depth


def hidden_biases(use_bias: bool | tuple[bool, ...], depth: int) -> tuple[bool, ...]:
    """Return one switch per hidden layer, from one switch or a tuple of ``depth`` switches."""
    if isinstance(use_bias, tuple):
        if len(use_bias) != depth:
            raise InvalidInput(
                "use_bias", use_bias, f"True, False, or {depth} of them (one per hidden layer)"
            )
        for each in use_bias:
            check_switch("use_bias", each)
        return use_bias
    check_switch("use_bias", use_bias)
    return (use_bias,) * depth
