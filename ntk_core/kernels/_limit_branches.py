"""Branches side by side along the neurons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ntk_core.errors import InvalidInput
from ntk_core.kernels._limit_moments import Shape
from ntk_core.kernels._limit_values import (
    NEURONS,
    Blocks,
    Known,
    Random,
    Value,
    Weight,
    refusal,
    reshaped,
)


def side_by_side(operands: Sequence[Value], axis: int, operation: str) -> Blocks:
    parts: list[Random | Known] = []
    for operand in operands:
        if isinstance(operand, Blocks) and operand.axis == axis:
            parts += operand.parts
        elif isinstance(operand, Known):
            parts.append(operand)
        elif isinstance(operand, Random) and operand.axes[axis] in ((NEURONS,), ()):
            if NEURONS not in operand.axes[axis] and operand.has_neurons:
                raise refusal(operation, "of neurons and positions")
            parts.append(operand)
        elif isinstance(operand, Weight):
            raise refusal(operation, "of a parameter")
        else:
            raise refusal(operation, "of neurons and positions")
    return Blocks(tuple(parts), axis)


def reshaped_blocks(value: Blocks, shape: Shape, operation: str) -> Blocks:
    """Reshape every branch; the neurons stay on one axis, alone or merged with positions."""
    total = value.shape[value.axis]
    sizes = [part.shape[value.axis] for part in value.parts]
    for axis, size in enumerate(shape):
        if size % total:
            continue
        own = [(*shape[:axis], size // total * each, *shape[axis + 1 :]) for each in sizes]
        parts: list[Random | Known] = []
        for part, new in zip(value.parts, own, strict=True):
            if isinstance(part, Known):
                parts.append(part.reshaped(new))
                continue
            try:
                changed = reshaped(part, new, operation)
            except InvalidInput:
                break
            if NEURONS not in changed.axes[axis]:
                break
            parts.append(changed)
        if len(parts) == len(sizes):
            return Blocks(tuple(parts), axis)
    raise refusal(operation, "which divides the neurons or mixes them with positions")


def like_blocks(value: Blocks, other: Blocks, operation: str) -> Blocks:
    own = [part.shape for part in value.parts]
    if value.axis != other.axis or own != [part.shape for part in other.parts]:
        raise refusal(operation, "of branches of different widths")
    return value


def uniform(value: Known, shape: Shape, operation: str) -> Known:
    """Return a number for every entry of a branch."""
    number = value.number()
    if number is None:
        raise refusal(operation, "by numbers that differ between inputs, positions or neurons")
    array = np.broadcast_to(np.asarray(value.left).ravel()[0], shape)
    return Known(array, array, False)
