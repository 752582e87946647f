"""Values of a traced program at infinite width.

Known arrays, weights and random values, and their linear maps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.kernels._limit_moments import (
    Atom,
    Change,
    Combination,
    Constant,
    Entries,
    Moved,
    Pointwise,
    Shape,
    Sum,
    is_constant,
    is_gaussian,
)

NEURONS = -1  # the factor of an axis along which entries are independent copies
RULES = (
    "products with weights, convolutions, biases, elementwise functions, sums and concatenations "
    "of branches, averages over positions, flattening and attention"
)
SAME_RATIO = 1e-12  # of coefficients that differ by rounding alone
Axes: TypeAlias = tuple[tuple[int, ...], ...]


def refusal(operation: str, why: str = "") -> InvalidInput:
    """Return the error for an operation without a rule at infinite width."""
    given = f"a function with the operation {operation}{why and f', {why},'}"
    return NoRule("net", given, f"{RULES}; other operations have no rule at infinite width")


class NoRule(InvalidInput):
    """An operation without a rule at infinite width."""

    longest = 200


@dataclass(frozen=True)
class Known:
    """An array that is the same in every network.

    Attributes:
        left, right: for the rows of x1 and of x2, (n, *shape); one array of shape ``shape``
            if it is a constant.
        depends: whether it depends on the inputs.
    """

    left: Array | np.ndarray
    right: Array | np.ndarray
    depends: bool

    @property
    def shape(self) -> Shape:
        return tuple(self.left.shape[1:] if self.depends else self.left.shape)

    def reshaped(self, shape: Shape) -> Known:
        count = (len(self.left),) if self.depends else ()
        other = (len(self.right),) if self.depends else ()
        return Known(
            self.left.reshape(*count, *shape), self.right.reshape(*other, *shape), self.depends
        )

    def number(self) -> float | None:
        """Return its only value; None if values differ or depend on the inputs."""
        if self.depends or not self.left.size:
            return None
        values = np.asarray(self.left).ravel()
        return values[0].item() if (values == values[0]).all() else None


@dataclass(frozen=True)
class Weight:
    """A parameter times a number.

    Attributes:
        leaf: its number among the parameters.
        varies: whether its entries differ along each axis; they repeat along the others.
    """

    leaf: int
    shape: Shape
    varies: tuple[bool, ...]
    factor: float = 1.0

    @property
    def all_vary(self) -> bool:
        """Whether no entry repeats."""
        return all(
            varies or size == 1 for varies, size in zip(self.varies, self.shape, strict=True)
        )


@dataclass(frozen=True)
class Random:
    """A value whose entries along the width are independent copies of a sum of atoms.

    Attributes:
        atoms: coefficient of each atom; all of the same ``sizes``.
        axes: of the array: the numbers of the position axes in it, in order, and NEURONS.
        sizes: of the position axes.
        width: entries along the width; 1 if it has no such axis.
        beside: the same value as values side by side, where it was stacked so: a weight that
            contracts their axis then needs no pair of different ones. Operations that do not
            say how they act on them leave them out.
    """

    atoms: Sum
    axes: Axes
    sizes: Shape
    width: int
    beside: Blocks | None = None

    @property
    def shape(self) -> Shape:
        return tuple(math.prod(map(self.size_of, axis)) for axis in self.axes)

    def size_of(self, factor: int) -> int:
        return self.width if factor == NEURONS else self.sizes[factor]

    @property
    def has_neurons(self) -> bool:
        return any(NEURONS in axis for axis in self.axes)

    def has_neurons_at(self, axis: int) -> bool:
        return NEURONS in self.axes[axis]

    def with_atoms(self, atoms: Sum) -> Random:
        return Random(atoms, self.axes, self.sizes, self.width)

    def with_axes(self, axes: Axes) -> Random:
        return Random(self.atoms, axes, self.sizes, self.width)

    def times(self, factor: float) -> Random:
        return self.with_atoms({atom: factor * c for atom, c in self.atoms.items()})

    def moved(self, change: Change, sizes: Shape, axes: Axes, mixes: bool = True) -> Random:
        """Return a linear map over positions of it."""
        atoms: dict[Atom, float] = {
            Moved(sizes, atom, change, mixes): c for atom, c in self.atoms.items()
        }
        return Random(atoms, axes, sizes, self.width)


@dataclass(frozen=True)
class Blocks:
    """Values side by side along one axis.

    A concatenation of branches makes them along the neurons, patches along their offsets.

    Attributes:
        parts: each with its own width; known features may be among them.
        axis: along which they are concatenated.
    """

    parts: tuple[Random | Known, ...]
    axis: int

    @property
    def shape(self) -> Shape:
        first, *others = (part.shape for part in self.parts)
        size = first[self.axis] + sum(other[self.axis] for other in others)
        return (*first[: self.axis], size, *first[self.axis + 1 :])


@dataclass(frozen=True, eq=False)
class Drawn:
    """A function of finitely many neurons, such as the scores of a head.

    Integrated over draws of them.

    Attributes:
        shape: of its array for one input.
        operands: that ``function`` takes as arrays.
        function: the operation that made it.
        num_heads: into which the program divided the neurons; 1 if it did not.
        undivided: pre-activations of which it is the reshaped array, if it is one.
    """

    shape: Shape
    operands: tuple[Random | Known | Drawn, ...]
    function: Callable[..., Array]
    num_heads: int
    undivided: Random | None = None


Value: TypeAlias = Known | Weight | Random | Blocks | Drawn


def added(one: Random, two: Random, operation: str) -> Random:
    """Return the sum of two values; functions of the same Gaussian number become one function."""
    two = like(two, one, operation)
    atoms = dict(one.atoms)
    for atom, c in two.atoms.items():
        atoms[atom] = atoms.get(atom, 0.0) + c
    kept: dict[Atom, float] = {}
    for atom, c in atoms.items():
        twin = None
        if isinstance(atom, Pointwise):
            twin = next(
                (
                    each
                    for each in kept
                    if isinstance(each, Pointwise) and ratio(atom.inside, each.inside) is not None
                ),
                None,
            )
        if twin is None:
            kept[atom] = c
            continue
        assert isinstance(atom, Pointwise)
        assert isinstance(twin, Pointwise)
        factor = ratio(atom.inside, twin.inside)
        assert factor is not None
        parts = [(kept.pop(twin), twin.apply, 1.0), (c, atom.apply, factor)]
        kept[Pointwise(one.sizes, _weighted(parts), twin.inside)] = 1.0
    return one.with_atoms(kept)


def _weighted(
    parts: Sequence[tuple[float, Callable[[Array], Array], float]], constant: float = 0.0
) -> Callable[[Array], Array]:
    """Return t ↦ Σ c σ(r t) + constant."""

    def function(t: Array) -> Array:
        total = jnp.full_like(t, constant)
        for c, sigma, r in parts:
            total = total + c * sigma(r * t)
        return total

    return function


def like(value: Random, other: Random, operation: str) -> Random:
    """Return ``value`` with the position axes of ``other``, for an elementwise operation.

    Raises:
        NoRule: if axes of positions of one are axes of neurons of the other.
    """
    if value.axes == other.axes and value.sizes == other.sizes:
        return value
    order = [factor for axis in other.axes for factor in axis if factor != NEURONS]
    own = [factor for axis in value.axes for factor in axis if factor != NEURONS]
    swapped = dict(zip(order, own, strict=False))
    fits = len(order) == len(own) and value.shape == other.shape
    renamed = tuple(tuple(swapped.get(factor, factor) for factor in axis) for axis in other.axes)
    if not fits or renamed != value.axes:
        raise refusal(operation, "between values whose positions and neurons differ")
    axes = tuple(swapped[number] for number in range(len(order)))
    sizes = tuple(value.sizes[axis] for axis in axes)
    if sizes != other.sizes:
        raise refusal(operation, "between values whose positions and neurons differ")

    def change(array: Entries, after: int) -> Entries:
        end = array.ndim - after
        start = end - len(axes)
        order = (*range(start), *(start + axis for axis in axes), *range(end, array.ndim))
        return array.transpose(order)

    return value.moved(change, sizes, other.axes, mixes=False)


def ratio(one: Combination, two: Combination) -> float | None:
    """Return r with one = r · two; None if there is none."""
    left = dict(one)
    right = dict(two)
    if left.keys() != right.keys():
        return None
    ratios = [left[atom] / right[atom] for atom in right if right[atom]]
    if not ratios or max(ratios) - min(ratios) > SAME_RATIO * max(map(abs, ratios)):
        return None
    return ratios[0]


def as_function(value: Random, operation: str) -> tuple[Combination, Callable[[Array], Array]]:
    """Return (u, σ) of a value that is a function σ(u) of one Gaussian number.

    Raises:
        NoRule: if it is not.
    """
    linear = {atom: c for atom, c in value.atoms.items() if is_gaussian(atom) and c}
    functions = {atom: c for atom, c in value.atoms.items() if isinstance(atom, Pointwise)}
    constant = sum(c for atom, c in value.atoms.items() if isinstance(atom, Constant))
    others = [
        atom
        for atom in value.atoms
        if not (is_gaussian(atom) or isinstance(atom, Pointwise | Constant))
    ]
    if others:
        what = (
            "constants that differ" if is_constant(others[0]) else "averages that are not Gaussian"
        )
        raise refusal(operation, f"of {what} between positions")
    combination = tuple(sorted(linear.items(), key=lambda item: id(item[0])))
    if not functions:
        if not combination:
            raise refusal(operation, "of a number that no weight determines")
        return combination, _weighted([(1.0, same, 1.0)], constant) if constant else same
    first = next(iter(functions))
    assert isinstance(first, Pointwise)
    if len(functions) == 1 and not combination and not constant and functions[first] == 1:
        return first.inside, first.apply
    parts: list[tuple[float, Callable[[Array], Array], float]] = []
    for atom, c in functions.items():
        assert isinstance(atom, Pointwise)
        factor = ratio(atom.inside, first.inside)
        if factor is None:
            raise refusal(operation, "of a sum of functions of different pre-activations")
        parts.append((c, atom.apply, factor))
    if combination:
        factor = ratio(combination, first.inside)
        if factor is None:
            raise refusal(operation, "of a sum that is not Gaussian")
        parts.append((1.0, same, factor))
    return first.inside, _weighted(parts, constant)


def same(t: Array) -> Array:
    return t


def reshaped(value: Random, shape: Sequence[int], operation: str) -> Random:
    """Return a value of another shape; axes of positions may be merged and divided.

    Raises:
        NoRule: if an axis of neurons would be divided.
    """
    factors = [factor for axis in value.axes for factor in axis]
    left = [value.size_of(factor) for factor in factors]
    parts: dict[int, list[int]] = {factor: [] for factor in factors}  # sizes of each factor
    found: list[list[tuple[int, int]]] = []  # (factor, its part) of each axis
    place = 0
    for size in shape:
        axis = []
        wanted = size
        while wanted > 1:
            while left[place] == 1:
                place += 1
            factor = factors[place]
            merges = wanted % left[place] == 0
            taken = left[place] if merges else wanted
            if left[place] % taken or (factor == NEURONS and taken != value.width):
                raise refusal(operation, "which divides the neurons or mixes them with positions")
            axis.append((factor, len(parts[factor])))
            parts[factor].append(taken)
            left[place] //= taken
            wanted //= taken
        found.append(axis)
    # Factors of size 1 may have lost their axis.
    numbers: dict[tuple[int, int], int] = {}
    sizes: list[int] = []
    for factor in range(len(value.sizes)):
        for part, size in enumerate(parts.get(factor, [])):
            numbers[factor, part] = len(sizes)
            sizes.append(size)
    axes = tuple(
        tuple(NEURONS if factor == NEURONS else numbers[factor, part] for factor, part in axis)
        for axis in found
    )
    if tuple(sizes) == value.sizes:
        return value.with_axes(axes)
    new = tuple(sizes)
    old = len(value.sizes)

    def change(array: Entries, after: int) -> Entries:
        end = array.ndim - after
        return array.reshape(*array.shape[: end - old], *new, *array.shape[end:])

    return value.moved(change, new, axes, mixes=False)


def summed(value: Random, axes: Sequence[int], operation: str) -> Random:
    """Return the sum over axes of positions.

    Raises:
        NoRule: for a sum over the width.
    """
    gone = {factor for axis in axes for factor in value.axes[axis]}
    if NEURONS in gone:
        raise refusal(operation, "over the width")
    kept = [factor for factor in range(len(value.sizes)) if factor not in gone]
    number = {factor: place for place, factor in enumerate(kept)} | {NEURONS: NEURONS}
    new = tuple(
        tuple(number[factor] for factor in axis)
        for place, axis in enumerate(value.axes)
        if place not in axes
    )
    if not gone:
        return value.with_axes(new)
    positions = [factor - len(value.sizes) for factor in sorted(gone)]
    return value.moved(
        lambda array, after: array.sum(axis=tuple(axis - after for axis in positions)),
        tuple(value.sizes[factor] for factor in kept),
        new,
    )


def along_positions(
    value: Random,
    change: Callable[[Any], Any],
    operation: str,
    touched: Sequence[int],
    mixes: bool = False,
) -> Random:
    """Apply a linear map of arrays with the shape of the value to its positions.

    Args:
        value: each of its axes is one axis of positions, the neurons, or of size 1.
        change: maps arrays of shape ``value.shape``, but for the neurons, of which there is 1.
        operation: its name.
        touched: axes that it does not leave as they are.
        mixes: whether entries of the result are sums; else each is an entry of the value, or 0.

    Raises:
        NoRule: if it mixes neurons.
    """
    if any(len(axis) > 1 for axis in value.axes) or any(
        NEURONS in value.axes[axis] for axis in touched
    ):
        raise refusal(operation, "along the neurons")
    single = tuple(1 if axis in ((), (NEURONS,)) else value.sizes[axis[0]] for axis in value.axes)
    order = [axis[0] for axis in value.axes if axis not in ((), (NEURONS,))]
    if len(order) != len(value.sizes):
        raise refusal(operation, "along the neurons")
    example = jax.eval_shape(change, jax.ShapeDtypeStruct(single, jnp.result_type(float)))
    is_position = [
        axis not in ((), (NEURONS,)) or example.shape[place] > 1
        for place, axis in enumerate(value.axes)
    ]
    sizes = tuple(size for size, counts in zip(example.shape, is_position, strict=True) if counts)
    axes: list[tuple[int, ...]] = []
    for axis, counts in zip(value.axes, is_position, strict=True):
        axes.append((sum(len(each) for each in axes if each != (NEURONS,)),) if counts else axis)
    count = len(value.sizes)

    def moved(array: Entries, after: int) -> Entries:
        end = array.ndim - after
        before = array.shape[: end - count]
        behind = array.shape[end:]
        # (before, positions in the order of the array, behind); batch axes keep their places.
        flat = array.reshape(-1, *value.sizes, math.prod(behind))
        if order != list(range(count)):
            flat = flat.transpose(0, *(1 + factor for factor in order), count + 1)
        if flat.size == math.prod(single):  # nothing but positions
            return change(flat.reshape(single)).reshape(*before, *sizes, *behind)
        each = jax.vmap(jax.vmap(change), in_axes=-1, out_axes=-1)
        return each(flat.reshape(len(flat), *single, -1)).reshape(*before, *sizes, *behind)

    return value.moved(moved, sizes, tuple(axes), mixes)
