"""Custom models against width.

``model(width, key)`` returns ``(apply, params)``, checked before use.
"""

import sys
from collections.abc import Callable

import jax
import numpy as np
from jax import Array
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.kernels import as_function
from ntk_core.networks.architectures import check_key
from ntk_core.torch import from_torch
from ntk_core.traced import Apply, ModelFails, Trainable, accepted, restricted
from ntk_core.usual_settings import with_usual_settings

OwnModel = Callable[[int, Array], tuple[Apply, PyTree]]
CONTRACT = (
    "a function of (width, key) that returns (apply, params), with apply(params, x) of "
    "shape (n, C) or (n,)"
)
# A torch.nn.Module may replace (apply, params); its weights then follow the key.


@with_usual_settings
def checked_own_model(
    model: OwnModel,
    width: int,
    key: Array,
    x: PyTree,
    num_outputs: int,
    trainable: Trainable = None,
) -> tuple[Apply, PyTree]:
    """Return (apply, params) of this width and key after checking outputs."""
    check_key(key)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(int(jax.random.bits(key)))
    made = model(width, key)
    if hasattr(made, "named_parameters") and hasattr(made, "state_dict"):
        made = from_torch(made, np.asarray(x))
    if not (isinstance(made, tuple) and len(made) == 2 and callable(made[0])):
        raise InvalidInput("model", f"a model that returns {kind_of(made)}", CONTRACT)
    apply, params = made
    try:
        found = accepted(restricted(apply, params, trainable), params, x)
    except ModelFails:
        raise
    except InvalidInput as error:
        raise InvalidInput(
            "model" if error.field == "net" else error.field, error.given, error.allowed
        ) from None
    if found.num_outputs != num_outputs:
        labels = (
            "as many as targets have; class labels become targets by jax.nn.one_hot(y, "
            f"{found.num_outputs})"
        )
        raise InvalidInput("model", f"{found.num_outputs} outputs", f"{num_outputs}, {labels}")
    return as_function(found.net), params
