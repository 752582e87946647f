"""The small space of a traced program's Hessian: that of :mod:`_restriction`, block by block of each layer.

All positions of a layer share one matrix W, so the range of the Hessian is in {A U + V Dᵀ} with bases A of everything
that meets the rows of W and D of everything that meets its columns; uses of Wᵀ bring cotangents to A and inputs to D.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from ntk_core.networks.sizes import small_space_pays
from ntk_core.traced import Program, TracedLayer, Use, arranged, features_at, positions_of, wide

Coordinates = dict[str, dict[str, Array]]
Positions = Float[Array, "_ _ _"]  # blocks, positions, features


class Bases(NamedTuple):
    """Orthonormal columns in each block: (blocks, fan_in, r_a) and (blocks, num_features, r_δ)."""

    inputs: Array
    cotangents: Array


class TracedSpace(NamedTuple):
    """Bases of the layers that gain from them, and zero coordinates of all that moves."""

    bases: dict[str, Bases]
    zero: Coordinates


class Taps(NamedTuple):
    """What is added at a point of the program.

    Attributes:
        outputs: to z of each use, (*lengths, *z).
        inputs: weights of what each use multiplies, (blocks, positions, fan_in).
        whole: to each parameter that moves as a whole.
    """

    outputs: dict[str, Array]
    inputs: dict[str, Array]
    whole: dict[str, Array]


def restricted(
    program: Program, leaves: list[Any], x: Array, output_index: int | Array
) -> tuple[TracedSpace, Callable[[Coordinates], Coordinates]]:
    """The space around ``leaves`` for one output and one row ``x``, and the Hessian as a map on it.

    As in ``_restriction.restricted_hessian``: the gradient by taps gives the bases, its derivative the products.
    """
    layers = [layer for layer in program.layers if _pays(program, layer)]
    uses = [(layer, *each) for layer in layers for each in zip(layer.uses, layer.flipped, strict=True)]
    whole = {program.names[at]: at for at in _as_a_whole(program, {layer.name for layer in layers})}

    def value(taps: Taps) -> Array:
        values = list(leaves)
        for name, at in whole.items():
            values[at] = (values[at] + taps.whole[name]).astype(values[at].dtype)
        outputs, seen = program.steady(values, x, taps.outputs)
        pulled = [jnp.vdot(taps.inputs[use.name], _features(layer, use, seen[use.name])) for layer, use, _ in uses]
        return outputs[output_index].astype(wide(outputs.dtype)) + sum(pulled)

    def unmoved(layer: TracedLayer, use: Use) -> Array:
        a = jax.ShapeDtypeStruct((*use.lengths, *use.shapes[0]), use.dtype)
        features = jax.eval_shape(partial(_features, layer, use), a)
        return jnp.zeros(features.shape, features.dtype)

    start = Taps(
        {use.name: jnp.zeros((*use.lengths, *use.shapes[2]), use.dtype) for _, use, _ in uses},
        {use.name: unmoved(layer, use) for layer, use, _ in uses},
        {name: jnp.zeros(leaves[at].shape, wide(leaves[at].dtype)) for name, at in whole.items()},
    )
    gradient, tangent = jax.linearize(jax.grad(value), start)
    inputs = gradient.inputs
    cotangents = {
        use.name: arranged(use, gradient.outputs[use.name].astype(inputs[use.name].dtype), positions_of)
        for _, use, _ in uses
    }
    bases: dict[str, Bases] = {}
    for layer in layers:
        sides = [(inputs[use.name], cotangents[use.name]) for use in layer.uses]
        met = zip(*(side[::-1] if flip else side for side, flip in zip(sides, layer.flipped, strict=True)), strict=True)
        rows, columns = (jnp.swapaxes(jnp.concatenate(each, 1), 1, 2).astype(layer.dtype) for each in met)
        bases[layer.name] = Bases(jnp.linalg.qr(rows)[0], jnp.linalg.qr(columns)[0])
    zero = zero_coordinates(program, bases)

    def taps_along(coordinates: Coordinates) -> Taps:
        outputs, weights = {}, {}
        for layer, use, flipped in uses:
            moved, own = coordinates[layer.name], bases[layer.name]
            gain = _product(inputs[use.name], moved, own, flipped).astype(use.dtype)
            outputs[use.name] = _at_the_use(use, gain)
            weights[use.name] = _product(cotangents[use.name], moved, own, not flipped).astype(inputs[use.name].dtype)
        return Taps(outputs, weights, {name: coordinates[name]["whole"] for name in whole})

    def product(coordinates: Coordinates) -> Coordinates:
        result: Coordinates = jax.linear_transpose(taps_along, zero)(tangent(taps_along(coordinates)))[0]
        return result

    return TracedSpace(bases, zero), product


def _pays(program: Program, layer: TracedLayer) -> bool:
    """Whether all parts of its parameter gain from a small space; else the parameter moves as a whole."""
    parts = (each for each in program.layers if each.leaf == layer.leaf)
    return all(small_space_pays(each.positions(), *each.sizes[1:]) for each in parts)


def _as_a_whole(program: Program, restricted_layers: Any) -> list[int]:
    """Parameters, by number, without a layer that has bases."""
    apart = {layer.leaf for layer in program.layers if layer.name in restricted_layers}
    return [at for at in program.names if at not in apart]


def _features(layer: TracedLayer, use: Use, a: Array) -> Positions:
    return arranged(use, a.astype(jnp.promote_types(layer.dtype, a.dtype)), features_at)


def _at_the_use(use: Use, positions: Positions) -> Array:
    """What :func:`arranged` has moved, where it was: its transpose."""
    z = jax.ShapeDtypeStruct((*use.lengths, *use.shapes[2]), positions.dtype)
    (found,) = jax.linear_transpose(partial(arranged, use, local=positions_of), z)(positions)
    return jnp.asarray(found)


def zero_coordinates(program: Program, bases: dict[str, Bases]) -> Coordinates:
    """The coordinates of no direction at all."""
    zero: Coordinates = {
        program.names[at]: {"whole": jnp.zeros(program.avals[at].shape, wide(program.avals[at].dtype))}
        for at in _as_a_whole(program, bases)
    }
    for layer in program.layers:
        if layer.name in bases:
            (blocks, fan_in, num_features), (a, d) = layer.sizes, bases[layer.name]
            zero[layer.name] = {
                "along_inputs": jnp.zeros((blocks, a.shape[-1], num_features), layer.dtype),
                "along_cotangents": jnp.zeros((blocks, fan_in, d.shape[-1]), layer.dtype),
            }
    return zero


def _product(features: Positions, moved: dict[str, Array], bases: Bases, flipped: bool) -> Positions:
    """features · Δ, or features · Δᵀ, of Δ = A U + V Dᵀ, in each block."""
    product = partial(jnp.einsum, "bpk,bfk->bpf" if flipped else "bpk,bkf->bpf")
    chains = ((bases.inputs, moved["along_inputs"]), (moved["along_cotangents"], jnp.swapaxes(bases.cotangents, 1, 2)))
    one, two = (pair[::-1] if flipped else pair for pair in chains)
    return product(product(features, one[0]), one[1]) + product(product(features, two[0]), two[1])


def projected(small: TracedSpace, coordinates: Coordinates) -> Coordinates:
    """The nearest coordinates that obey Aᵀ V = 0."""
    result = {name: dict(moved) for name, moved in coordinates.items()}
    for name, bases in small.bases.items():
        v = coordinates[name]["along_cotangents"]
        result[name]["along_cotangents"] = v - bases.inputs @ (jnp.swapaxes(bases.inputs, 1, 2) @ v)
    return result


def lifted(program: Program, small: TracedSpace, coordinates: Coordinates, leaves: list[Any]) -> list[Any]:
    """The direction itself, of the size of the parameters; fixed ones are unchanged."""
    found = {at: jnp.zeros(leaves[at].shape, wide(leaves[at].dtype)) for at in program.names}
    for at in _as_a_whole(program, small.bases):
        found[at] = coordinates[program.names[at]]["whole"]
    for layer in program.layers:
        if layer.name not in small.bases:
            continue
        moved, bases = coordinates[layer.name], small.bases[layer.name]
        weight = bases.inputs @ moved["along_inputs"]
        weight = weight + moved["along_cotangents"] @ jnp.swapaxes(bases.cotangents, 1, 2)
        # Not ``.at[box].set``: XLA may abort on a scatter of the whole array (docs/decisions/0005-hessian-norms.md).
        starts = [low for low, _ in layer.uses[0].view.box]
        found[layer.leaf] = jax.lax.dynamic_update_slice(found[layer.leaf], _in_place(layer, weight), starts)
    return [found.get(at, leaf) for at, leaf in enumerate(leaves)]


def _in_place(layer: TracedLayer, weight: Array) -> Array:
    """(blocks, fan_in, num_features) as the part of the parameter that it is."""
    blocks, rows, columns = layer.axes
    view, groups = layer.uses[0].view, layer.uses[0].groups
    sizes = [[size for _, _, size in axes] for axes in (blocks, rows, columns)]
    weight = weight.reshape(*sizes[0], groups, *sizes[1], weight.shape[-1])
    weight = jnp.moveaxis(weight, len(blocks), -2).reshape(*sizes[0], *sizes[1], *sizes[2])
    atoms = [*blocks, *rows, *columns]
    order = sorted(range(len(atoms)), key=lambda at: (atoms[at][0], -atoms[at][1]))
    return weight.transpose(order).reshape([high - low for low, high in view.box])


def dimension(small: TracedSpace) -> int:
    """An upper bound of the dimension of the space, from shapes."""
    total = sum(each.size for each in jax.tree.leaves(small.zero))
    for bases in small.bases.values():
        blocks, _, rank = bases.inputs.shape
        total -= blocks * rank * bases.cotangents.shape[-1]
    return total


class Parts(NamedTuple):
    """What an operator is made of: products, projection, coordinates of a flat vector, zero, dimension, space."""

    matvec: Callable[[Array], Array]
    project: Callable[[Array], Array]
    unravel: Callable[[Array], Any]
    zero: Array
    dimension: int
    space: TracedSpace


def operator_parts(program: Program, params: Any, x: Array, output_index: int | Array) -> Parts:
    """The Hessian of one output for one row ``x`` on its small space."""
    with jax.default_matmul_precision("highest"):
        small, product = restricted(program, program.leaves(params), x, output_index)
    zero, unravel = ravel_pytree(small.zero)

    def project(coordinates: Coordinates) -> Array:
        return ravel_pytree(projected(small, coordinates))[0]

    return Parts(
        lambda v: project(product(unravel(v))), lambda v: project(unravel(v)), unravel, zero, dimension(small), small
    )
