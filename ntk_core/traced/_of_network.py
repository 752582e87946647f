"""Programs of networks, which need no check: their rows are independent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from ntk_core.networks.architectures import Network, NetworkParams
from ntk_core.networks.architectures._convolution import Convolution
from ntk_core.traced._contractions import Patches
from ntk_core.traced._program import Program, Stated
from ntk_core.traced._trace import trace
from ntk_core.traced._uses import Avals

# Of arrays, with their types; quicker keys than structures.
Shapes = tuple[tuple[tuple[int, ...], np.dtype], ...]


def program_of_network(
    net: Network, params: NetworkParams, row: Array | jax.ShapeDtypeStruct
) -> Program:
    """Return the program of a network's pre-outputs.

    It takes parameters and one input without batch axis, of these shapes.
    """
    leaves, structure = jax.tree.flatten({name: params[name] for name in net.layers})
    # Convolutions and constants differ.
    options = (
        jax.default_backend(),
        jax.config.read("jax_enable_x64"),
    )
    return _traced(net, structure, shapes_of(leaves), row.shape, np.dtype(row.dtype), options)


def shapes_of(leaves: Sequence[ArrayLike]) -> Shapes:
    """Return shapes and types.

    Those of JAX arrays are looked up, which takes a tenth of the time.
    """
    return tuple(
        (leaf.shape, leaf.dtype)
        if isinstance(leaf, Array)
        else (jnp.shape(leaf), jnp.result_type(leaf))
        for leaf in leaves
    )


def avals_of(shapes: Shapes) -> Avals:
    return tuple(jax.ShapeDtypeStruct(*each) for each in shapes)


@lru_cache(maxsize=256)  # one sweep of widths
def _traced(
    net: Network,
    structure: PyTreeDef,
    shapes: Shapes,
    shape: tuple[int, ...],
    dtype: np.dtype,
    _: tuple[str, bool],
) -> Program:
    avals = avals_of(shapes)
    single, _outputs = trace(net.pre_outputs, structure, avals, (1, *shape), dtype)
    paths, _structure = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(structure, avals))
    places = {(layer.key, leaf.key): at for at, ((layer, leaf), _aval) in enumerate(paths)}
    moving = [
        net.layers[layer].trainable and leaf in net.layers[layer].trainable_names()
        for layer, leaf in places
    ]
    masks = {places[layer, "weight"]: at for (layer, leaf), at in places.items() if leaf == "mask"}
    readers = {
        places[layer, "weight"]: places[by, "weight"]
        for layer, by in net.read_elementwise().items()
    }
    patched = {}
    if jax.default_backend() == "cpu":
        for name, layer in net.layers.items():
            if isinstance(layer, Convolution) and layer.stride == 1:
                patched[name] = layer
    fed = net.layer_input_shapes(shape) if patched else {}
    patches = {
        places[name, "weight"]: Patches(fed[name][-1], partial(layer.patch_products, fed[name]))
        for name, layer in patched.items()
    }
    stated = Stated(tuple(net.layers), masks, readers, patches, net.output)
    return Program(single, structure, avals, moving, jax.ShapeDtypeStruct(shape, dtype), stated)
