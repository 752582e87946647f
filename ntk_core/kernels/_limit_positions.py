"""Rules for operations that move, cut, repeat or sum positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import jax
from jax import Array
from jax.extend.core import JaxprEqn

from ntk_core.kernels._limit_branches import side_by_side
from ntk_core.kernels._limit_heads import divided, heads_after, kept_for_draws
from ntk_core.kernels._limit_maps import merged, padding, slicing
from ntk_core.kernels._limit_moments import Shape
from ntk_core.kernels._limit_values import (
    NEURONS,
    Blocks,
    Known,
    Random,
    Value,
    Weight,
    along_positions,
    like,
    refusal,
    reshaped,
    summed,
)
from ntk_core.traced import shape_of


def _reshape(eqn: JaxprEqn, operands: list[Value]) -> Value:
    """Reshape, squeeze and expand_dims."""
    (value,) = operands
    shape = tuple(shape_of(eqn.outvars[0]))
    name = eqn.primitive.name
    if isinstance(value, Random):
        heads = heads_after(value, shape)
        if heads is not None:
            return divided(value, shape, heads)
        return replace(reshaped(value, shape, name), beside=_beside_reshaped(value, shape, name))
    assert isinstance(value, Weight)
    return _reshaped_weight(value, shape, name)


def _reshaped_weight(value: Weight, shape: Shape, operation: str) -> Weight:
    """Reshape a parameter; one whose entries repeat keeps its axes, up to those of size 1."""
    if value.all_vary:
        return Weight(value.leaf, shape, tuple(size > 1 for size in shape), value.factor)
    long_before = [axis for axis, size in enumerate(value.shape) if size > 1]
    long_after = [axis for axis, size in enumerate(shape) if size > 1]
    sizes_before = [value.shape[axis] for axis in long_before]
    sizes_after = [shape[axis] for axis in long_after]
    if sizes_after != sizes_before:
        raise refusal(operation, "of a parameter that repeats")
    varies = [False] * len(shape)
    for before, after in zip(long_before, long_after, strict=True):
        varies[after] = value.varies[before]
    return Weight(value.leaf, shape, tuple(varies), value.factor)


def _beside_reshaped(value: Random, shape: Shape, operation: str) -> Blocks | None:
    """Return the parts of a stacked value if the new axis begins with the stacked one."""
    stacked = value.beside
    if stacked is None:
        return None
    total = value.shape[stacked.axis]
    before = math.prod(value.shape[: stacked.axis])
    for axis, size in enumerate(shape):
        if math.prod(shape[:axis]) == before and size % total == 0:
            parts: list[Random | Known] = []
            for part in stacked.parts:
                assert isinstance(part, Random)
                own = (*shape[:axis], size // total, *shape[axis + 1 :])
                parts.append(reshaped(part, own, operation))
            return Blocks(tuple(parts), axis)
    return None


def _transpose(eqn: JaxprEqn, operands: list[Value]) -> Value:
    (value,) = operands
    order = eqn.params["permutation"]
    if isinstance(value, Weight):
        shape = tuple(value.shape[axis] for axis in order)
        varies = tuple(value.varies[axis] for axis in order)
        return Weight(value.leaf, shape, varies, value.factor)
    assert isinstance(value, Random)
    axes = tuple(value.axes[axis] for axis in order)
    return Random(value.atoms, axes, value.sizes, value.width)


def _broadcast(eqn: JaxprEqn, operands: list[Value]) -> Value:
    value = operands[0]
    shape = tuple(eqn.params["shape"])
    to = eqn.params["broadcast_dimensions"]
    if isinstance(value, Weight):
        varies = [False] * len(shape)
        for axis, place in enumerate(to):
            varies[place] = value.varies[axis]
        return Weight(value.leaf, shape, tuple(varies), value.factor)
    assert isinstance(value, Random)
    axes: list[tuple[int, ...]] = [()] * len(shape)
    for axis, place in enumerate(to):
        axes[place] = value.axes[axis]
    new = Random(value.atoms, tuple(axes), value.sizes, value.width)
    if new.shape != shape:
        raise refusal("broadcast_in_dim", "which repeats pre-activations")
    return new


def _sum(eqn: JaxprEqn, operands: list[Value]) -> Value:
    (value,) = operands
    if not isinstance(value, Random):
        raise refusal("reduce_sum", "of a parameter")
    return summed(value, eqn.params["axes"], "reduce_sum")


def _window_sum(eqn: JaxprEqn, operands: list[Value]) -> Value:
    """Sums over windows of positions, as average pooling takes them."""
    value = as_random(eqn, operands[0])
    # In the order of jax.lax.reduce_window; each has one entry per axis.
    keys = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
    settings = [eqn.params[key] for key in keys]
    untouched = (1, 1, (0, 0), 1, 1)  # of an axis
    touched = []
    for axis, of_axis in enumerate(zip(*settings, strict=True)):
        if of_axis != untouched:
            touched.append(axis)

    def change(array: Array) -> Array:
        return jax.lax.reduce_window(array, 0.0, jax.lax.add, *settings)

    return along_positions(value, change, eqn.primitive.name, touched, mixes=True)


def _slice(eqn: JaxprEqn, operands: list[Value]) -> Value:
    value = as_random(eqn, operands[0])
    starts = eqn.params["start_indices"]
    limits = eqn.params["limit_indices"]
    strides = eqn.params["strides"] or (1,) * len(starts)
    cuts = [slice(*each) for each in zip(starts, limits, strides, strict=True)]
    touched = [
        axis
        for axis, (cut, size) in enumerate(zip(cuts, value.shape, strict=True))
        if cut != slice(0, size, 1)
    ]
    kept = tuple(cut if axis in touched else slice(None) for axis, cut in enumerate(cuts))
    if any(NEURONS in value.axes[axis] for axis in touched):
        # Neurons are copies of each other; which of them meet later matters.
        (part,) = kept_for_draws(eqn, [value])
        return part
    return along_positions(value, slicing(kept), "slice", touched)


def _pad(eqn: JaxprEqn, operands: list[Value]) -> Value:
    value = as_random(eqn, operands[0])
    filling = operands[1]
    if not isinstance(filling, Known) or filling.number() != 0:
        raise refusal("pad", "with other numbers than 0")
    config = eqn.params["padding_config"]
    widths = [(int(low), int(high), int(between)) for low, high, between in config]
    touched = [axis for axis, width in enumerate(widths) if width != (0, 0, 0)]
    return along_positions(value, padding(widths), "pad", touched)


def _reverse(eqn: JaxprEqn, operands: list[Value]) -> Value:
    axes = eqn.params["dimensions"]
    value = as_random(eqn, operands[0])
    backwards = slice(None, None, -1)
    cut = tuple(backwards if axis in axes else slice(None) for axis in range(len(value.shape)))
    return along_positions(value, slicing(cut), "rev", axes)


def _stack(eqn: JaxprEqn, operands: list[Value]) -> Value:
    """Give each value a new axis of size 1, and concatenate along it."""
    axis = eqn.params["axis"]
    values: list[Random] = []
    for operand in operands:
        value = as_random(eqn, operand)
        values.append(value.with_axes((*value.axes[:axis], (), *value.axes[axis:])))
    whole = _joined(eqn, values, axis)
    return replace(whole, beside=Blocks(tuple(values), axis))


def concatenate(eqn: JaxprEqn, operands: list[Value]) -> Value:
    """Branches side by side along the neurons, or one after another along positions."""
    axis = eqn.params["dimension"]
    along_neurons = any(
        isinstance(operand, Blocks)
        or (isinstance(operand, Random) and operand.has_neurons_at(axis))
        for operand in operands
    )
    return (
        side_by_side(operands, axis, "concatenate")
        if along_neurons
        else _joined(eqn, operands, axis)
    )


def _joined(eqn: JaxprEqn, operands: Sequence[Value], axis: int) -> Random:
    """Place values one after another along positions, each with zeros elsewhere, and add them."""
    total = shape_of(eqn.outvars[0])[axis]
    start = 0
    placed: list[Random] = []
    for operand in operands:
        value = as_random(eqn, operand)
        size = value.shape[axis]
        widths = [(0, 0, 0)] * len(value.shape)
        widths[axis] = (start, total - start - size, 0)
        placed.append(along_positions(value, padding(widths), "concatenate", [axis]))
        start += size
    first = placed[0]
    return merged(first, [like(each, first, "concatenate").atoms for each in placed])


def split(eqn: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
    """Parts along an axis of positions or neurons."""
    value = as_random(eqn, operands[0])
    axis = eqn.params["axis"]
    if NEURONS in value.axes[axis]:
        return kept_for_draws(eqn, [value])
    parts: list[Value] = []
    start = 0
    for size in eqn.params["sizes"]:
        cut = (*(slice(None),) * axis, slice(start, start + size))
        parts.append(along_positions(value, slicing(cut), "split", [axis]))
        start += size
    return parts


def as_random(eqn: JaxprEqn, value: Value) -> Random:
    if not isinstance(value, Random):
        what = (
            "a parameter" if isinstance(value, Weight) else "known numbers beside pre-activations"
        )
        raise refusal(eqn.primitive.name, f"of {what}")
    return value


# Operation → its rule.
POSITION_RULES: dict[str, Callable[[JaxprEqn, list[Value]], Value]] = {
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast,
    "reduce_sum": _sum,
    "reduce_window_sum": _window_sum,
    "slice": _slice,
    "pad": _pad,
    "rev": _reverse,
    "stack": _stack,
    "concatenate": concatenate,
}
