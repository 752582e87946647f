"""Which entry of an array does each entry of a reshaped and repeated copy of it come from?

A copy is described like a strided array of NumPy: by its shape and, for each axis, the step in
the array. A repeated axis has step 0. A reshape of repeated entries that has no such
description begins a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from jax.extend.core import JaxprEqn

from ntk_core.traced._views import shape_of

# They only rearrange and repeat numbers; JAX omits some for a batch of one.
PLUMBING = frozenset({"broadcast_in_dim", "reshape", "squeeze", "expand_dims"})
Shape = tuple[int, ...]


class Strided(NamedTuple):
    """Shape of a copy, and the steps of its axes."""

    shape: Shape
    steps: Shape


def in_order(shape: Shape, first: frozenset[int] = frozenset()) -> Strided:
    """Return the array itself.

    Steps of other axes do not depend on the size of the axes ``first``.
    """
    steps = [0] * len(shape)
    step = 1
    later = [axis for axis in range(len(shape)) if axis not in first]
    for axis in reversed([*sorted(first), *later]):
        steps[axis] = step
        step *= shape[axis]
    return Strided(shape, tuple(steps))


def copied(source: Strided, equations: Sequence[JaxprEqn]) -> list[Strided]:
    """Return descriptions of a copy by these equations.

    One, and one more for each reshape of repeated entries.
    """
    found = [source]
    for eqn in equations:
        latest = found[-1]
        shape = shape_of(eqn.outvars[0])
        if eqn.primitive.name == "broadcast_in_dim":
            steps = [0] * len(shape)
            for at, axis in enumerate(eqn.params["broadcast_dimensions"]):
                if latest.shape[at] == shape[axis]:
                    steps[axis] = latest.steps[at]
            found[-1] = Strided(shape, tuple(steps))
            continue
        moved = _reshaped(latest, shape) if eqn.params.get("dimensions") is None else None
        if eqn.primitive.name in ("squeeze", "expand_dims"):
            moved = _reshaped(latest, shape)
        if moved is None:
            found.append(in_order(shape))
        else:
            found[-1] = moved
    return found


def _reshaped(source: Strided, shape: Shape) -> Strided | None:
    """Return the description of a reshaped copy; None if neighbors are not a common step apart."""
    old = [pair for pair in zip(source.shape, source.steps, strict=True) if pair[0] != 1]
    steps = [0] * len(shape)
    new = [axis for axis in range(len(shape)) if shape[axis] != 1]
    if 0 in source.shape:
        return None
    while old or new:
        # The least groups of axes with equally many entries.
        group = [old.pop(0)] if old else []
        axes = [new.pop(0)] if new else []
        if not group or not axes:
            return None
        before = group[0][0]
        after = shape[axes[0]]
        while before != after:
            if before < after:
                if not old:
                    return None
                group.append(old.pop(0))
                before *= group[-1][0]
            else:
                if not new:
                    return None
                axes.append(new.pop(0))
                after *= shape[axes[-1]]
        for (_, step), (size, inner) in pairwise(group):
            if step != size * inner:
                return None
        step = group[-1][1]
        for axis in reversed(axes):
            steps[axis] = step
            step *= shape[axis]
    return Strided(shape, tuple(steps))


def same_copies(ones: Sequence[Strided], others: Sequence[Strided]) -> bool:
    """Whether copies of an array are the same for each row.

    They are those in a batched program and in one of a single row.

    Axes of equal size have equal steps. Those of the batch have another size, and are
    followed by the proof.
    """
    if len(ones) != len(others):
        return False
    for one, other in zip(ones, others, strict=True):
        if len(one.shape) != len(other.shape):
            return False
        for axis, size in enumerate(other.shape):
            if size != 1 and one.steps[axis] != other.steps[axis]:
                return False
    return True
