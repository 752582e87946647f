"""Outputs so small that products of their derivatives vanish in a kernel.

K = Σ_layers (a·a')(δ·δ') may be inside of its type where δ·δ' is not: entries around 1e-30 of
inputs a around 1e4 have cotangents δ around 1e-19, whose products vanish in float32. Such outputs
are differentiated again, multiplied by powers of two. These are exact, so all other entries stay.
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PyTree

from ntk_core.kernels._output_pairs import ALL_PAIRS, OutputPairs
from ntk_core.traced import Program, Rows, wide

PAIRS_EXAMINED = 16  # of rows on each side, before all of them
# Bits of range that stay above the largest entries.
RESERVE = 4


class OutputFactors(NamedTuple):
    """Powers of two by which outputs are multiplied before they are differentiated.

    Attributes:
        factors: 2^e_c, (C,).
        reciprocals: 2^-e_c, (C,).
    """

    factors: Float[np.ndarray, " C"]
    reciprocals: Float[np.ndarray, " C"]

    @property
    def seeds(self) -> Float[np.ndarray, "C C"]:
        """The seed of the backward pass of each output."""
        return np.diag(self.factors)


def factors_of_small_outputs(
    program: Program, kernel: PyTree, pairs: OutputPairs = ALL_PAIRS, *, has_one_side: bool
) -> OutputFactors | None:
    """Return the factors with which all outputs have entries of order one.

    None if no output of a known kernel, or of its parts, is near the least number of its type, or
    if other entries are not finite.

    Args:
        has_one_side: whether the kernel is that of a batch with itself.
    """
    leaves = jax.tree.leaves(kernel)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return None
    if pairs is ALL_PAIRS and program.stated.output != "linear":
        return None  # the outputs that are differentiated are those before φ
    border = _border(program, leaves)
    sizes = _sizes(leaves, pairs, has_one_side, PAIRS_EXAMINED)  # (parts, C)
    if not _are_small(sizes, border):
        return None
    if not has_one_side:
        sizes = _sizes(leaves, pairs, has_one_side, None)
        if not _are_small(sizes, border):
            return None
    exponents = _exponents(program, sizes)
    if not exponents.any():
        return None
    exponents = np.broadcast_to(exponents, (program.num_outputs,))
    one = np.ones((), wide(program.closed.out_avals[0].dtype))
    return OutputFactors(np.ldexp(one, exponents), np.ldexp(one, -exponents))


def has_small_outputs(program: Program, blocks: Float[Array, "n C C"]) -> bool:
    """Whether an output is near the least number of its type in all of these blocks K[i, i]."""
    if isinstance(blocks, jax.core.Tracer):
        return False
    sizes = np.abs(np.asarray(blocks).diagonal(axis1=1, axis2=2)).max(0)  # (C,)
    return _are_small(sizes[None].astype(np.float64), _border(program, [blocks]))


def _border(program: Program, leaves: list[Array]) -> float:
    """Return the least entry whose products are certain to be inside of their types."""
    types = [np.dtype(leaf.dtype) for leaf in leaves]
    types += [layer.dtype for layer in program.layers]
    return _border_of(frozenset(types), np.dtype(program.roughest))


@cache
def _border_of(types: frozenset[np.dtype], roughest: np.dtype) -> float:
    """Narrow cotangents have few digits below the least number of their own type."""
    tiny = max(float(jnp.finfo(each).tiny) for each in types)
    return float(max(tiny**0.5, float(jnp.finfo(roughest).tiny) ** 2))


def _are_small(sizes: Float[np.ndarray, "parts C"], border: float) -> bool:
    """Whether an output is below the border, in one part without being 0, or in all parts."""
    if sizes.min(initial=np.inf) >= border or not np.isfinite(sizes).all():
        return False
    has_small_part = (sizes > 0) & (sizes < border)
    vanishes = (sizes == 0).all(0)
    return bool(has_small_part.any() or vanishes.any())


def _exponents(program: Program, sizes: Float[np.ndarray, "parts C"]) -> np.ndarray:
    """Return e_c ≥ 0, so that 4^e_c times the least part of an output is around one."""
    least = np.where(sizes > 0, sizes, np.inf).min(0)  # (C,)
    largest = sizes.max(0)
    narrowest = min(
        (layer.dtype for layer in program.layers),
        key=lambda each: int(jnp.finfo(each).maxexp),
        default=wide(program.roughest),
    )
    of_entries = int(jnp.finfo(narrowest).maxexp)
    of_outputs = int(jnp.finfo(program.closed.out_avals[0].dtype).maxexp)
    limit = min(of_entries // 2, of_outputs - 2) - RESERVE
    with np.errstate(divide="ignore"):
        wanted = np.floor(-np.log2(np.where(np.isfinite(least), least, 0)) / 2)
        allowed = np.floor((of_entries - 2 * RESERVE - np.log2(largest)) / 2)
    return np.clip(np.minimum(wanted, allowed), 0, limit).astype(int)


def _sizes(
    leaves: list[Array], pairs: OutputPairs, has_one_side: bool, most: int | None
) -> Float[np.ndarray, "parts C"]:
    """Return the largest |K[i, j, c, c]| of each output c and part; (parts, 1) for their mean.

    Those of a batch with itself are on the diagonal i = j. Otherwise at most ``most`` rows of each
    side are read.
    """
    # On a CPU the host reads entries in place, without a compiled program.
    is_on_host = jax.default_backend() == "cpu"
    found = []
    for leaf in leaves:
        kernel = np.asarray(leaf) if is_on_host else leaf
        entries = _own_entries(kernel, has_one_side, most)
        if pairs is ALL_PAIRS:
            entries = entries.diagonal(axis1=-2, axis2=-1)
        num_outputs = 1 if pairs is OutputPairs.MEAN else entries.shape[-1]
        absolute = jnp.abs(entries) if isinstance(entries, Array) else np.abs(entries)
        largest = absolute.reshape(-1, num_outputs).max(0)
        found.append(np.asarray(largest))
    return np.array(found, np.float64)


def _own_entries(kernel: Rows, has_one_side: bool, most: int | None) -> Rows:
    """Return entries (rows, …) of rows with themselves, or (rows1, rows2, …) of two sides."""
    if has_one_side:
        of_rows = kernel.diagonal(axis1=0, axis2=1)  # (…, rows)
        return of_rows.transpose(of_rows.ndim - 1, *range(of_rows.ndim - 1))
    if most is None:
        return kernel
    steps = [max(1, size // most) for size in kernel.shape[:2]]
    return kernel[:: steps[0], :: steps[1]]
