"""Which entry of an array does each entry of a reshaped and repeated copy of it come from?

Each axis of a copy is described by parts, the slowest first: a part of size n and step s runs over
n entries that are s entries of the array apart. Repeated entries have step 0. Rows of a batch are a
part of their own, so that a batched program and one of a single row describe a row alike:
attention of PyTorch has axes (positions · rows, features), whose parts are positions and rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from jax.extend.core import JaxprEqn

from ntk_core.traced._views import shape_of

# They only rearrange and repeat numbers; JAX omits some for a batch of one.
PLUMBING = frozenset({"broadcast_in_dim", "reshape", "squeeze", "expand_dims"})
Shape = tuple[int, ...]


class Part(NamedTuple):
    """Entries of one axis at equal distances.

    Attributes:
        size: number of entries.
        step: entries of the array from one to the next; 0 for repeated ones, and for rows.
        has_rows: whether it runs over the rows of a batch.
    """

    size: int
    step: int
    has_rows: bool = False


class Rows(NamedTuple):
    """Rows in one axis of a batch: entry (o, i, j) of outer · n · inner is of row i."""

    num_rows: int
    outer: int = 1
    inner: int = 1


Axis = tuple[Part, ...]  # without parts of size 1
Copy = tuple[Axis, ...]


def in_order(shape: Shape, rows: Mapping[int, Rows] | None = None) -> Copy:
    """Describe an array itself.

    >>> in_order((4, 3))
    ((Part(size=4, step=3, has_rows=False),), (Part(size=3, step=1, has_rows=False),))

    Args:
        shape: for a single row.
        rows: of a batch, by axis.
    """
    axes: list[Axis] = []
    step = 1
    for axis, size in reversed(list(enumerate(shape))):
        parts = [Part(size, step)]
        if rows is not None and axis in rows:
            num_rows, outer, inner = rows[axis]
            parts = [Part(outer, step * inner), Part(num_rows, 0, True), Part(inner, step)]
        axes.insert(0, _without_ones(parts))
        step *= size
    return tuple(axes)


def copied(source: Copy, equations: Sequence[JaxprEqn]) -> Copy | None:
    """Describe a copy by these equations; None for an axis that has no such parts."""
    latest: Copy | None = source
    for eqn in equations:
        if latest is None:
            return None
        shape = shape_of(eqn.outvars[0])
        if eqn.primitive.name == "broadcast_in_dim":
            axes: list[Axis] = [_without_ones([Part(size, 0)]) for size in shape]
            for at, axis in enumerate(eqn.params["broadcast_dimensions"]):
                if _size(latest[at]) == shape[axis]:
                    axes[axis] = latest[at]
            latest = tuple(axes)
        elif eqn.params.get("dimensions") is not None and eqn.primitive.name == "reshape":
            return None
        else:
            latest = _reshaped(latest, shape)
    return latest


def _reshaped(source: Copy, shape: Shape) -> Copy | None:
    """Divide the parts of all axes among new axes; None if they do not fit."""
    if 0 in shape:
        return tuple(() for _ in shape)
    rest = list(_merged(list(chain.from_iterable(source))))
    axes: list[Axis] = []
    for size in shape:
        parts: list[Part] = []
        missing = size
        while missing > 1:
            if not rest:
                return None
            part = rest.pop(0)
            if part.size > missing:
                inner, remainder = divmod(part.size, missing)
                if remainder:
                    return None
                rest.insert(0, part._replace(size=inner))
                part = part._replace(size=missing, step=part.step * inner)
            if missing % part.size:
                return None
            parts.append(part)
            missing //= part.size
        axes.append(tuple(parts))
    return None if rest else tuple(axes)


def _without_ones(parts: Sequence[Part]) -> Axis:
    return tuple(part for part in parts if part.size != 1)


def _size(axis: Axis) -> int:
    return math.prod(part.size for part in axis)


def _merged(parts: Sequence[Part]) -> Axis:
    """Join neighbors that continue each other."""
    found: list[Part] = []
    for part in parts:
        before = found[-1] if found else None
        if (
            before is not None
            and not (before.has_rows or part.has_rows)
            and before.step == part.size * part.step
        ):
            found[-1] = Part(before.size * part.size, part.step)
        else:
            found.append(part)
    return tuple(found)


def same_copies(batch: Copy | None, single: Copy | None) -> bool:
    """Whether copies of an array are the same for each row.

    They are those in a batched program and in one of a single row. Axes of size 1 there are the
    batch in the former, which the proof follows.
    """
    if batch is None or single is None or len(batch) != len(single):
        return False
    for several, one in zip(batch, single, strict=True):
        if _size(one) == 1:
            continue
        of_row = _merged([part for part in several if not part.has_rows])
        expected = _merged(one)
        # Repeated entries are equal for any number of them; the shapes are compared elsewhere.
        are_repeated = not any(part.step for part in (*of_row, *expected))
        if of_row != expected and not are_repeated:
            return False
    return True
