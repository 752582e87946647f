"""Products of plain gradients, with which kernels are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from ntk_core.traced._program import Program
from ntk_core.traced._quickly import quickly

# Gradients may overflow: infinite and unknown numbers allow no verdict, and are no warning.
QUIET = np.errstate(over="ignore", under="ignore", invalid="ignore")
STRETCH = 2**14


class Place(NamedTuple):
    """Where a kernel is compared.

    Attributes:
        rows: x_i and x_j.
        mixture: u, (C,).
        chosen: outputs c.
        factors: of all outputs, (C,).
    """

    rows: np.ndarray
    mixture: np.ndarray
    chosen: np.ndarray
    factors: np.ndarray


class Products(NamedTuple):
    """Inner products of plain gradients, in float64, by parameter.

    Attributes:
        values: (parameters, entries).
        scales: products of the norms, in which an error is measured, of the same shape.
    """

    values: np.ndarray
    scales: np.ndarray

    def of(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Values and scales of one parameter."""
        return self.values[number], self.scales[number]

    def total(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Values and scales of the sum over parameters, the first entries."""
        return self.values.sum(0)[:size], self.scales.sum(0)[:size]


def plain_products(
    program: Program, leaves: list[Array], at: Place, is_compiled: bool = True
) -> Products:
    """Return the entries of :func:`of_mixture` from plain gradients.

    Two of the gradients exist at a time.
    """
    gradient: Callable[..., list[Array]] = (
        quickly(gradient_of_mixture) if is_compiled else gradient_of_mixture
    )
    factors = at.factors.astype(np.float32)
    one = gradient(program, leaves, at.rows[0], at.mixture * factors)
    own = _inner(one, one)  # (parameters,)
    crossed = []
    squares = []
    for output in at.chosen:
        unit = np.zeros(program.num_outputs, np.float32)
        unit[output] = factors[output]
        two = gradient(program, leaves, at.rows[1], unit)
        crossed.append(_inner(one, two))
        squares.append(_inner(two, two))
    norms = np.stack(squares, 1)
    mixed = np.sqrt(own)[:, None] * np.sqrt(norms)
    values = np.concatenate([np.stack(crossed, 1), own[:, None], norms], 1)
    return Products(values, np.concatenate([mixed, own[:, None], norms], 1))


def of_mixture(blocks: np.ndarray, at: Place) -> np.ndarray:
    """Return uᵀ K[i, j] e_c for chosen outputs c.

    Then uᵀ K[i, i] u and the chosen K[j, j, c, c], if they are known.

    Args:
        blocks: K[i, j], K[i, i] and K[j, j], (1 or 3, C, C).
    """
    u = at.mixture.astype(np.float64)
    wide_blocks = blocks.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        found = [u @ wide_blocks[0][:, at.chosen]]
        if len(blocks) > 1:
            found.append(np.atleast_1d(u @ wide_blocks[1] @ u))
            found.append(np.diagonal(wide_blocks[2])[at.chosen])
    return np.concatenate(found)


def gradient_of_mixture(
    program: Program, leaves: list[Array], row: Array, seed: Array
) -> list[Array]:
    """Return ∇⟨u, f(x)⟩ of all moving parameters, by reverse mode."""
    places = list(program.names)

    def mixture(moving: list[Array]) -> Array:
        values = dict(enumerate(leaves)) | dict(zip(places, moving, strict=True))
        outputs = program.row(list(values.values()), row)
        return jnp.sum(outputs * seed.astype(outputs.dtype))

    with jax.default_matmul_precision("highest"):
        return jax.grad(mixture)([leaves[at] for at in places])


def _inner(one: Sequence[Array], two: Sequence[Array]) -> np.ndarray:
    """Return ⟨one, two⟩ in float64 by array, in stretches that fit a core's cache."""
    found = np.zeros(len(one))
    for at, pair in enumerate(zip(one, two, strict=True)):
        a, b = (np.asarray(leaf).ravel() for leaf in pair)
        for start in range(0, a.size, STRETCH):
            part = [each[start : start + STRETCH].astype(np.float64) for each in (a, b)]
            found[at] += np.einsum("k,k", *part)
    return found


def largest_gap(
    expected: np.ndarray,
    scales: np.ndarray,
    found: np.ndarray,
    dtype: np.dtype,
    types: Sequence[np.dtype] = (),
) -> float:
    """Return the largest difference in units of ``scales``; infinite if nonfinite entries differ.

    Entries below their type, or below the type of a part of them, may be zero; those above
    their type, infinite.
    """
    least = max(float(jnp.finfo(each).tiny) for each in (dtype, *types))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        expected = expected.astype(dtype).astype(np.float64)
        found = found.astype(dtype).astype(np.float64)
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return np.inf
    gap = np.abs(np.where(finite, expected, 0) - np.where(finite, found, 0))
    # Rounding of numbers near the least one of the type is no error.
    gap = np.where(gap <= 100 * least, 0, gap)
    usable = np.isfinite(scales) & (scales > 0)
    units = np.where(usable, scales, 1)
    # Without a gradient any part is wrong.
    return float(np.where(usable, gap / units, np.sign(gap)).max(initial=0))


def difference_of(expected: ArrayLike, found: ArrayLike, scale: float = 0.0) -> float:
    """Return the largest difference relative to the largest entry.

    Infinite if nonfinite entries differ.
    """
    one = np.asarray(expected).astype(np.float64)
    other = np.asarray(found).astype(np.float64)
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return np.inf
    one, other = (np.where(np.isfinite(each), each, 0) for each in (one, other))
    scale = max(np.abs(one).max(initial=0), np.abs(other).max(initial=0), scale)
    return float(np.abs(one - other).max(initial=0) / scale) if scale else 0.0
