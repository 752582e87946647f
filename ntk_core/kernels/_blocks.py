"""Kernels from blocks of rows, so that intermediate values fit into memory."""

import math
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.real_numbers import is_finite_number

BlockViews = TypeVar("BlockViews")  # of a block of rows, a tree of arrays
Kernels = TypeVar("Kernels")  # a tree of them


def checked_limit(memory_limit: float | None) -> None:
    """Refuse an invalid memory limit."""
    if memory_limit is not None and not (is_finite_number(memory_limit) and memory_limit > 0):
        raise InvalidInput("memory_limit", memory_limit, "a number of bytes above 0, or None")


def rows_within(memory_limit: float, row_bytes: float) -> int:
    """Return the number of rows that fit, at least one."""
    return max(1, int(memory_limit // row_bytes))


def in_blocks(
    view: Callable[[Array], BlockViews],
    contract: Callable[[BlockViews, BlockViews | None], Kernels],
    x1: Array,
    x2: Array | None,
    size: int,
) -> Kernels:
    """Return ``contract(view(x1), view(x2))``, computed in blocks.

    A block has at most ``size`` rows of each. The result is a tree of (n1, n2, ...) arrays.

    Two views exist at a time. Blocks have equal sizes (the last is padded), so programs compile
    once. Without ``x2`` only blocks on and above the diagonal are computed;
    ``contract(view, None)`` is a diagonal one.
    """
    blocks1 = _blocks(x1, size)
    blocks2 = blocks1 if x2 is None else _blocks(x2, size)
    grid: list[list[PyTree]] = [[None] * len(blocks2) for _ in blocks1]
    for i, rows in enumerate(blocks1):
        left = view(rows)
        for j, others in enumerate(blocks2):
            if x2 is not None:
                grid[i][j] = contract(left, view(others))
            elif j == i:
                grid[i][i] = contract(left, None)
            elif j > i:
                grid[i][j] = contract(left, view(others))
                grid[j][i] = jax.tree.map(_mirrored, grid[i][j])
    n1 = x1.shape[0]
    n2 = x1.shape[0] if x2 is None else x2.shape[0]
    rows_of = [jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=1), *row) for row in grid]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts, axis=0)[:n1, :n2], *rows_of)


def _mirrored(kernel: Array) -> Array:
    """Return the block below the diagonal: rows, and pairs of outputs, exchange their roles."""
    if kernel.ndim == 4:
        return jnp.transpose(kernel, (1, 0, 3, 2))
    return jnp.swapaxes(kernel, 0, 1)


def even_size(n: int, size: int) -> tuple[int, int]:
    """Return (rows of a block, number of blocks) for n rows.

    The blocks are equal and have at most ``size`` rows.
    """
    size = math.ceil(n / math.ceil(n / size))
    return size, math.ceil(n / size)


def block_of(
    x: Shaped[Array | np.ndarray, "n ..."], index: int, size: int
) -> Shaped[Array, "rows ..."]:
    """Return the rows of one block; the last block repeats its final row as padding."""
    rows = jnp.asarray(x[index * size : (index + 1) * size])
    missing = size - len(rows)
    return (
        jnp.pad(rows, [(0, missing)] + [(0, 0)] * (rows.ndim - 1), mode="edge") if missing else rows
    )


def _blocks(x: Shaped[Array, "n ..."], size: int) -> list[Shaped[Array, "rows ..."]]:
    size, num_blocks = even_size(x.shape[0], size)
    return [block_of(x, index, size) for index in range(num_blocks)]
