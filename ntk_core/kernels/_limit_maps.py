"""Maps of positions: entries picked, cut, padded with zeros, and merged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ntk_core.kernels._limit_moments import Atom, Change, Entries, Moved, Shape, Sum
from ntk_core.kernels._limit_values import Random

MOST_RUNS = 8  # of neighbors in a map of positions; our choice


def merged(like_this: Random, placed: Sequence[Sum]) -> Random:
    """Add values at different positions; all maps of an atom become one, for circular padding.

    Each entry of the result is an entry of the atom if no map has sums, if no value has the atom
    twice, and if all of them have one coefficient.
    """
    maps: dict[Atom, list[tuple[float, Change]]] = {}
    sums: set[Atom] = set()
    for atoms in placed:
        own: set[Atom] = set()
        for atom, c in atoms.items():
            changes: list[Change] = []
            has_sums = False
            while isinstance(atom, Moved):
                changes.insert(0, atom.change)
                has_sums |= atom.mixes
                atom = atom.of
            if has_sums or atom in own:
                sums.add(atom)
            own.add(atom)
            maps.setdefault(atom, []).append((c, partial(_chained, changes)))
    merged: dict[Atom, float] = {}
    for atom, parts in maps.items():
        coefficients = {c for c, _ in parts}
        if atom in sums or len(coefficients) > 1:
            merged[Moved(like_this.sizes, atom, partial(_weighted_sum, parts))] = 1.0
            continue
        entries = [(1.0, change) for _, change in parts]
        change = Picked(partial(_weighted_sum, entries), atom.sizes)
        merged[Moved(like_this.sizes, atom, change, mixes=False)] = coefficients.pop()
    return like_this.with_atoms(merged)


@dataclass(frozen=True, eq=False)
class Picked:
    """A map whose results are entries or 0: along one axis after the other, or as one look-up.

    Attributes:
        change: the map.
        sizes: of the positions that it takes.
    """

    change: Change
    sizes: Shape

    @cached_property
    def numbers(self) -> np.ndarray:
        """The number of the entry at each position of the result, from 1; 0 for none."""
        entries = np.arange(1.0, 1 + math.prod(self.sizes)).reshape(self.sizes)
        with jax.ensure_compile_time_eval():
            return np.asarray(self.change(entries, 0)).astype(int)

    @cached_property
    def along_axes(self) -> tuple[np.ndarray, ...] | None:
        """The number of the entry along each axis, from 1 and 0 for none; None if axes mix.

        Padding, slices and reversals treat one axis after the other.
        """
        if self.numbers.ndim != len(self.sizes):
            return None
        present = self.numbers > 0
        places = np.unravel_index(np.maximum(self.numbers - 1, 0), self.sizes)
        found = []
        for axis, place in enumerate(places):
            others = tuple(other for other in range(len(places)) if other != axis)
            found.append(np.where(present, place + 1, 0).max(axis=others, initial=0))
        # If axes do not mix, these numbers alone give back the number of every entry.
        grid = np.meshgrid(*found, indexing="ij")
        is_present = np.all([each > 0 for each in grid], axis=0)
        flat = np.ravel_multi_index([np.maximum(each - 1, 0) for each in grid], self.sizes)
        is_given_back = np.array_equal(np.where(is_present, flat + 1, 0), self.numbers)
        return tuple(found) if is_given_back else None

    def __call__(self, array: Entries, after: int) -> Entries:
        end = array.ndim - after
        first = end - len(self.sizes)
        if self.along_axes is not None:
            for place, numbers in enumerate(self.along_axes):
                array = _picked_along(array, first + place, numbers)
            return array
        before = array.shape[:first]
        behind = array.shape[end:]
        flat = array.reshape(math.prod(before), math.prod(self.sizes), math.prod(behind))
        entries = _picked_along(flat, 1, self.numbers.ravel())
        return entries.reshape(*before, *self.numbers.shape, *behind)


def _picked_along(array: Entries, axis: int, numbers: np.ndarray) -> Entries:
    """Return the entries of these numbers along an axis; 0 for the number 0.

    Few runs of neighbors are slices, which compiled programs read faster than look-ups.
    """
    use: Any = np if isinstance(array, np.ndarray) else jnp
    continued = np.where(numbers[:-1] > 0, numbers[:-1] + 1, 0)
    runs = np.split(numbers, 1 + np.flatnonzero(numbers[1:] != continued))
    if len(runs) > MOST_RUNS:
        entries = use.take(array, np.maximum(numbers - 1, 0), axis=axis)
        shape = [1] * array.ndim
        shape[axis] = len(numbers)
        return use.where(numbers.reshape(shape) > 0, entries, 0) if 0 in numbers else entries
    parts = []
    for run in runs:
        if run[0]:
            cut = (*(slice(None),) * axis, slice(int(run[0]) - 1, int(run[-1])))
            parts.append(array[cut])
        else:
            shape = list(array.shape)
            shape[axis] = len(run)
            parts.append(use.zeros(shape, array.dtype))
    return parts[0] if len(parts) == 1 else use.concatenate(parts, axis)


def _chained(changes: Sequence[Change], array: Entries, after: int) -> Entries:
    for change in changes:
        array = change(array, after)
    return array


def _weighted_sum(parts: Sequence[tuple[float, Change]], array: Entries, after: int) -> Entries:
    total: Any = sum(_times_number(c, change(array, after)) for c, change in parts)
    return total


def _times_number(c: float, array: Entries) -> Entries:
    return array if c == 1 else c * array


def slicing(cut: tuple[slice, ...]) -> Callable[[Entries], Entries]:
    return lambda array: array[cut]


def padding(widths: Sequence[tuple[int, int, int]]) -> Callable[[Entries], Entries]:
    """Return (low, high, between) zeros along each axis, as ``jax.lax.pad``."""

    def padded(array: Entries) -> Entries:
        outside = [(low, high) for low, high, _ in widths]
        is_plain = not any(between for _, _, between in widths)
        if isinstance(array, np.ndarray) and is_plain and min(map(min, outside)) >= 0:
            return np.pad(array, outside)  # without compiling
        return jax.lax.pad(jnp.asarray(array), 0.0, widths)

    return padded
