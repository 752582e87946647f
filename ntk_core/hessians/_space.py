"""Small space that contains the range of a Hessian (docs/math/hessian_in_a_small_space.md).

For a layer with inputs a_p and cotangents δ_p = ∂g/∂z_p at positions p, the Hessian of a scalar
g maps any direction to Σ_p (δ̇_p a_pᵀ + δ_p ȧ_pᵀ): with orthonormal bases A of the a_p and D of
the δ_p its range is in

    S = {A U + V Dᵀ : U (r_a, num_features), V (fan_in, r_δ), Aᵀ V = 0},

and (U, V) ↦ A U + V Dᵀ is an isometry. The Hessian restricted to S has exactly the non-zero
spectrum of the full one. All uses of a matrix W share one space, block by block; uses of Wᵀ add
cotangents to A and inputs to D.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike
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


class _UseOfLayer(NamedTuple):
    """One use of a restricted layer.

    A flipped one multiplies by Wᵀ where the others multiply by W.
    """

    layer: TracedLayer
    use: Use
    flipped: bool


def restricted(
    program: Program, leaves: list[Array], x: Array, scalar: Scalar
) -> tuple[SmallSpace, Callable[[Coordinates], Coordinates]]:
    """Return the space at ``leaves``, and the Hessian of g on it.

    Here g = scalar(f), f (C,) of one row ``x``.

    Add a tap τ_p to each z_p, and Σ_p σ_p·a_p to g. The gradient with respect to (τ, σ) at 0 is
    (δ, a), which gives the bases; along a direction Δ, where τ̇ = Δᵀ a and σ̇ = Δ δ, its derivative
    is (δ̇, ȧ). So one pass forward and one backward at ``leaves`` serve both.
    """
    layers = [layer for layer in program.layers if _pays(program, layer)]
    uses = _uses_of(layers)
    whole = _moving_whole(program, layers)

    def value(taps: Taps) -> Array:
        values = list(leaves)
        for name, at in whole.items():
            values[at] = (values[at] + taps.whole[name]).astype(values[at].dtype)
        outputs, seen = program.steady(values, x, taps.outputs)
        # Σ_p σ_p·a_p of each use. Its gradient in σ is a, and its derivative in the
        # weights is that of a.
        pulled = []
        for layer, use, _ in uses:
            a = _features(layer, use, seen[use.name])  # (blocks, positions, fan_in)
            pulled.append(jnp.vdot(taps.inputs[use.name], a))
        return scalar(outputs) + sum(pulled)

    gradient, tangent = linearized(jax.grad(value), _zero_taps(program, leaves, uses, whole))
    inputs = gradient.inputs  # a of each use, (blocks, positions, fan_in)
    cotangents: dict[str, Positions] = {}  # δ of each use, (blocks, positions, num_features)
    for _, use, _ in uses:
        delta = gradient.outputs[use.name].astype(inputs[use.name].dtype)
        cotangents[use.name] = arranged(use, delta, positions_of)
    bases = {layer.name: _bases_of(layer, inputs, cotangents) for layer in layers}
    zero = zero_coordinates(program, bases)

    def taps_along(coordinates: Coordinates) -> Taps:
        """Return (τ̇, σ̇) = (Δᵀ a, Δ δ) along a direction Δ; linear in the coordinates."""
        outputs = {}
        weights = {}
        for layer, use, flipped in uses:
            moved = coordinates[layer.name]
            own = bases[layer.name]
            gain = _product(inputs[use.name], moved, own, flipped).astype(use.dtype)
            outputs[use.name] = _at_the_use(use, gain)
            pull = _product(cotangents[use.name], moved, own, not flipped)
            weights[use.name] = pull.astype(inputs[use.name].dtype)
        return Taps(outputs, weights, {name: coordinates[name]["whole"] for name in whole})

    def product(coordinates: Coordinates) -> Coordinates:
        # H Δ is the transpose of Δ ↦ (τ̇, σ̇), applied to (δ̇, ȧ).
        transposed = jax.linear_transpose(taps_along, zero)
        change_of_gradient = tangent(taps_along(coordinates))
        (result,) = transposed(change_of_gradient)
        return dict(result)

    return SmallSpace(bases, zero, _masks(program, leaves)), product


def _moving_whole(program: Program, layers: Sequence[TracedLayer]) -> dict[str, int]:
    """Return the parameters that are not restricted, name → number.

    Each moves as a whole, by a tap of its own size.
    """
    whole = {}
    restricted_layers = {layer.name for layer in layers}
    for at in _unrestricted(program, restricted_layers):
        whole[program.names[at]] = at
    return whole


def _masks(program: Program, leaves: list[Array]) -> dict[str, Array]:
    """Return the masks of differentiated parameters, by name."""
    masks = {}
    for at, mask in program.stated.masks.items():
        if at in program.names:
            masks[program.names[at]] = leaves[mask]
    return masks


def _uses_of(layers: Sequence[TracedLayer]) -> list[_UseOfLayer]:
    """Return all uses of these layers."""
    uses = []
    for layer in layers:
        for use, flipped in zip(layer.uses, layer.flipped, strict=True):
            uses.append(_UseOfLayer(layer, use, flipped))
    return uses


def _zero_taps(
    program: Program, leaves: list[Array], uses: Sequence[_UseOfLayer], whole: Mapping[str, int]
) -> Taps:
    """Return the taps at which the gradient is taken."""
    outputs = {}
    for _, use, _ in uses:
        outputs[use.name] = jnp.zeros((*use.lengths, *use.shapes[2]), use.dtype)
    inputs = {}
    for layer, use, _ in uses:
        a = jax.ShapeDtypeStruct((*use.lengths, *use.shapes[0]), use.dtype)
        features = jax.eval_shape(partial(_features, layer, use), a)
        inputs[use.name] = jnp.zeros(features.shape, features.dtype)
    whole_parameters = {}
    for name, at in whole.items():
        whole_parameters[name] = jnp.zeros(leaves[at].shape, wide(leaves[at].dtype))
    return Taps(outputs, inputs, whole_parameters)


def _bases_of(
    layer: TracedLayer, inputs: Mapping[str, Positions], cotangents: Mapping[str, Positions]
) -> Bases:
    """Return orthonormal bases of the inputs and of the cotangents of all uses of one layer."""
    inputs_of_uses = []  # each (blocks, positions, fan_in)
    cotangents_of_uses = []  # each (blocks, positions, num_features)
    for use, flipped in zip(layer.uses, layer.flipped, strict=True):
        a = inputs[use.name]
        delta = cotangents[use.name]
        # The rows of Wᵀ are the columns of W: a flipped use swaps the roles of its
        # inputs and cotangents.
        if flipped:
            a, delta = delta, a
        inputs_of_uses.append(a)
        cotangents_of_uses.append(delta)
    columns_of_a = _as_columns(inputs_of_uses, layer.dtype)
    columns_of_delta = _as_columns(cotangents_of_uses, layer.dtype)
    # Positions may outnumber the rank. The space then is larger than the range of the Hessian,
    # which is harmless.
    return Bases(jnp.linalg.qr(columns_of_a)[0], jnp.linalg.qr(columns_of_delta)[0])


def _as_columns(parts: Sequence[Positions], dtype: DTypeLike) -> Float[Array, "_ _ _"]:
    """Join positions of all uses, and return them as columns: (blocks, features, positions)."""
    together = jnp.concatenate(parts, 1)
    return jnp.swapaxes(together, 1, 2).astype(dtype)


def _pays(program: Program, layer: TracedLayer) -> bool:
    """Whether restriction pays for all parts of its parameter."""
    if layer.mask is not None:
        return False
    parts = [each for each in program.layers if each.leaf == layer.leaf]
    for part in parts:
        _, fan_in, num_features = part.sizes
        if not small_space_pays(part.positions, fan_in, num_features):
            return False
    return True


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
    zero: Coordinates = {}
    for at in _unrestricted(program, bases):
        shaped = program.avals[at]
        zero[program.names[at]] = {"whole": jnp.zeros(shaped.shape, wide(shaped.dtype))}
    for layer in program.layers:
        if layer.name not in bases:
            continue
        blocks, fan_in, num_features = layer.sizes
        own = bases[layer.name]
        rank_of_inputs = own.inputs.shape[-1]
        rank_of_cotangents = own.cotangents.shape[-1]
        zero[layer.name] = {
            "along_inputs": jnp.zeros((blocks, rank_of_inputs, num_features), layer.dtype),
            "along_cotangents": jnp.zeros((blocks, fan_in, rank_of_cotangents), layer.dtype),
        }
    return zero


def _product(
    features: Positions, moved: dict[str, Array], bases: Bases, flipped: bool
) -> Positions:
    """Return features · Δ, or features · Δᵀ, with Δ = A U + V Dᵀ, in each block.

    Features times A first and U second, so that Δ of the size of the weights is never formed.
    """
    u = moved["along_inputs"]  # (blocks, r_a, num_features)
    v = moved["along_cotangents"]  # (blocks, fan_in, r_δ)
    d_transposed = jnp.swapaxes(bases.cotangents, 1, 2)  # (blocks, r_δ, num_features)
    if flipped:
        # Δᵀ = Uᵀ Aᵀ + D Vᵀ; the subscripts read the second factor transposed.
        times = partial(jnp.einsum, "bpk,bfk->bpf")
        return times(times(features, u), bases.inputs) + times(times(features, d_transposed), v)
    times = partial(jnp.einsum, "bpk,bkf->bpf")
    return times(times(features, bases.inputs), u) + times(times(features, v), d_transposed)


def projected(small: SmallSpace, coordinates: Coordinates) -> Coordinates:
    """Project onto coordinates with Aᵀ V = 0 and without masked edges."""
    result = {name: dict(moved) for name, moved in coordinates.items()}
    for name, mask in small.masks.items():
        result[name]["whole"] = result[name]["whole"] * mask
    for name, bases in small.bases.items():
        v = coordinates[name]["along_cotangents"]  # (blocks, fan_in, r_δ)
        a = bases.inputs  # (blocks, fan_in, r_a)
        inside = jnp.swapaxes(a, 1, 2) @ v  # Aᵀ V
        result[name]["along_cotangents"] = v - a @ inside
    return result


def lifted(
    program: Program, small: SmallSpace, coordinates: Coordinates, leaves: list[Array]
) -> list[Array]:
    """Return the direction at the size of the parameters: 0 for fixed floats.

    Integers are unchanged.
    """
    found: dict[int, Array] = {}  # number of the parameter → its direction
    for at, aval in enumerate(program.avals):
        if jnp.issubdtype(aval.dtype, jnp.inexact):
            found[at] = jnp.zeros(aval.shape, wide(aval.dtype))
    for at in _unrestricted(program, small.bases):
        found[at] = coordinates[program.names[at]]["whole"]
    for layer in program.layers:
        if layer.name not in small.bases:
            continue
        moved = coordinates[layer.name]
        bases = small.bases[layer.name]
        # Δ = A U + V Dᵀ, (blocks, fan_in, num_features)
        weight = bases.inputs @ moved["along_inputs"]
        weight = weight + moved["along_cotangents"] @ jnp.swapaxes(bases.cotangents, 1, 2)
        # Not ``.at[box].set``: XLA may abort on a scatter of the whole array
        # (docs/decisions/0005-hessian-norms.md).
        starts = [low for low, _ in layer.uses[0].view.box]
        part = _in_place(layer, weight)
        found[layer.leaf] = jax.lax.dynamic_update_slice(found[layer.leaf], part, starts)
    return [found.get(at, leaf) for at, leaf in enumerate(leaves)]


def _in_place(layer: TracedLayer, weight: Array) -> Array:
    """Reshape (blocks, fan_in, num_features) to its part of the parameter.

    Each of the three axes joins axes of the parameter: ``layer.axes`` lists them as
    (axis, stride, size), where several may be parts of one axis. A convolution with feature
    groups has its groups between blocks and fan_in here, and as the outer part of the
    features in the parameter.
    """
    blocks, rows, columns = layer.axes
    view = layer.uses[0].view
    groups = layer.uses[0].groups
    block_sizes = [size for _, _, size in blocks]
    row_sizes = [size for _, _, size in rows]
    column_sizes = [size for _, _, size in columns]
    # (*blocks, groups, *rows, features of a group)
    weight = weight.reshape(*block_sizes, groups, *row_sizes, weight.shape[-1])
    # (*blocks, *rows, groups, features of a group), where the last two are the columns
    weight = jnp.moveaxis(weight, len(blocks), -2)
    weight = weight.reshape(*block_sizes, *row_sizes, *column_sizes)
    # Sort by axis of the parameter, and within an axis from the largest stride to the smallest.
    parts = [*blocks, *rows, *columns]
    order = sorted(range(len(parts)), key=lambda at: (parts[at][0], -parts[at][1]))
    return weight.transpose(order).reshape([high - low for low, high in view.box])


def matrix_of(layer: TracedLayer, leaves: list[Array]) -> Float[Array, "fan_in num_features"]:
    """Return the matrix of a dense layer, without its constant."""
    box = tuple(slice(low, high) for low, high in layer.uses[0].view.box)
    part = leaves[layer.leaf][box]
    # ``_in_place`` only moves entries, so that its transpose is its inverse.
    matrix = jax.ShapeDtypeStruct(layer.sizes, part.dtype)
    (one_block,) = jax.linear_transpose(partial(_in_place, layer), matrix)(part)
    (found,) = one_block
    return found


def dimension(small: SmallSpace) -> int:
    """Return an upper bound of the dimension from shapes, including masked edges."""
    size = sum(each.size for each in jax.tree.leaves(small.zero))
    return dimension_in(size, small.bases)


def dimension_in(size: int, bases: Mapping[str, Bases]) -> int:
    """Return :func:`dimension` of a space with ``size`` coordinates."""
    total = size
    for own in bases.values():
        blocks, _, rank_of_inputs = own.inputs.shape
        rank_of_cotangents = own.cotangents.shape[-1]
        # Aᵀ V = 0 are this many conditions.
        total -= blocks * rank_of_inputs * rank_of_cotangents
    return total
