"""Activation and output functions by name.

Pointwise functions act on pre-activations z of any shape; output functions act on the last axis of pre-outputs
f of shape (n, C).
"""

from collections.abc import Callable

import jax
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks.choices import ACTIVATIONS, OUTPUTS

Pointwise = Callable[[Array], Array]


def activation_function(name: str, field: str = "activation") -> Pointwise:
    """The pointwise function σ of that name.

    Raises:
        InvalidInput: for a name that is not in ``ntk_core.networks.choices.ACTIVATIONS``.
    """
    if name not in ACTIVATIONS:
        raise InvalidInput(field, name, "one of " + ", ".join(ACTIVATIONS))
    return ACTIVATIONS[name].apply


def output_function(name: str, field: str = "output") -> Pointwise:
    """The function φ from pre-outputs to outputs, both of shape (n, C); softmax couples the C entries of a row.

    Raises:
        InvalidInput: for a name that is not in ``ntk_core.networks.choices.OUTPUTS``.
    """
    if name not in OUTPUTS:
        raise InvalidInput(field, name, "one of " + ", ".join(OUTPUTS))
    return OUTPUTS[name].apply


def output_jacobian(name: str, f: Array) -> Array:
    """J[i, a, b] = ∂φ_a/∂f_b at row i; shape (n, C, C) from pre-outputs ``f`` of shape (n, C)."""
    return jax.vmap(jax.jacfwd(output_function(name)))(f)
