"""Attention at infinite width.

Means over draws of the neurons of a head (docs/math/infinite_width.md).

Scores and their softmax have no closed form. Queries, keys and values of a head are
Gaussian processes over inputs and positions, so they can be drawn; the gradients of a draw
give its tangent kernel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.kernels._limit_moments import (
    Atom,
    Constant,
    Gaussian,
    Moments,
    Moved,
    NeedsAllPairs,
    NeedsDraws,
    Pair,
    Pointwise,
    bases,
)
from ntk_core.kernels._limit_values import NEURONS, Drawn, Known, Random, refusal

NUM_HEADS = 16_384  # drawn heads of each layer of attention, as for infinite_heads_ntk
NUM_MEANS = 8  # independent means whose spread is the standard error

Draws = Mapping[Gaussian, Array]  # (n, width, *sizes) of each pre-activation


def products_of_drawn(
    value: Drawn, contracted: Sequence[int], moments: Moments, operation: str
) -> tuple[dict[Pair, Array], Array]:
    """Return Σ_f E[a_f a_f'] and Σ_f E[Θ(a_f, a_f')].

    The sums are over the contracted entries f, for pairs of kept positions.

    With independent u_f ~ N(0, 1), both are means over draws: of a·a', and of products of
    gradients of Σ_f u_f a_f.

    Raises:
        NeedsDraws: before inputs are joined and a key is given.
        NoRule: for heads that depend on each other.
    """
    if not moments.all_pairs:
        raise NeedsAllPairs
    if moments.key is None:
        raise NeedsDraws
    widths = _widths(value)
    num_heads = _independent_heads(value, contracted, widths, operation)
    count = moments.num_left
    kept = [size for axis, size in enumerate(value.shape) if axis not in contracted]
    num_positions = math.prod(kept)
    num_entries = math.prod(value.shape) // num_positions
    roots = {atom: _root(atom, count) for atom in widths}
    tangents = {atom: _matrix(atom.tangent, count, atom.sizes) for atom in widths}
    repeats = math.ceil(NUM_HEADS / NUM_MEANS / num_heads)

    def of_draws(draws: list[Array]) -> Array:
        return entries(value, contracted, dict(zip(widths, draws, strict=True)))

    def one(key: Array) -> tuple[Array, Array]:
        of_mixture, *keys = jax.random.split(key, 1 + len(widths))
        draws = []
        for (atom, width), own in zip(widths.items(), keys, strict=True):
            normal = jax.random.normal(own, (width, len(roots[atom])))
            drawn = (normal @ roots[atom].T).reshape(width, count, *atom.sizes)
            draws.append(jnp.moveaxis(drawn, 0, 1))
        mixture = jax.random.normal(of_mixture, (num_entries,))
        a, pull_back = jax.vjp(of_draws, draws)
        # Inputs do not meet, so one pull-back serves all of them.
        places = jnp.eye(num_positions)[:, None, :, None] * mixture
        places = jnp.broadcast_to(places, (num_positions, *a.shape))
        (gradients,) = jax.vmap(pull_back)(places)  # (positions, n, width, *sizes) each
        tangent = jnp.zeros((count, count, num_positions, num_positions))
        for atom, gradient in zip(widths, gradients, strict=True):
            flat = gradient.reshape(num_positions, count, widths[atom], -1)
            theta = tangents[atom].reshape(count, flat.shape[-1], count, flat.shape[-1])
            tangent += jnp.einsum("pnws,nsmt,qmwt->nmpq", flat, theta, flat, optimize=True)
        return jnp.einsum("npf,mqf->nmpq", a, a), tangent

    def add(total: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], None]:
        return jax.tree.map(jnp.add, total, one(key)), None

    zeros = jnp.zeros((count, count, num_positions, num_positions))
    own_key = jax.random.fold_in(moments.key, moments.num_drawn)
    moments.num_drawn += 1
    keys = jax.random.split(own_key, repeats)
    (covariance, tangent), _ = jax.lax.scan(add, (zeros, zeros), keys)
    shape = (count, count, *kept, *kept)
    cross = (covariance / repeats).reshape(shape)
    own = jnp.moveaxis(jnp.diagonal(cross, axis1=0, axis2=1), -1, 0)
    products = {Pair.CROSS: cross, Pair.LEFT: own, Pair.RIGHT: own}
    return products, (tangent / repeats).reshape(shape)


def entries(value: Drawn, contracted: Sequence[int], draws: Draws) -> Array:
    """Return the value for given draws, (n, positions, contracted entries)."""
    leaves = _leaves(value)
    randoms = [leaf for leaf in leaves if isinstance(leaf, Random)]
    knowns = [leaf for leaf in leaves if isinstance(leaf, Known)]
    count = len(next(iter(draws.values())))
    arrays = [_realized(random, draws) for random in randoms]
    arrays += [jnp.asarray(known.left) for known in knowns]
    mapped = [0] * len(randoms) + [0 if known.depends else None for known in knowns]
    order = [axis for axis in range(len(value.shape)) if axis not in contracted]
    num_positions = math.prod(value.shape[axis] for axis in order)

    def of_one_input(*arrays: Array) -> Array:
        given = {id(leaf): array for leaf, array in zip([*randoms, *knowns], arrays, strict=True)}
        whole = _evaluated(value, given)
        return jnp.transpose(whole, (*order, *contracted)).reshape(num_positions, -1)

    # Known rows are all inputs; a check takes the first ones.
    arrays = [
        array if place is None else array[:count]
        for array, place in zip(arrays, mapped, strict=True)
    ]
    return jax.vmap(of_one_input, mapped)(*arrays)


def _evaluated(value: Random | Known | Drawn, given: dict[int, Array]) -> Array:
    """Evaluate the operations once each; ``given`` grows by their results."""
    if id(value) not in given:
        assert isinstance(value, Drawn)
        operands = [_evaluated(operand, given) for operand in value.operands]
        given[id(value)] = value.function(*operands)
    return given[id(value)]


def _leaves(value: Drawn) -> list[Random | Known]:
    found: dict[int, Random | Known | Drawn] = {}
    waiting: list[Random | Known | Drawn] = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in found:
            continue
        found[id(one)] = one
        if isinstance(one, Drawn):
            waiting += one.operands
    return [each for each in found.values() if not isinstance(each, Drawn)]


def _widths(value: Drawn) -> dict[Gaussian, int]:
    """Return the pre-activations that it depends on, and their numbers of neurons."""
    widths: dict[Gaussian, int] = {}
    for leaf in _leaves(value):
        if isinstance(leaf, Random):
            for atom in leaf.atoms:
                for base in bases(atom):
                    widths[base] = leaf.width
    return widths


def _realized(random: Random, draws: Draws) -> Array:
    """Return a random value for given draws, (n, *shape)."""
    some = next(iter(draws.values()))
    lead = (len(some), random.width)

    def of(atom: Atom) -> Array:
        if isinstance(atom, Gaussian):
            return draws[atom]
        if isinstance(atom, Moved):
            return atom.change(of(atom.of), 0)
        if isinstance(atom, Constant):
            return jnp.ones((*lead, *atom.sizes))
        assert isinstance(atom, Pointwise)
        inside = [c * of(part) for part, c in atom.inside]
        return atom.apply(jnp.asarray(sum(inside)))

    total = jnp.asarray(sum(c * of(atom) for atom, c in random.atoms.items()))
    factors = [factor for axis in random.axes for factor in axis]
    # Axes of the array (n, neurons, *sizes); those of size 1 may have no place in the value.
    axes = [1 if factor == NEURONS else 2 + factor for factor in factors]
    missing = [axis for axis in range(1, total.ndim) if axis not in axes]
    return jnp.transpose(total, (0, *missing, *axes)).reshape(len(some), *random.shape)


def _matrix(array: Array, count: int, sizes: Sequence[int]) -> Array:
    """Reshape (n, n, *sizes, *sizes) to a matrix of inputs and positions."""
    size = count * math.prod(sizes)
    k = len(sizes)
    order = (0, *range(2, 2 + k), 1, *range(2 + k, 2 + 2 * k))
    return jnp.transpose(array, order).reshape(size, size)


def _root(atom: Gaussian, count: int) -> Array:
    """Return R with R Rᵀ the covariance; rounding may make eigenvalues negative."""
    values, vectors = jnp.linalg.eigh(_matrix(atom.covariance[Pair.CROSS], count, atom.sizes))
    return vectors * jnp.sqrt(jnp.maximum(values, 0))


def _independent_heads(
    value: Drawn, contracted: Sequence[int], widths: Mapping[Gaussian, int], operation: str
) -> int:
    """Return the number of groups of contracted entries that share no neuron.

    Raises:
        NoRule: if there are fewer than heads: they depend on each other, or are not contracted.
    """
    if not widths:
        raise refusal(operation, "of a number that no weight determines")
    num_entries = math.prod(value.shape[axis] for axis in contracted)
    groups = _groups(_dependence(value, contracted, widths))
    # Entries of a single head are its neurons, or a part of those of one large projection.
    if groups == 1 and all(width % num_entries for width in widths.values()):
        raise refusal(operation, "whose weight mixes positions, and not neurons")
    if groups < value.num_heads:
        raise refusal(operation, f"of {value.num_heads} heads that depend on each other")
    return groups


def _dependence(
    value: Drawn, contracted: Sequence[int], widths: Mapping[Gaussian, int]
) -> np.ndarray:
    """Return whether contracted entries depend on neurons.

    The shape is (entries, neurons); it is found at one random draw.
    """
    rng = np.random.default_rng(0)
    draws = [
        jnp.asarray(rng.standard_normal((1, width, *atom.sizes))) for atom, width in widths.items()
    ]

    def mixture(draws: list[Array]) -> Array:
        of_atoms = dict(zip(widths, draws, strict=True))
        return _signed(entries(value, contracted, of_atoms)[0])

    parts = []
    for slope in jax.jacrev(mixture)(draws):
        flat = jnp.abs(slope[:, 0])
        parts.append(flat.reshape(*flat.shape[:2], -1).sum(axis=-1) != 0)
    return np.asarray(jnp.concatenate(parts, axis=1))


def _signed(array: Array) -> Array:
    """Return random sums over positions, (entries,)."""
    signs = np.random.default_rng(1).standard_normal(len(array))
    return jnp.asarray(signs) @ array


def _groups(depends: np.ndarray) -> int:
    """Count connected groups of rows that share columns; rows that depend on nothing are none."""
    groups: list[np.ndarray] = []
    for row in depends[depends.any(axis=1)]:
        joined = row
        apart = []
        for group in groups:
            if (group & row).any():
                joined = joined | group
            else:
                apart.append(group)
        groups = [*apart, joined]
    return len(groups)
