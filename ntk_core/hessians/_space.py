"""Small space that contains the range of a Hessian (docs/math/hessian_in_a_small_space.md).

For a layer with inputs a_p and cotangents δ_p = ∂g/∂z_p at positions p, the Hessian of a scalar g maps any direction to
Σ_p (δ̇_p a_pᵀ + δ_p ȧ_pᵀ): with orthonormal bases A of the a_p and D of the δ_p its range is in

    S = {A U + V Dᵀ : U (r_a, num_features), V (fan_in, r_δ), Aᵀ V = 0},

and (U, V) ↦ A U + V Dᵀ is an isometry. The Hessian restricted to S has exactly the non-zero spectrum of the full one.
All uses of a matrix W share one space, block by block; uses of Wᵀ add cotangents to A and inputs to D.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ntk_core.networks.counts import small_space_pays
from ntk_core.traced import (
    Program,
    TracedLayer,
    Use,
    arranged,
    features_at,
    linearized,
    positions_of,
    wide,
)

Coordinates = dict[str, dict[str, Array]]
Scalar = Callable[[Array], Array]
Positions = Float[Array, "_ _ _"]  # blocks, positions, features


class Bases(NamedTuple):
    """Orthonormal columns in each block: (blocks, fan_in, r_a) and (blocks, num_features, r_δ)."""

    inputs: Array
    cotangents: Array


class SmallSpace(NamedTuple):
    """Coordinates of the small space.

    Attributes:
        bases: of the layers that are restricted.
        zero: zero coordinates.
        masks: movable entries of masked parameters.
    """

    bases: dict[str, Bases]
    zero: Coordinates
    masks: Mapping[str, Array] = MappingProxyType({})


class Taps(NamedTuple):
    """Terms added at points of the program.

    Attributes:
        outputs: added to z of each use, (*lengths, *z).
        inputs: weights of the inputs of each use, (blocks, positions, fan_in).
        whole: added to each unrestricted parameter.
    """

    outputs: dict[str, Array]
    inputs: dict[str, Array]
    whole: dict[str, Array]


def restricted(
    program: Program, leaves: list[Array], x: Array, scalar: Scalar
) -> tuple[SmallSpace, Callable[[Coordinates], Coordinates]]:
    """Return the space at ``leaves`` for g = scalar(f), f (C,) of one row ``x``, and the Hessian of g on it.

    Add a tap τ_p to each z_p, and Σ_p σ_p·a_p to g. The gradient with respect to (τ, σ) at 0 is (δ, a), which gives the
    bases; along a direction Δ, where τ̇ = Δᵀ a and σ̇ = Δ δ, its derivative is (δ̇, ȧ). So one pass forward and one
    backward at ``leaves`` serve both.
    """
    layers = [layer for layer in program.layers if _pays(program, layer)]
    uses = [
        (layer, *each) for layer in layers for each in zip(layer.uses, layer.flipped, strict=True)
    ]
    whole = {
        program.names[at]: at for at in _unrestricted(program, {layer.name for layer in layers})
    }

    def value(taps: Taps) -> Array:
        values = list(leaves)
        for name, at in whole.items():
            values[at] = (values[at] + taps.whole[name]).astype(values[at].dtype)
        outputs, seen = program.steady(values, x, taps.outputs)
        pulled = [
            jnp.vdot(taps.inputs[use.name], _features(layer, use, seen[use.name]))
            for layer, use, _ in uses
        ]
        return scalar(outputs) + sum(pulled)

    def unmoved(layer: TracedLayer, use: Use) -> Array:
        a = jax.ShapeDtypeStruct((*use.lengths, *use.shapes[0]), use.dtype)
        features = jax.eval_shape(partial(_features, layer, use), a)
        return jnp.zeros(features.shape, features.dtype)

    start = Taps(
        {use.name: jnp.zeros((*use.lengths, *use.shapes[2]), use.dtype) for _, use, _ in uses},
        {use.name: unmoved(layer, use) for layer, use, _ in uses},
        {name: jnp.zeros(leaves[at].shape, wide(leaves[at].dtype)) for name, at in whole.items()},
    )
    gradient, tangent = linearized(jax.grad(value), start)
    inputs = gradient.inputs
    cotangents = {
        use.name: arranged(
            use, gradient.outputs[use.name].astype(inputs[use.name].dtype), positions_of
        )
        for _, use, _ in uses
    }
    bases: dict[str, Bases] = {}
    for layer in layers:
        sides = [(inputs[use.name], cotangents[use.name]) for use in layer.uses]
        met = zip(
            *(
                side[::-1] if flip else side
                for side, flip in zip(sides, layer.flipped, strict=True)
            ),
            strict=True,
        )
        rows, columns = (
            jnp.swapaxes(jnp.concatenate(each, 1), 1, 2).astype(layer.dtype) for each in met
        )
        bases[layer.name] = Bases(jnp.linalg.qr(rows)[0], jnp.linalg.qr(columns)[0])
    zero = zero_coordinates(program, bases)

    def taps_along(coordinates: Coordinates) -> Taps:
        outputs, weights = {}, {}
        for layer, use, flipped in uses:
            moved, own = coordinates[layer.name], bases[layer.name]
            gain = _product(inputs[use.name], moved, own, flipped).astype(use.dtype)
            outputs[use.name] = _at_the_use(use, gain)
            weights[use.name] = _product(cotangents[use.name], moved, own, not flipped).astype(
                inputs[use.name].dtype
            )
        return Taps(outputs, weights, {name: coordinates[name]["whole"] for name in whole})

    def product(coordinates: Coordinates) -> Coordinates:
        result: Coordinates = jax.linear_transpose(taps_along, zero)(
            tangent(taps_along(coordinates))
        )[0]
        return result

    masks = {
        program.names[at]: leaves[mask]
        for at, mask in program.stated.masks.items()
        if at in program.names
    }
    return SmallSpace(bases, zero, masks), product


def _pays(program: Program, layer: TracedLayer) -> bool:
    """Whether restriction pays for all parts of its parameter."""
    parts = (each for each in program.layers if each.leaf == layer.leaf)
    return layer.mask is None and all(
        small_space_pays(each.positions, *each.sizes[1:]) for each in parts
    )


def _unrestricted(program: Program, restricted_layers: Container[str]) -> list[int]:
    """Return the unrestricted parameters, by number."""
    apart = {layer.leaf for layer in program.layers if layer.name in restricted_layers}
    return [at for at in program.names if at not in apart]


def _features(layer: TracedLayer, use: Use, a: Array) -> Positions:
    return arranged(use, a.astype(jnp.promote_types(layer.dtype, a.dtype)), features_at)


def _at_the_use(use: Use, positions: Positions) -> Array:
    """Transpose of :func:`arranged`."""
    z = jax.ShapeDtypeStruct((*use.lengths, *use.shapes[2]), positions.dtype)
    (found,) = jax.linear_transpose(partial(arranged, use, local=positions_of), z)(positions)
    return jnp.asarray(found)


def zero_coordinates(program: Program, bases: dict[str, Bases]) -> Coordinates:
    """Return zero coordinates."""
    zero: Coordinates = {
        program.names[at]: {
            "whole": jnp.zeros(program.avals[at].shape, wide(program.avals[at].dtype))
        }
        for at in _unrestricted(program, bases)
    }
    for layer in program.layers:
        if layer.name in bases:
            (blocks, fan_in, num_features), (a, d) = layer.sizes, bases[layer.name]
            zero[layer.name] = {
                "along_inputs": jnp.zeros((blocks, a.shape[-1], num_features), layer.dtype),
                "along_cotangents": jnp.zeros((blocks, fan_in, d.shape[-1]), layer.dtype),
            }
    return zero


def _product(
    features: Positions, moved: dict[str, Array], bases: Bases, flipped: bool
) -> Positions:
    """Return features · Δ, or features · Δᵀ, with Δ = A U + V Dᵀ, in each block."""
    product = partial(jnp.einsum, "bpk,bfk->bpf" if flipped else "bpk,bkf->bpf")
    chains = (
        (bases.inputs, moved["along_inputs"]),
        (moved["along_cotangents"], jnp.swapaxes(bases.cotangents, 1, 2)),
    )
    one, two = (pair[::-1] if flipped else pair for pair in chains)
    return product(product(features, one[0]), one[1]) + product(product(features, two[0]), two[1])


def projected(small: SmallSpace, coordinates: Coordinates) -> Coordinates:
    """Project onto coordinates with Aᵀ V = 0 and without masked edges."""
    result = {name: dict(moved) for name, moved in coordinates.items()}
    for name, mask in small.masks.items():
        result[name]["whole"] = result[name]["whole"] * mask
    for name, bases in small.bases.items():
        v = coordinates[name]["along_cotangents"]
        result[name]["along_cotangents"] = v - bases.inputs @ (jnp.swapaxes(bases.inputs, 1, 2) @ v)
    return result


def lifted(
    program: Program, small: SmallSpace, coordinates: Coordinates, leaves: list[Array]
) -> list[Array]:
    """Return the direction at the size of the parameters; fixed ones are unchanged."""
    found = {at: jnp.zeros(leaves[at].shape, wide(leaves[at].dtype)) for at in program.names}
    for at in _unrestricted(program, small.bases):
        found[at] = coordinates[program.names[at]]["whole"]
    for layer in program.layers:
        if layer.name not in small.bases:
            continue
        moved, bases = coordinates[layer.name], small.bases[layer.name]
        weight = bases.inputs @ moved["along_inputs"]
        weight = weight + moved["along_cotangents"] @ jnp.swapaxes(bases.cotangents, 1, 2)
        # Not ``.at[box].set``: XLA may abort on a scatter of the whole array (docs/decisions/0005-hessian-norms.md).
        starts = [low for low, _ in layer.uses[0].view.box]
        found[layer.leaf] = jax.lax.dynamic_update_slice(
            found[layer.leaf], _in_place(layer, weight), starts
        )
    return [found.get(at, leaf) for at, leaf in enumerate(leaves)]


def _in_place(layer: TracedLayer, weight: Array) -> Array:
    """Reshape (blocks, fan_in, num_features) to its part of the parameter."""
    blocks, rows, columns = layer.axes
    view, groups = layer.uses[0].view, layer.uses[0].groups
    sizes = [[size for _, _, size in axes] for axes in (blocks, rows, columns)]
    weight = weight.reshape(*sizes[0], groups, *sizes[1], weight.shape[-1])
    weight = jnp.moveaxis(weight, len(blocks), -2).reshape(*sizes[0], *sizes[1], *sizes[2])
    atoms = [*blocks, *rows, *columns]
    order = sorted(range(len(atoms)), key=lambda at: (atoms[at][0], -atoms[at][1]))
    return weight.transpose(order).reshape([high - low for low, high in view.box])


def matrix_of(layer: TracedLayer, leaves: list[Array]) -> Float[Array, "fan_in num_features"]:
    """Return the matrix of a dense layer, without its constant."""
    part = leaves[layer.leaf][tuple(slice(low, high) for low, high in layer.uses[0].view.box)]
    matrix = jax.ShapeDtypeStruct(layer.sizes, part.dtype)
    ((found,),) = jax.linear_transpose(partial(_in_place, layer), matrix)(part)
    return found


def dimension(small: SmallSpace) -> int:
    """Return an upper bound of the dimension from shapes, including masked edges."""
    size = sum(each.size for each in jax.tree.leaves(small.zero))
    return dimension_in(size, small.bases)


def dimension_in(size: int, bases: Mapping[str, Bases]) -> int:
    """Return :func:`dimension` of a space with ``size`` coordinates."""
    total = size
    for own in bases.values():
        blocks, _, rank = own.inputs.shape
        total -= blocks * rank * own.cotangents.shape[-1]
    return total
