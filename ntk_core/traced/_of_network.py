"""The program of a network, which needs no check: its rows do not meet."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ntk_core.networks.architectures import Network, NetworkParams
from ntk_core.traced._program import Program
from ntk_core.traced._trace import trace


def own_params(net: Network, params: NetworkParams) -> NetworkParams:
    """Return the parameters of the network's own layers."""
    return {name: params[name] for name in net.layers}


def program_of_network(net: Network, params: NetworkParams, row: Array) -> Program:
    """Return the program of the pre-outputs for :func:`own_params` and one input without batch axis."""
    leaves, structure = jax.tree.flatten(own_params(net, params))
    avals = tuple(jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    backend = jax.default_backend()  # convolutions differ
    return _traced(net, structure, avals, row.shape, jnp.result_type(row), (backend, jnp.result_type(float).name))


@lru_cache(maxsize=256)  # one sweep of widths
def _traced(
    net: Network, structure: Any, avals: tuple[Any, ...], shape: tuple[int, ...], dtype: Any, _: tuple[str, ...]
) -> Program:
    single, _outputs = trace(net.pre_outputs, structure, avals, (1, *shape), dtype)
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(jax.tree.unflatten(structure, avals))]
    moving = [
        net.layers[layer.key].trainable and leaf.key in net.layers[layer.key].trainable_names() for layer, leaf in paths
    ]
    masks = {
        jax.tree_util.keystr((layer, jax.tree_util.DictKey("weight"))): at
        for at, (layer, leaf) in enumerate(paths)
        if leaf.key == "mask"
    }
    return Program(single, structure, avals, moving, jax.ShapeDtypeStruct(shape, dtype), masks)
