"""Descriptions of reshaped and repeated copies, against the numbers of their entries."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.traced._copies import PLUMBING, Rows, copied, in_order, same_copies

NUM_ROWS = 3


def divided(rng: np.random.Generator, size: int) -> list[int]:
    """Return some factors of a size."""
    factors = []
    while size > 1:
        divisors = [each for each in range(2, size + 1) if size % each == 0]
        factors.append(int(rng.choice(divisors)))
        size //= factors[-1]
    for _ in range(rng.integers(0, 2)):
        factors.insert(int(rng.integers(0, len(factors) + 1)), 1)
    return factors or [1]


def with_rows(shape: list[int], at: int) -> list[int]:
    """Return the shape of a batch whose rows lengthen one axis."""
    return [size * NUM_ROWS if axis == at else size for axis, size in enumerate(shape)]


def plumbing(function, array):
    closed = jax.make_jaxpr(function)(array)
    assert {eqn.primitive.name for eqn in closed.eqns} <= PLUMBING
    return closed.eqns


def has_rows_apart(batch: np.ndarray, single: np.ndarray) -> bool:
    """Whether each row's entries lie along all axes as those of a single row do.

    The entry e of row i is the number e · n + i. Axes of size 1 of a single row are left out.
    """
    for row in range(NUM_ROWS):
        places = np.argwhere(batch % NUM_ROWS == row)  # in the order of the entries
        entries = batch[batch % NUM_ROWS == row] // NUM_ROWS
        expected = np.stack(np.unravel_index(entries, single.shape), axis=1)
        for axis, size in enumerate(single.shape):
            if size == 1:
                continue
            _, ranks = np.unique(places[:, axis], return_inverse=True)
            if not np.array_equal(ranks, expected[:, axis]):
                return False
    return True


@pytest.mark.parametrize("part", range(4))
def test_same_copies_have_each_row_at_the_same_places(part):
    """300 random reshapes; some of them put rows where they do not belong."""
    rng = np.random.default_rng(part)
    verdicts = []
    truths = []
    for _ in range(300):
        shape = divided(rng, int(rng.choice([4, 6, 8, 12])))
        axis = int(rng.integers(0, len(shape)))
        outer = int(rng.choice([k for k in range(1, shape[axis] + 1) if shape[axis] % k == 0]))
        rows = Rows(NUM_ROWS, outer, shape[axis] // outer)
        size = math.prod(shape)
        single = np.arange(size).reshape(shape)
        apart = single.reshape(*shape[:axis], outer, 1, rows.inner, *shape[axis + 1 :])
        numbers = np.arange(NUM_ROWS).reshape(NUM_ROWS, *(1,) * (len(shape) - axis))
        batch = (apart * NUM_ROWS + numbers).reshape(with_rows(shape, axis))
        target = divided(rng, size)
        place = int(rng.integers(0, len(target)))

        def of_batch(a, target=target, place=place):
            return a.reshape(with_rows(target, place))

        def of_single(a, target=target):
            return a.reshape(target)

        one = copied(in_order(tuple(shape), {axis: rows}), plumbing(of_batch, batch))
        other = copied(in_order(tuple(shape)), plumbing(of_single, single))
        verdicts.append(same_copies(one, other))
        truths.append(has_rows_apart(of_batch(batch), np.arange(size).reshape(target)))
        assert truths[-1] or not verdicts[-1], (shape, axis, rows, target, place)
    # Nearly all copies that are the same are proven.
    assert np.sum(verdicts) > 0.9 * np.sum(truths)
    assert 0.1 < np.mean(truths) < 0.9


def columns(a):
    return jnp.broadcast_to(a[:, None], (6, 6))


def rows_of_copies(a):
    return jnp.broadcast_to(a[None], (6, 6))


def test_other_repeats_are_not_called_the_same():
    given = in_order((6,))
    numbers = np.arange(6)
    one = copied(given, plumbing(columns, numbers))
    other = copied(given, plumbing(rows_of_copies, numbers))
    assert same_copies(one, one)
    assert same_copies(other, other)
    assert not same_copies(one, other)
    flat = copied(given, plumbing(lambda a: columns(a).reshape(36), numbers))
    tiled = copied(given, plumbing(lambda a: rows_of_copies(a).reshape(36), numbers))
    assert same_copies(flat, flat)
    assert not same_copies(flat, tiled)


def test_copies_without_parts_are_never_the_same():
    """Axes of two and three entries of which each is a third of another axis."""
    given = in_order((6,))
    parts = copied(given, plumbing(lambda a: columns(a).reshape(4, 9), np.arange(6)))
    assert parts is None
    assert not same_copies(parts, parts)
