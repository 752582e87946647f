"""What a model of one's own has to be: ``model(width, key)`` gives ``(apply, params)``, with ``apply(params, x)``."""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.own_models._torch import from_torch

Apply = Callable[[Any, Array], Array]
OwnModel = Callable[[int, Array], tuple[Apply, Any]]
CONTRACT = "a function of (width, key) that returns (apply, params), with apply(params, x) of shape (n, C)"
# A torch.nn.Module in place of (apply, params) will do, and its weights then follow the key.


def checked_model(model: OwnModel, width: int, key: Array, x: Array, num_outputs: int) -> tuple[Apply, Any]:
    """(apply, params) of this width and key, with outputs of the right shape; nothing but shapes is computed of apply.

    Raises:
        InvalidInput: field ``model``, what it gives and what it has to give. Errors inside the model are its own.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(int(jax.random.bits(key)))
    made = model(width, key)
    if hasattr(made, "named_parameters") and hasattr(made, "state_dict"):
        made = from_torch(made, np.asarray(x))
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0])):
        raise InvalidInput("model", f"a model that returns {_kind(made)}", CONTRACT)
    apply, params = made
    leaves = jax.tree.leaves(params)
    if not any(hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves):
        raise InvalidInput("model", f"params with {len(leaves)} leaves, none of floats", "a tree with arrays of floats")
    found = jax.eval_shape(apply, params, x)
    shape: Any = getattr(found, "shape", None)
    if shape != (x.shape[0], num_outputs):
        given = f"outputs of shape {shape}" if shape is not None else f"outputs of type {_kind(found)}"
        raise InvalidInput("model", given, f"shape {(x.shape[0], num_outputs)} for inputs of shape {x.shape}")
    if not jnp.issubdtype(found.dtype, jnp.floating):
        raise InvalidInput("model", f"outputs of type {found.dtype}", "real floats")
    return apply, params


def _kind(value: Any) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
