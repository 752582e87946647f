"""Activation and output functions by name.

Pointwise functions act on pre-activations z of any shape; output functions act on the last axis of pre-outputs
f of shape (n, C).
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.settings.vocabulary import ACTIVATIONS, OUTPUTS

Pointwise = Callable[[Array], Array]


def _quadratic(z: Array) -> Array:
    return 0.5 * z * z


def _identity(z: Array) -> Array:
    return z


def _leaky_softplus(z: Array) -> Array:
    return 0.2 * z + 0.8 * jax.nn.softplus(z)


def _relu(z: Array) -> Array:
    return jnp.maximum(z, 0)


def _leaky_relu(z: Array) -> Array:
    return jnp.where(z > 0, z, 0.01 * z)


def _gelu(z: Array) -> Array:
    return jax.nn.gelu(z, approximate=False)


_POINTWISE: dict[str, Pointwise] = {
    "relu": _relu,
    "leaky_relu": _leaky_relu,
    "tanh": jnp.tanh,
    "erf": jax.scipy.special.erf,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "swish": jax.nn.silu,
    "gelu": _gelu,
    "quadratic": _quadratic,
    "identity": _identity,
    "linear": _identity,
    "leaky_softplus": _leaky_softplus,
}


def activation_function(name: str, field: str = "activation") -> Pointwise:
    """The pointwise function σ of that name.

    Raises:
        InvalidInput: for a name that is not in ``ntk_core.settings.vocabulary.ACTIVATIONS``.
    """
    if name not in ACTIVATIONS:
        raise InvalidInput(field, name, "one of " + ", ".join(ACTIVATIONS))
    return _POINTWISE[name]


def output_function(name: str, field: str = "output") -> Pointwise:
    """The function φ from pre-outputs to outputs, both of shape (n, C); softmax couples the C entries of a row.

    Raises:
        InvalidInput: for a name that is not in ``ntk_core.settings.vocabulary.OUTPUTS``.
    """
    if name == "softmax":
        return jax.nn.softmax
    if name not in OUTPUTS:
        raise InvalidInput(field, name, "one of " + ", ".join(OUTPUTS))
    return _POINTWISE[name]


def output_jacobian(name: str, f: Array) -> Array:
    """J[i, a, b] = ∂φ_a/∂f_b at row i; shape (n, C, C) from pre-outputs ``f`` of shape (n, C)."""
    return jax.vmap(jax.jacfwd(output_function(name)))(f)
