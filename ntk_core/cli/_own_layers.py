"""What the command ``own`` says of a model's layers; importing this starts JAX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

from ntk_core.errors import InvalidInput
from ntk_core.networks.initial import initial_key
from ntk_core.own_models import OwnModel, checked_model
from ntk_core.traced import LayersFound, layers_of

MOST_LINES = 40


def layer_lines(model: OwnModel, width: int, seed: int, data: Any) -> Iterator[str]:
    """One line for each parameter, what both routes cost, and how the check went."""
    x, num_outputs = jnp.asarray(data.x), data.y.shape[1]
    apply, params = checked_model(model, width, initial_key(seed, width), x, num_outputs)
    try:
        found = layers_of(apply, params, x)
    except InvalidInput as error:
        if "mixes" in str(error):
            raise
        yield "layers: not traced; all parameters go by their Jacobians"
        return
    yield "parameter                        kind         numbers    uses  positions  route"
    for layer in found.layers[:MOST_LINES]:
        route = (
            "structured"
            if layer.uses
            else "Jacobian" + (f" ({', '.join(layer.operations)})" if layer.operations else "")
        )
        places = f"{layer.uses:>7} {layer.positions:>10}"
        yield f"{layer.name[-32:]:<32} {layer.kind:<11} {layer.num_params:>9,} {places}  {route}"
    if len(found.layers) > MOST_LINES:
        yield f"and {len(found.layers) - MOST_LINES} more"
    yield _costs(found)


def _costs(found: LayersFound) -> str:
    products = f"{found.multiplications:.2e} multiplications and {found.num_bytes / 2**20:.1f} MiB"
    jacobians = f"{found.jacobian_multiplications:.2e} and {found.jacobian_bytes / 2**20:.1f} MiB"
    checked = ""
    if found.check is not None:
        checked = f"; checked on {found.check.num_inputs} inputs: relative difference {found.check.kernel:.0e}"
    return f"kernel by these routes: {products}, by Jacobians {jacobians}{checked}"
