"""Moments of the values of infinitely wide networks (docs/math/infinite_width.md).

At infinite width the entries of a value along its width are independent copies of one random
number. This number is a sum of *atoms*: Gaussian pre-activations, functions of Gaussian numbers,
linear maps of atoms over positions, and the constant 1. Second moments and tangent kernels of all
pairs of atoms follow from those of the Gaussian ones.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.kernels._gaussian import has_closed_form, mean, mean_slope, pair_expectations
from ntk_core.networks.architectures import Activation, activation_function

Shape: TypeAlias = tuple[int, ...]
# (array, number of axes behind the positions) → the array with changed positions. NumPy's arrays
# stay such, so that maps of small arrays of numbers compile nothing.
Entries: TypeAlias = Array | np.ndarray
Change: TypeAlias = Callable[[Any, int], Any]


class Pair(enum.Enum):
    """Pairs of inputs: every x1 with every x2, or each input with itself."""

    CROSS = "x1 with x2"
    LEFT = "x1 with itself"
    RIGHT = "x2 with itself"


class NeedsAllPairs(Exception):
    """A map mixes positions, so covariances of equal positions are not enough."""


class NeedsDraws(Exception):
    """A value has no closed expectation, so one list of inputs and a random key are needed."""


@dataclass(frozen=True, eq=False)
class Constant:
    """The number 1 at each position."""

    sizes: Shape


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A pre-activation: an independent Gaussian number for each neuron.

    Attributes:
        sizes: of its position axes.
        covariance: by pair; (n1, n2, *sizes, *sizes) for CROSS, else (n, *sizes, *sizes). One set
            of sizes if only equal positions are kept.
        tangent: sums of products of derivatives, as the covariance of CROSS.
    """

    sizes: Shape
    covariance: Mapping[Pair, Array]
    tangent: Array


@dataclass(frozen=True, eq=False)
class Pointwise:
    """A function of a Gaussian number, σ(Σ_k c_k g_k).

    Attributes:
        function: σ; an activation of our networks keeps its name, which has a closed form.
    """

    sizes: Shape
    function: Activation
    inside: Combination

    @property
    def apply(self) -> Callable[[Array], Array]:
        return (
            activation_function(self.function) if isinstance(self.function, str) else self.function
        )


@dataclass(frozen=True, eq=False)
class Moved:
    """A linear map over the positions of an atom.

    Attributes:
        change: the map of arrays (..., *of.sizes, *behind) to (..., *sizes, *behind).
        mixes: whether an entry of the result is a sum over positions. Else it is an entry of the
            atom, or 0, so equal positions come from equal positions.
    """

    sizes: Shape
    of: Atom
    change: Change
    mixes: bool = True


Atom: TypeAlias = Constant | Gaussian | Pointwise | Moved
Combination: TypeAlias = tuple[tuple[Atom, float], ...]  # of Gaussian atoms
Sum: TypeAlias = Mapping[Atom, float]


def is_gaussian(atom: Atom) -> bool:
    """Whether an atom is Gaussian: a pre-activation, or a linear map of one."""
    return isinstance(atom, Gaussian) or (isinstance(atom, Moved) and is_gaussian(atom.of))


def is_constant(atom: Atom) -> bool:
    """Whether an atom is the same number in every network."""
    return isinstance(atom, Constant) or (isinstance(atom, Moved) and is_constant(atom.of))


@dataclass
class Moments:
    """Second moments and tangent kernels of pairs of atoms, each computed once.

    Attributes:
        num_left, num_right: numbers of inputs n1 and n2.
        all_pairs: keep all pairs of positions, or equal positions only.
        num_nodes: of every quadrature.
        key: of draws, if both sides are the same inputs.
        has_one_side: whether both sides are the same inputs, which then share moments.
        num_drawn: means over draws so far.
        is_exact: whether all expectations so far have closed forms.
        entries: the largest number of pairs of positions of two inputs so far.
    """

    num_left: int
    num_right: int
    all_pairs: bool
    num_nodes: int
    key: Array | None = None
    has_one_side: bool = False
    num_drawn: int = 0
    is_exact: bool = True
    entries: int = 1
    _sums: dict[tuple[frozenset[tuple[Atom, float]], Pair], Array] = field(default_factory=dict)
    _means: dict[tuple[frozenset[tuple[Atom, float]], Pair], Array | None] = field(
        default_factory=dict
    )
    _depends: dict[Atom, frozenset[Gaussian]] = field(default_factory=dict)
    _products: dict[tuple[Atom, Atom, Pair], Array | None] = field(default_factory=dict)
    _tangents: dict[tuple[Atom, Atom], Array | None] = field(default_factory=dict)
    _expected: dict[tuple[Atom, Atom, Pair], tuple[Array, Array]] = field(default_factory=dict)

    def total(self, atoms: Sum, pair: Pair) -> Array:
        """E[f f'] of a sum of atoms of the same sizes.

        A residual network adds one atom in each block, so a sum is found from that with one
        atom less: the cost of a block does not grow with the number of blocks below.
        """
        pair = self.known_as(pair)
        key = (frozenset(atoms.items()), pair)
        if key not in self._sums:
            self._sums[key] = self._grown(atoms, pair)
        return self._sums[key]

    def _grown(self, atoms: Sum, pair: Pair) -> Array:
        if not atoms:
            raise ValueError("a sum of no atoms")
        atom, rest = _without_one(atoms, {known for known, of in self._sums if of is pair})
        c = atoms[atom]
        total = self._added([(c * c, self.product(atom, atom, pair))], atom.sizes, pair)
        if not rest:
            return total
        terms: list[tuple[float, Array | None]] = []
        independent: dict[Atom, float] = {}
        for other, c_other in rest.items():
            if self._share(atom, other):
                terms.append((c * c_other, self.product(atom, other, pair)))
                terms.append((c * c_other, self.product(other, atom, pair)))
            else:
                independent[other] = c_other
        first, second = self._sides(pair)
        for one, two in (({atom: 1.0}, independent), (independent, {atom: 1.0})):
            mean1 = self._mean_of(one, first)
            mean2 = self._mean_of(two, second)
            if mean1 is not None and mean2 is not None:
                terms.append((c, self._outer(mean1, mean2, atom.sizes, atom.sizes, pair)))
        return self.total(rest, pair) + self._added([(1.0, total), *terms], atom.sizes, pair)

    def _mean_of(self, atoms: Sum, side: Pair) -> Array | None:
        """E[f] of a sum of atoms, (n, *sizes); None for 0."""
        if not atoms:
            return None
        side = self.known_as(side)
        key = (frozenset(atoms.items()), side)
        if key not in self._means:
            atom, rest = _without_one(atoms, {known for known, of in self._means if of is side})
            own = self.mean(atom, side)
            total = self._mean_of(rest, side)
            if own is not None:
                total = atoms[atom] * own + (0.0 if total is None else total)
            self._means[key] = total
        return self._means[key]

    def total_tangent(self, atoms: Sum) -> Array:
        """Sum of the products of derivatives of a sum of atoms."""
        terms = [
            (c1 * c2, self.tangent(atom1, atom2))
            for atom1, c1 in atoms.items()
            for atom2, c2 in atoms.items()
            if self._share(atom1, atom2)
        ]
        return self._added(terms, next(iter(atoms)).sizes, Pair.CROSS)

    def _added(self, terms: list[tuple[float, Array | None]], sizes: Shape, pair: Pair) -> Array:
        total = None
        for factor, term in terms:
            if term is not None:
                scaled = _scaled(factor, term)
                total = scaled if total is None else total + scaled
        return jnp.zeros(self.shape(sizes, sizes, pair)) if total is None else total

    def _share(self, one: Atom, two: Atom) -> bool:
        """Whether two atoms depend on a common pre-activation."""
        return not self._bases(one).isdisjoint(self._bases(two))

    def _bases(self, atom: Atom) -> frozenset[Gaussian]:
        if atom not in self._depends:
            self._depends[atom] = frozenset(bases(atom))
        return self._depends[atom]

    def product(self, one: Atom, two: Atom, pair: Pair) -> Array | None:
        """E[a a'] of two atoms; None for 0."""
        pair = self.known_as(pair)
        key = (one, two, pair)
        if key not in self._products:
            found = self._product(one, two, pair)
            if found is not None:
                self.entries = max(self.entries, math.prod(found.shape[len(self.rows(pair)) :]))
            self._products[key] = found
        return self._products[key]

    def tangent(self, one: Atom, two: Atom) -> Array | None:
        """Sum of the products of derivatives of two atoms for x1 and x2; None for 0."""
        key = (one, two)
        if key not in self._tangents:
            self._tangents[key] = self._tangent(one, two)
        return self._tangents[key]

    def _product(self, one: Atom, two: Atom, pair: Pair) -> Array | None:
        if not self._share(one, two):  # independent, as a constant is of everything
            return self._product_of_means(one, two, pair)
        if isinstance(one, Moved) or isinstance(two, Moved):
            return self._through(one, two, lambda a, b: self.product(a, b, pair))
        if isinstance(one, Gaussian) and isinstance(two, Gaussian):
            return one.covariance[pair] if one is two else None
        if isinstance(one, Pointwise) and isinstance(two, Pointwise):
            covariance = self._combined(one, two, pair)
            assert covariance is not None
            return self._expectations(one, two, pair, covariance)[0]
        # E[σ(u) v] = E[σ'(u)] E[u v] (Stein).
        covariance = self._combined(one, two, pair)
        return None if covariance is None else covariance * self._mean_slopes(one, two, pair)

    def _tangent(self, one: Atom, two: Atom) -> Array | None:
        if not self._share(one, two):
            return None
        if isinstance(one, Moved) or isinstance(two, Moved):
            return self._through(one, two, self.tangent)
        if isinstance(one, Gaussian) and isinstance(two, Gaussian):
            return one.tangent if one is two else None
        tangent = self._combined_tangents(one, two)
        if tangent is None:
            return None
        if isinstance(one, Pointwise) and isinstance(two, Pointwise):
            covariance = self._combined(one, two, Pair.CROSS)
            assert covariance is not None
            return tangent * self._expectations(one, two, Pair.CROSS, covariance)[1]
        return tangent * self._mean_slopes(one, two, Pair.CROSS)

    def _expectations(
        self, one: Pointwise, two: Pointwise, pair: Pair, covariance: Array
    ) -> tuple[Array, Array]:
        """(E[σ(u)τ(v)], E[σ'(u)τ'(v)])."""
        key = (one, two, pair)
        if key not in self._expected:
            first, second = self._sides(pair)
            q1 = self._at_first(self.variance(one.inside, first), two.sizes, pair)
            q2 = self._at_second(self.variance(two.inside, second), one.sizes, pair)
            other = None if one.function == two.function else two.function
            self.is_exact &= other is None and has_closed_form(one.function)
            self._expected[key] = pair_expectations(
                one.function, covariance, q1, q2, self.num_nodes, other
            )
        return self._expected[key]

    def _mean_slopes(self, one: Atom, two: Atom, pair: Pair) -> Array:
        """E[σ'(u)] of the atom that is a function; the other one is Gaussian."""
        first, second = self._sides(pair)
        if isinstance(one, Pointwise):
            variance = self.variance(one.inside, first)
            slope = mean_slope(one.function, variance, self.num_nodes)
            return self._at_first(slope, two.sizes, pair)
        assert isinstance(two, Pointwise)
        variance = self.variance(two.inside, second)
        slope = mean_slope(two.function, variance, self.num_nodes)
        return self._at_second(slope, one.sizes, pair)

    def _combined(self, one: Atom, two: Atom, pair: Pair) -> Array | None:
        """E[u v] of the Gaussian numbers inside of two atoms; None if they are independent."""
        total = None
        for part1, c1 in _inside(one):
            for part2, c2 in _inside(two):
                term = self.product(part1, part2, pair)
                if term is not None:
                    scaled = _scaled(c1 * c2, term)
                    total = scaled if total is None else total + scaled
        return total

    def _combined_tangents(self, one: Atom, two: Atom) -> Array | None:
        total = None
        for part1, c1 in _inside(one):
            for part2, c2 in _inside(two):
                term = self.tangent(part1, part2)
                if term is not None:
                    scaled = _scaled(c1 * c2, term)
                    total = scaled if total is None else total + scaled
        return total

    def variance(self, inside: Combination, side: Pair) -> Array:
        """Variances of a Gaussian combination at each position, (n, *sizes)."""
        total = self.total(dict(inside), side)
        sizes = inside[0][0].sizes
        if not (self.all_pairs and sizes):
            return total
        axes = list(range(1, 1 + len(sizes)))
        return jnp.einsum(total, [0, *axes, *axes], [0, *axes])

    def mean(self, atom: Atom, side: Pair) -> Array | None:
        """E[a], (n, *sizes); None for 0."""
        if is_gaussian(atom):
            return None
        if isinstance(atom, Constant):
            count = self.num_left if side is Pair.LEFT else self.num_right
            return jnp.ones((count, *atom.sizes))
        if isinstance(atom, Moved):
            inner = self.mean(atom.of, side)
            return None if inner is None else atom.change(inner, 0)
        assert isinstance(atom, Pointwise)
        return mean(atom.function, self.variance(atom.inside, side), self.num_nodes)

    def _product_of_means(self, one: Atom, two: Atom, pair: Pair) -> Array | None:
        first, second = self._sides(pair)
        mean1 = self.mean(one, first)
        mean2 = self.mean(two, second)
        if mean1 is None or mean2 is None:
            return None
        return self._outer(mean1, mean2, one.sizes, two.sizes, pair)

    def _outer(
        self, values1: Array, values2: Array, sizes1: Shape, sizes2: Shape, pair: Pair
    ) -> Array:
        """Products of (n, *sizes1) and (n, *sizes2) for all pairs of inputs and positions."""
        return self._at_first(values1, sizes2, pair) * self._at_second(values2, sizes1, pair)

    def _through(
        self, one: Atom, two: Atom, of: Callable[[Atom, Atom], Array | None]
    ) -> Array | None:
        """Apply the maps over positions of one or both atoms to the moments of what they map."""
        if not self.all_pairs:
            return self._through_equal(one, two, of)
        if isinstance(two, Moved):
            inner = of(one, two.of)
            return None if inner is None else two.change(inner, 0)
        assert isinstance(one, Moved)
        inner = of(one.of, two)
        # Positions of the first atom are before those of the second one.
        return None if inner is None else one.change(inner, len(two.sizes))

    def _through_equal(
        self, one: Atom, two: Atom, of: Callable[[Atom, Atom], Array | None]
    ) -> Array | None:
        if not isinstance(one, Moved) or not isinstance(two, Moved):
            raise NeedsAllPairs
        if one.change is not two.change or one.mixes:
            raise NeedsAllPairs
        inner = of(one.of, two.of)
        return None if inner is None else one.change(inner, 0)

    def known_as(self, pair: Pair) -> Pair:
        """Return the pair that has these moments."""
        return Pair.LEFT if self.has_one_side and pair is Pair.RIGHT else pair

    def rows(self, pair: Pair) -> Shape:
        """Return the numbers of inputs, (n1, n2) or (n,)."""
        counts = {
            Pair.CROSS: (self.num_left, self.num_right),
            Pair.LEFT: (self.num_left,),
            Pair.RIGHT: (self.num_right,),
        }
        return counts[pair]

    def positions_equal(self, sizes: Shape, own: Collection[int]) -> Array:
        """Return 1 for pairs of positions that are equal along the axes ``own``, else 0."""
        if not self.all_pairs:
            return jnp.ones(sizes)
        equal = jnp.ones((*sizes, *sizes))
        for axis in own:
            shape = [1] * (2 * len(sizes))
            shape[axis] = shape[axis + len(sizes)] = sizes[axis]
            equal = equal * jnp.eye(sizes[axis]).reshape(shape)
        return equal

    def _sides(self, pair: Pair) -> tuple[Pair, Pair]:
        return (Pair.LEFT, Pair.RIGHT) if pair is Pair.CROSS else (pair, pair)

    def shape(self, sizes1: Shape, sizes2: Shape, pair: Pair) -> Shape:
        """Return the shape of moments of two values."""
        rows = self.rows(pair)
        return (*rows, *sizes1, *sizes2) if self.all_pairs else (*rows, *sizes1)

    def _at_first(self, values: Array, others: Shape, pair: Pair) -> Array:
        """Values (n, *sizes) of the first member of each pair, to broadcast against moments."""
        if pair is Pair.CROSS:
            values = values[:, None]
        return values[(..., *(None,) * len(others))] if self.all_pairs else values

    def _at_second(self, values: Array, others: Shape, pair: Pair) -> Array:
        """Values (n, *sizes) of the second member of each pair."""
        if self.all_pairs:
            values = jnp.expand_dims(values, tuple(range(1, 1 + len(others))))
        return values[None] if pair is Pair.CROSS else values


def _scaled(factor: float, term: Array) -> Array:
    return term if factor == 1 else factor * term


def _without_one(
    atoms: Sum, known: Collection[frozenset[tuple[Atom, float]]]
) -> tuple[Atom, dict[Atom, float]]:
    """Return an atom and the others, if possible so that the sum of the others is known."""
    items = frozenset(atoms.items())
    chosen = list(atoms)[-1]
    for atom, c in atoms.items():
        if items - {(atom, c)} in known:
            chosen = atom
            break
    return chosen, {atom: c for atom, c in atoms.items() if atom is not chosen}


def bases(atom: Atom) -> list[Gaussian]:
    """Return the pre-activations on which an atom depends."""
    if isinstance(atom, Gaussian):
        return [atom]
    if isinstance(atom, Moved):
        return bases(atom.of)
    found: list[Gaussian] = []
    if isinstance(atom, Pointwise):
        for part, _ in atom.inside:
            found += bases(part)
    return found


def _inside(atom: Atom) -> Combination:
    return atom.inside if isinstance(atom, Pointwise) else ((atom, 1.0),)
