"""Which pairs of outputs a kernel has, and kernels of equal outputs from a traced program."""

from enum import Enum
from functools import lru_cache, partial

import numpy as np
from jax import Array
from jaxtyping import Float

from ntk_core.kernels._blocks import even_size, in_blocks, rows_within
from ntk_core.traced import Program, summed_kernels, wide

VIEW_COPIES = 4  # views of both sides, with temporaries
# Of the cotangents of one layer at a time: 1 MiB in float32, as a core's cache.
STRETCH_ENTRIES = 2**18
MIN_STRETCH = 8  # outputs at a time; fewer would repeat the forward pass too often


class OutputPairs(Enum):
    """Pairs of outputs (a, b) of the entries K[i, j, a, b].

    >>> OutputPairs.EQUAL.value
    'a = b'
    """

    ALL = "all"
    EQUAL = "a = b"
    MEAN = "mean over a = b"


ALL_PAIRS = OutputPairs.ALL


def same_output_kernel(
    program: Program,
    leaves: list[Array],
    x1: Array,
    x2: Array | None,
    pairs: OutputPairs,
    memory_limit: float,
    factors: Float[np.ndarray, " C"] | None = None,
) -> Float[Array, "n1 n2 ..."]:
    """Return K[i, j, a, a], (n1, n2, C), or its mean over a, (n1, n2), without pairs of outputs.

    Backward passes run for a stretch of the outputs at a time. Rows are processed in blocks if
    those of one stretch exceed the limit in bytes. ``factors`` multiply the outputs.
    """
    num_outputs = program.num_outputs
    rows = max(len(x1), 0 if x2 is None else len(x2))
    most = min(num_outputs, max(MIN_STRETCH, STRETCH_ENTRIES // (rows * program.largest_use)))
    stretch, _ = even_size(num_outputs, most)
    size = rows_within(memory_limit, VIEW_COPIES * program.row_bytes_of(stretch))
    each = pairs is OutputPairs.EQUAL
    seeds = _seeds(num_outputs, each, wide(program.roughest))
    if factors is not None:
        seeds = seeds * factors
    of_rows = partial(summed_kernels, program, each, leaves, seeds=seeds, stretch=stretch)
    if size >= rows:
        return of_rows(x1, x2)
    return in_blocks(lambda rows: rows, of_rows, x1, x2, size)


@lru_cache(maxsize=16)
def _seeds(num_outputs: int, each: bool, dtype: np.dtype) -> Float[np.ndarray, "C C"]:
    """Return the unit vectors; divided by √C for the mean, which is quadratic in them."""
    scale = 1.0 if each else num_outputs**-0.5
    return scale * np.eye(num_outputs, dtype=dtype)
