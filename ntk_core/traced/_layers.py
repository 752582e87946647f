"""Layers of a traced program: all uses of one part of a parameter, and their tangent kernel.

A layer's gradient is a sum over positions, ∂f_c(x_i)/∂W = Σ_p a_ip ⊗ δ^c_ip; a parameter that is
also used transposed (a table for both looking up and comparing words) adds Σ_q δ^c_iq ⊗ a_iq.
docs/math/traced-programs.md.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from ntk_core.traced._contractions import (
    BLOCK_ENTRIES,
    Cotangents,
    FactoredCotangents,
    Patches,
    convolution_kernel,
    cotangent_products,
    gram,
    masked_kernel,
    whole,
)
from ntk_core.traced._positions import features_at, indices, positions_of
from ntk_core.traced._same_outputs import summed_convolution, summed_masked, summed_products
from ntk_core.traced._uses import Avals, Axes, Found, Site, Use
from ntk_core.traced._views import num_entries


@dataclass(frozen=True)
class TracedLayer:
    """A part W of one parameter as matrices (blocks, fan_in, num_features) that only multiply.

    Attributes:
        name: of the parameter, and of the part if there are several.
        uses: of this part.
        flipped: whether each use multiplies by Wᵀ.
        dtype: type of its contracted gradients, the parameter's but at least float32.
        mask: number of the parameter that masks entries of W, or None.
        bias: number of the parameter b of z + r b, and r; or None.

    >>> from ntk_core.traced import traced
    >>> (layer,) = traced(lambda w, x: jnp.tanh(x @ w), jnp.ones((3, 2)), jnp.ones((5, 3))).layers
    >>> layer.sizes, layer.is_dense
    ((1, 3, 2), True)
    """

    name: str
    uses: tuple[Use, ...]
    flipped: tuple[bool, ...]
    dtype: np.dtype
    mask: int | None = None
    bias: tuple[int, float] | None = None

    @property
    def leaf(self) -> int:
        return self.uses[0].view.leaf

    @property
    def axes(self) -> tuple[Axes, Axes, Axes]:
        """Axes of the parameter that number the blocks, the inputs and the features."""
        first = self.uses[self.flipped.index(False)]
        return (*first.stacked, *first.blocks), first.rows, first.columns

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(blocks, fan_in, num_features)."""
        first = self.uses[0]
        blocks, rows, columns = (num_entries(axes) for axes in self.axes)
        return blocks * first.groups, rows, columns // first.groups

    @property
    def positions(self) -> int:
        """Positions of all uses in one block."""
        return sum(map(num_positions, self.uses))

    @property
    def is_dense(self) -> bool:
        """Whether it is one matrix that multiplies one vector, by a product."""
        return self.positions == self.sizes[0] == 1 and self.uses[0].kind == "product"


def num_positions(use: Use) -> int:
    """Positions of one use in one block."""
    over_time = math.prod(
        n for n, axis in zip(use.lengths, use.view.levels, strict=True) if axis is None
    )
    z_entries = math.prod(use.shapes[2])
    return over_time * z_entries // num_entries((*use.blocks, *use.columns))


WIDE_EXPONENTS = 127  # float32 and bfloat16 have numbers up to 2^127 and beyond


def wide(dtype: DTypeLike) -> np.dtype:
    """Return the type for sums of many products of this type."""
    return _wide(np.dtype(dtype))


@cache
def _wide(dtype: np.dtype) -> np.dtype:
    if jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits < 16:
        return np.dtype(jnp.float32)  # JAX promotes no floats of 8 bits
    return jnp.promote_types(dtype, jnp.float32)


def least_normal(dtype: DTypeLike) -> float:
    """Return the absolute rounding of the smallest numbers of a type.

    Processors compute float16 in float32, which rounds to denormal numbers; of wider types they
    read these as 0.
    """
    limits = jnp.finfo(dtype)
    return float(limits.tiny) * (float(limits.eps) if is_narrow_type(dtype) else 1.0)


def is_narrow_type(dtype: DTypeLike) -> bool:
    """Whether a type has so few exponents that derivatives may leave it, as those of float16."""
    return int(jnp.finfo(dtype).maxexp) < WIDE_EXPONENTS


def sorted_into_layers(
    found: Found, names: Mapping[int, str], avals: Avals, masks: Mapping[int, int]
) -> tuple[list[TracedLayer], dict[int, set[str]]]:
    """Return (layers, reasons for other parameters).

    All uses of a layer must be compatible multiplications.
    """
    multiplied = {use.view.leaf for use in found.uses.values()}
    biases: dict[Site, tuple[int, float]] = {}
    for leaf, (added, *others) in found.added.items():
        # A parameter with any other use has a gradient that is more than the cotangent of this z.
        only_added = added is not None and not others and leaf not in multiplied
        if added is not None and only_added and leaf in names:
            biases[added.site] = (leaf, added.scale)
    escapes = {leaf: set(reasons) for leaf, reasons in found.escapes.items()}
    layers: list[TracedLayer] = []
    for leaf, name in names.items():
        uses = [use for use in found.uses.values() if use.view.leaf == leaf]
        if leaf in escapes or not uses:
            continue
        boxes = list(dict.fromkeys(use.view.box for use in uses))
        # One layer for each part of the parameter that is read by itself.
        fitting = []
        for box in boxes:
            of_box = [use for use in uses if use.view.box == box]
            layer = _layer(name, of_box, wide(avals[leaf].dtype))
            if layer is not None and (leaf not in masks or layer.is_dense):
                fitting.append(layer)
        apart = all(not _overlap(one, two) for one, two in itertools.combinations(boxes, 2))
        if not apart or len(fitting) < len(boxes):
            escapes[leaf] = {"uses of forms that do not fit together"}
            continue
        for box, layer in zip(boxes, fitting, strict=True):
            bias = biases.get(layer.uses[0].site)
            shared = layer.is_dense and leaf not in masks
            if bias is not None and not (shared and avals[bias[0]].size == layer.sizes[2]):
                bias = None
            named = name if len(boxes) == 1 else name + _part(box)
            layers.append(replace(layer, name=named, mask=masks.get(leaf), bias=bias))
    return layers, escapes


def _part(box: Sequence[tuple[int, int]]) -> str:
    return "[" + ", ".join(f"{low}:{high}" for low, high in box) + "]"


def _overlap(one: Sequence[tuple[int, int]], two: Sequence[tuple[int, int]]) -> bool:
    return all(
        low < other_high and other_low < high
        for (low, high), (other_low, other_high) in zip(one, two, strict=True)
    )


def _layer(name: str, uses: Sequence[Use], dtype: np.dtype) -> TracedLayer | None:
    first = next((use for use in uses if use.kind == "look-up"), uses[0])
    flipped = []
    for use in uses:
        alike = (use.stacked, use.blocks, use.groups) == (first.stacked, first.blocks, first.groups)
        straight = (use.rows, use.columns) == (first.rows, first.columns)
        if not alike or not (
            straight or ((use.columns, use.rows) == (first.rows, first.columns) and use.groups == 1)
        ):
            return None
        flipped.append(not straight)
    return TracedLayer(name, tuple(uses), tuple(flipped), dtype)


def arranged(use: Use, values: Array, local: Callable[[Use, Array], Array]) -> Array:
    """Apply ``local`` at every step of enclosing scans; return (blocks, positions, features)."""
    function = partial(local, use)
    for _ in use.lengths:
        function = jax.vmap(function)
    found = function(values)  # (*lengths, blocks, positions, features)
    depth = len(use.lengths)
    stacked = [at for at, axis in enumerate(use.view.levels) if axis is not None]
    over_time = [at for at in range(depth) if at not in stacked]
    *_, num_blocks, positions, size = found.shape
    found = found.transpose(*stacked, depth, *over_time, depth + 1, depth + 2)
    num_blocks *= math.prod(use.lengths[at] for at in stacked)
    return found.reshape(
        num_blocks, positions * math.prod(use.lengths[at] for at in over_time), size
    )


class Side(NamedTuple):
    """Positions of one orientation.

    Inputs (blocks, n, P, k), and cotangents (blocks, C, n, P, F).
    """

    inputs: Array
    cotangents: Array


def sides_of(
    layer: TracedLayer, inputs: Mapping[str, Array], cotangents: Mapping[str, Cotangents]
) -> tuple[tuple[Side | None, Side | None], bool]:
    """Return ((sides that multiply by W, by Wᵀ), whether inputs of the former are row indices).

    Args:
        inputs: of each use, (n, *lengths, *a).
        cotangents: of each use, (C, n, *lengths, *z).
    """
    looked_up = all(
        use.kind == "look-up" or flip for use, flip in zip(layer.uses, layer.flipped, strict=True)
    )

    def cast(each: Array) -> Array:
        return each.astype(jnp.promote_types(layer.dtype, each.dtype))

    def deltas_of(use: Use) -> Array:
        deltas = jax.vmap(jax.vmap(partial(arranged, use, local=positions_of)))(
            cast(whole(cotangents[use.name]))
        )
        if use.kind != "look-up":
            return deltas
        reads = jax.vmap(partial(arranged, use, local=indices))(inputs[use.name]) < use.shapes[1][0]
        return jnp.where(reads, use.view.scale * deltas if looked_up else deltas, 0)

    found: list[Side | None] = []
    for orientation in (False, True):
        local = indices if looked_up and not orientation else features_at
        parts = []
        deltas = []
        for use, flipped in zip(layer.uses, layer.flipped, strict=True):
            if flipped == orientation:
                of_rows = jax.vmap(partial(arranged, use, local=local))
                parts.append(of_rows(cast(inputs[use.name])))
                deltas.append(deltas_of(use))
        side = None
        if parts:
            side = Side(
                jnp.moveaxis(jnp.concatenate(parts, -2), 1, 0),
                jnp.moveaxis(jnp.concatenate(deltas, -2), 2, 0),
            )
        found.append(side)
    return (found[0], found[1]), looked_up


class DenseSide(NamedTuple):
    """Inputs (n, k) and cotangents (C, n, F) of a dense layer."""

    inputs: Array
    cotangents: Cotangents


def dense_side(layer: TracedLayer, inputs: Array, cotangents: Cotangents) -> DenseSide:
    """Return the factors of a dense layer without its constant.

    They follow from inputs (n, *a) and cotangents (C, n, *z).
    """

    def cast(each: Array, kept: int) -> Array:
        wide_enough = each.astype(jnp.promote_types(layer.dtype, each.dtype))
        return wide_enough.reshape(*each.shape[:kept], -1)

    if isinstance(cotangents, FactoredCotangents):
        return DenseSide(
            cast(inputs, 1), FactoredCotangents(*(cast(each, 1) for each in cotangents))
        )
    return DenseSide(cast(inputs, 1), cast(cotangents, 2))


def dense_kernel(
    layer: TracedLayer,
    left: DenseSide,
    right: DenseSide,
    mask: Array | None,
    *,
    summed: bool = False,
) -> tuple[Array, Array | None]:
    """Return the kernels of (weights, biases), (C, n1, C, n2).

    (n1, n2) if ``summed`` over equal outputs.

    Pass one object twice for a batch with itself.
    """
    scale = layer.uses[0].view.scale ** 2
    if mask is not None:
        one = (left.inputs, whole(left.cotangents))
        other = one if right is left else (right.inputs, whole(right.cotangents))
        masked = summed_masked if summed else masked_kernel
        return scale * masked(mask, one, other), None
    factor = scale * gram(left.inputs, right.inputs)  # (n1, n2)
    if summed:
        products = summed_products(left.cotangents, right.cotangents)
    else:
        products = cotangent_products(left.cotangents, right.cotangents)
        factor = factor[:, None, :]
    bias = None if layer.bias is None else layer.bias[1] ** 2 * products
    return products * factor, bias


def layer_kernel(
    layer: TracedLayer,
    left: tuple[Side | None, Side | None],
    right: tuple[Side | None, Side | None],
    looked_up: bool,
    patches: Patches | None = None,
    *,
    summed: bool = False,
) -> Float[Array, "C n1 C n2"] | Float[Array, "n1 n2"]:
    """Σ over blocks of Σ_w (∂f_c(x_i)/∂w)(∂f_d(x_j)/∂w); one object twice for a batch with itself.

    Args:
        patches: products of its inputs if they are overlapping patches.
        summed: return the sum over equal outputs c = d.
    """
    same = right is left
    num_rows = layer.sizes[1]
    both = (left,) if same else (left, right)
    own = _own_summed if summed else _own
    crossed = _crossed_summed if summed else _crossed

    def block(sides: tuple[tuple[Side | None, Side | None], ...]) -> Array:
        one = sides[0]
        two = sides[-1]
        total = jnp.zeros(())
        for orientation in (False, True):
            mine = one[orientation]
            other = two[orientation]
            if mine is not None and other is not None:
                table = num_rows if looked_up and not orientation else None
                total = total + own(mine, mine if same else other, table, patches)
        if one[0] is not None and one[1] is not None and two[0] is not None and two[1] is not None:
            there = crossed(one[0], two[1], looked_up)
            back = there if same else crossed(two[0], one[1], looked_up)
            total = total + there + (back.T if summed else jnp.transpose(back, (2, 3, 0, 1)))
        return total

    if layer.sizes[0] == 1:
        return block(jax.tree.map(lambda each: each[0], both))
    first = jax.eval_shape(block, jax.tree.map(lambda each: each[0], both))
    if layer.positions == 1 and layer.sizes[0] * first.size <= BLOCK_ENTRIES:
        return jnp.sum(jax.vmap(block)(both), 0)
    return jax.lax.scan(
        lambda sum_, each: (sum_ + block(each), None), jnp.zeros(first.shape, first.dtype), both
    )[0]


def _own(left: Side, right: Side, table: int | None, patches: Patches | None) -> Array:
    """Contract positions of one orientation.

    ``table`` is the number of rows if inputs are indices.
    """
    same = right is left
    if left.cotangents.shape[2] == 1:
        factor, deltas1, deltas2 = _at_one_position(left, right, table)
        return gram(deltas1, deltas2) * factor[:, None, :]
    pair = (left.inputs, left.cotangents)
    other = pair if same else (right.inputs, right.cotangents)
    features, of_pairs, fan_in = _positions(left, right, table, patches)
    return convolution_kernel(pair, other, features, of_pairs, fan_in)


def _own_summed(left: Side, right: Side, table: int | None, patches: Patches | None) -> Array:
    """Return :func:`_own` summed over equal outputs, (n1, n2)."""
    same = right is left
    if left.cotangents.shape[2] == 1:
        factor, deltas1, deltas2 = _at_one_position(left, right, table)
        return summed_products(deltas1, deltas2) * factor
    pair = (left.inputs, left.cotangents)
    other = pair if same else (right.inputs, right.cotangents)
    features, of_pairs, fan_in = _positions(left, right, table, patches)
    return summed_convolution(pair, other, features, of_pairs, fan_in)


def _at_one_position(left: Side, right: Side, table: int | None) -> tuple[Array, Array, Array]:
    """Return products of inputs (n1, n2), and the cotangents (C, n, F) of both sides."""
    same = right is left
    a1, d1 = left
    a2, d2 = right
    if table is None:
        inputs = a1[:, 0]
        factor = gram(inputs, inputs if same else a2[:, 0])
    else:
        factor = (a1[:, 0] == a2[:, 0, 0]).astype(d1.dtype)
    deltas = d1[:, :, 0]
    return factor, deltas, deltas if same else d2[:, :, 0]


def _positions(
    left: Side, right: Side, table: int | None, patches: Patches | None
) -> tuple[Callable[[Array], Array], Patches, int]:
    """Return (features of inputs, products of all pairs of positions, fan_in)."""
    dtype = left.cotangents.dtype

    def products(a1: Array, a2: Array) -> Array:
        if table is not None:
            return (a1[:, :, None] == a2[..., 0]).astype(dtype)
        return jnp.einsum("ipk,jqk->ipjq", a1, a2)

    def features(a: Array) -> Array:
        return a if table is None else jax.nn.one_hot(a[..., 0].astype(int), table, dtype=dtype)

    of_pairs = patches or Patches(right.inputs.shape[-1], products)
    return features, of_pairs, table or left.inputs.shape[-1]


def _crossed(straight: Side, flipped: Side, looked_up: bool) -> Float[Array, "C n1 C n2"]:
    """Σ_pq (a_ip · δ^d_jq)(δ^c_ip · a_jq) of uses W a_p and Wᵀ a_q, row by row of the former."""

    def row(both: tuple[Array, Array]) -> Array:
        a, d = both  # (P, k) or indices, and (C, P, F)
        met = _met(flipped, a, looked_up)
        return jnp.einsum("djqp,cpf,jqf->cdj", met, d, flipped.inputs)

    rows = jax.lax.map(row, (straight.inputs, jnp.moveaxis(straight.cotangents, 1, 0)))
    return jnp.transpose(rows, (1, 0, 2, 3))


def _crossed_summed(straight: Side, flipped: Side, looked_up: bool) -> Float[Array, "n1 n2"]:
    """Return :func:`_crossed` summed over equal outputs."""

    def row(both: tuple[Array, Array]) -> Array:
        a, d = both
        met = _met(flipped, a, looked_up)
        reached = jnp.einsum("cpf,jqf->cjqp", d, flipped.inputs)
        return jnp.einsum("cjqp,cjqp->j", met, reached)

    found: Array = jax.lax.map(row, (straight.inputs, jnp.moveaxis(straight.cotangents, 1, 0)))
    return found


def _met(flipped: Side, a: Array, looked_up: bool) -> Float[Array, "C n2 Q P"]:
    """Return a_p · δ^d_jq for the inputs (P, k) of one row, or its indices."""
    if looked_up:
        return jnp.take(flipped.cotangents, a[:, 0].astype(int), axis=-1, mode="clip")
    return jnp.einsum("djqk,pk->djqp", flipped.cotangents, a)
