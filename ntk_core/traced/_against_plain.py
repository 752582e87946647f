"""Kernels of traced programs against plain gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from ntk_core.traced._layers import wide
from ntk_core.traced._plain_gradients import (
    QUIET,
    Place,
    Products,
    largest_gap,
    of_mixture,
    plain_products,
)
from ntk_core.traced._precision import (
    EXPLAINED,
    perturbed,
    refuse_factors,
    refuse_imprecise,
    refuse_small_derivatives,
)
from ntk_core.traced._program import Program, Rows, summed_kernels
from ntk_core.traced._quickly import quickly

ROWS_SEARCHED = 64  # for two that differ
OUTPUTS_COMPARED = 8  # each by its own backward pass; our choice
RANGE_OF_DIGITS = 1e4  # above the least number of a type
NUM_ROUNDINGS = 4  # of the parameters, to measure what rounding does to gradients


class TracingDisagrees(RuntimeError):
    """Error for a traced program that differs from plain derivatives.

    The traced kernel differs from the function's derivatives: a bug of this package.

    >>> import jax.numpy as jnp, ntk_core
    >>> params, x = {"w": jnp.ones((3, 2))}, jnp.ones((4, 3))
    >>> try:
    ...     found = ntk_core.layers_of(lambda p, x: jnp.tanh(x @ p["w"]), params, x)
    ... except TracingDisagrees:
    ...     found = None  # please report the model
    >>> len(found.layers)
    1
    """


@dataclass(frozen=True)
class Check:
    """Largest error of the kernel against plain derivatives, relative to the gradients' norms.

    Attributes:
        num_inputs: number of distinct compared rows.
        kernel: largest difference of inner products ⟨∇⟨u_i, f(x_i)⟩, ∇⟨u_j, f(x_j)⟩⟩
            for random u from both.
        tolerance: of the kernel; larger errors raise.
        is_conclusive: whether the compared numbers are finite, and not all zero.

    >>> Check(num_inputs=3, kernel=1e-7, tolerance=1e-3).kernel < 1e-3
    True
    """

    num_inputs: int
    kernel: float
    tolerance: float
    is_conclusive: bool = True


def compare_rows(program: Program, params: PyTree, x: Rows) -> Check:
    """Compare the kernel of the first two rows."""
    return compared(program, params, x[:2], None, None)


@QUIET
def compared(
    program: Program,
    params: PyTree,
    x1: Rows,
    x2: Rows | None,
    kernel: PyTree | None,
    factors: np.ndarray | None = None,
) -> Check:
    """Compare a kernel and its parts with plain gradients.

    The parts are those of the parameters. Each output has its own scale.

    With a random mixture u of the outputs, the entries are ⟨∇⟨u, f(x_i)⟩, ∇f_c(x_j)⟩ for each of
    some outputs c, and the squared norms of these gradients. The kernel itself is compared where it
    contains them; parts, for both rows. All are those of the outputs times ``factors``.
    """
    tolerance = program.epsilon**0.5
    if not program.layers:
        return Check(0, 0.0, tolerance)
    if factors is None:
        factors = np.ones(program.num_outputs)
    elif kernel is not None and _has_vanishing_outputs(kernel, factors):
        kernel = None  # only the parts have digits to compare
    left = np.asarray(x1)
    right = left if x2 is None else np.asarray(x2)
    i, j = _pair_of(left, right)
    at = _place(program, np.stack([left[i], right[j]]), factors)
    leaves = program.leaves(params)
    without_pairs = kernel is not None and np.ndim(kernel) in (2, 3)  # of outputs
    entries, inside = _parts_at(program, leaves, at, without_pairs)
    if kernel is None and not np.isfinite(entries).all():
        # Overflow at random numbers allows no verdict.
        return Check(0, 0.0, tolerance, is_conclusive=False)
    blocks = np.asarray(sum(entries))  # (3, C, C)
    if kernel is not None and not without_pairs:
        blocks = _blocks_of(kernel, i, j, has_one_side=x2 is None)
        if (factors != 1).any():
            blocks = blocks * factors[:, None] * factors
    plain = plain_products(program, leaves, at)
    sums = of_mixture(blocks, inside)
    together = plain.total(len(sums))
    types = _types_of_parts(program, leaves, blocks.dtype)
    difference = largest_gap(*together, sums, blocks.dtype, types)
    gaps = []
    for number in range(len(program.names)):
        own = of_mixture(entries[number], inside)
        gaps.append(largest_gap(*plain.of(number), own, types[number]))
    if not difference <= tolerance or not max(gaps) <= tolerance:
        # Relative to the largest entry, which rounding of a constant output does not affect.
        unit = together[1].max()
        of_largest = largest_gap(together[0], np.full_like(sums, unit), sums, blocks.dtype, types)
        how = (difference, of_largest, len(sums), blocks.dtype)
        _explain(program, params, at, plain, how, gaps)
    if without_pairs:
        # The squared norms of the chosen outputs' gradients end the list of products.
        squares = plain.values.sum(0)[-len(at.chosen) :]
        own_entries = np.asarray(kernel)[i, j]
        _compare_same_outputs(program, leaves, at, squares, own_entries, types)
    is_conclusive = bool(np.isfinite(entries).all() and np.any(entries))
    distinct = 1 if np.array_equal(*at.rows) else 2
    return Check(distinct, difference, tolerance, is_conclusive)


def _place(program: Program, rows: np.ndarray, factors: np.ndarray) -> Place:
    """Return a random mixture of the outputs, and some of the outputs, at two rows."""
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(program.num_outputs)[:OUTPUTS_COMPARED])
    mixture = rng.standard_normal(program.num_outputs).astype(np.float32)
    return Place(rows, mixture, chosen, factors)


def _parts_at(
    program: Program, leaves: list[Array], at: Place, without_pairs: bool
) -> tuple[np.ndarray, Place]:
    """Return the parts of the parameters as :func:`_entries` does, and the place inside them.

    Args:
        without_pairs: compute the mixture and the chosen outputs alone, not all pairs of outputs.
    """
    inside = at
    seeds = np.diag(at.factors) if (at.factors != 1).any() else None
    if without_pairs:
        seeds, inside = _seeds_of(at, program.num_outputs)
        seeds = seeds * at.factors
    return np.asarray(quickly(_entries)(program, leaves, at.rows, seeds)), inside


def _pair_of(left: np.ndarray, right: np.ndarray) -> tuple[int, int]:
    """Return a row of each batch: distinct ones, if some are."""
    rng = np.random.default_rng(0)
    i = int(rng.integers(len(left)))
    candidates = rng.permutation(len(right))[:ROWS_SEARCHED]
    different = (at for at in candidates if not np.array_equal(left[i], right[at]))
    return i, int(next(different, candidates[0]))


def _entries(
    program: Program, leaves: list[Array], rows: Array, seeds: Array | None = None
) -> Array:
    """Return K(x_0, x_1), K(x_0, x_0) and K(x_1, x_1) by parameter.

    The two rows are x_0 and x_1; the shape is (parameters, 3, C, C).

    With ``seeds`` (S, C), of these mixtures of the outputs, (parameters, 3, S, S).
    """
    views = program.views(leaves, rows, seeds)
    parts = program.kernels(leaves, views, views)
    size = program.num_outputs if seeds is None else len(seeds)
    found = []
    for at, name in program.names.items():
        own = [parts[layer.name] for layer in program.layers if layer.leaf == at]
        if not own and name in parts:  # of a bias or of a Jacobian
            own = [parts[name]]
        shape = (size, len(rows), size, len(rows))
        part = jnp.broadcast_to(jnp.asarray(sum(own)), shape)
        found.append(jnp.stack([part[:, 0, :, 1], part[:, 0, :, 0], part[:, 1, :, 1]]))
    return jnp.stack(found)


def _has_vanishing_outputs(kernel: PyTree, factors: np.ndarray) -> bool:
    """Whether all entries of an output with a factor are near the least number of their type."""
    whole = np.abs(np.asarray(sum(map(np.asarray, jax.tree.leaves(kernel)))))
    least = RANGE_OF_DIGITS * float(jnp.finfo(whole.dtype).tiny)
    if whole.ndim == 4:
        whole = whole.diagonal(axis1=2, axis2=3)
    if whole.ndim == 2:
        return bool(whole.max() < least)
    return bool((whole.max((0, 1)) < least)[factors != 1].any())


def _seeds_of(at: Place, num_outputs: int) -> tuple[np.ndarray, Place]:
    """Return the mixture and the chosen outputs as rows of seeds, and their place in these."""
    num_chosen = len(at.chosen)
    seeds = np.zeros((1 + num_chosen, num_outputs), np.float32)
    seeds[0] = at.mixture
    seeds[1 + np.arange(num_chosen), at.chosen] = 1
    unit = (np.arange(len(seeds)) == 0).astype(np.float32)
    ones = np.ones(len(seeds))
    return seeds, Place(at.rows, unit, 1 + np.arange(num_chosen), ones)


def _blocks_of(kernel: PyTree, i: int, j: int, has_one_side: bool) -> np.ndarray:
    """Return the (C, C) blocks of rows (i, j), and of (i, i) and (j, j) if the sides are equal."""
    whole = np.asarray(sum(map(np.asarray, jax.tree.leaves(kernel))))
    if not has_one_side:
        return whole[i, j][None]
    return np.stack([whole[i, j], whole[i, i], whole[j, j]])


@QUIET
def _compare_same_outputs(
    program: Program,
    leaves: list[Array],
    at: Place,
    squares: np.ndarray,
    entries: np.ndarray,
    types: list[np.dtype],
) -> None:
    """Compare the entries of equal outputs with plain gradients.

    The entries are K[i, j, c, c] or their mean, the gradients those of the two rows alone.

    Args:
        squares: K[j, j, c, c] of the chosen outputs from plain gradients.
        entries: of the kernel at (i, j), (C,) or ().
        types: of the parts that are summed to entries.

    Raises:
        TracingDisagrees: if they differ.
    """
    seeds = np.diag(at.factors).astype(np.float32)
    # The outputs of a mean have one factor.
    entries = entries * (at.factors**2 if entries.ndim else at.factors[0] ** 2)
    found = np.asarray(quickly(_same_outputs)(program, leaves, at.rows, seeds), np.float64)
    scales = np.sqrt(found[0, 0] * found[1, 1])  # (C,)
    expected = found[0, 1]
    if not entries.ndim:
        expected = expected.mean()
        scales = scales.mean()
    of_rows = found[1, 1][at.chosen]
    gaps = (
        largest_gap(
            np.atleast_1d(expected),
            np.atleast_1d(scales),
            np.atleast_1d(entries),
            entries.dtype,
            types,
        ),
        largest_gap(squares, squares, of_rows, entries.dtype, types),
    )
    if not max(gaps) <= program.epsilon**0.5:
        raise TracingDisagrees(
            f"The kernel of equal outputs differs from that of plain gradients by {max(gaps):.1e}; "
            "ntk_core.KernelOperator multiplies by it without them. Please report the model."
        )


def _same_outputs(program: Program, leaves: list[Array], rows: Array, seeds: Array) -> Array:
    return summed_kernels(program, True, leaves, rows, None, seeds)


def _types_of_parts(program: Program, leaves: list[Array], dtype: np.dtype) -> list[np.dtype]:
    """Return the type in which each parameter's part is summed.

    A kernel of type ``dtype`` may be wider.
    """
    found = []
    for at in program.names:
        own = np.dtype(wide(leaves[at].dtype))
        found.append(max(np.dtype(dtype), own, key=lambda each: float(jnp.finfo(each).eps)))
    return found


def _explain(
    program: Program,
    params: PyTree,
    at: Place,
    plain: Products,
    how: tuple[float, float, int, np.dtype],
    gaps: Sequence[float],
) -> None:
    """Raise for a kernel that differs from plain gradients.

    Rounding may explain the difference of a single parameter or output.

    A gradient that cancels to zero, such as that of a bias before a softmax or of a constant
    output, is rounding: it has no digits to compare, and no influence on the kernel. If the largest
    entries are affected, the function is refused.

    Args:
        how: difference of the kernel, that in units of its largest entry, number of its
            entries, and its type.
        gaps: differences by parameter.
    """
    difference, of_largest, size, dtype = how
    tolerance = program.epsilon**0.5
    rounding = np.zeros(len(gaps))
    of_sum = 0.0
    types = _types_of_parts(program, program.leaves(params), dtype)
    # One operation at a time rounds otherwise than a compiled program: 1 − tanh² of saturated units
    # has no digits, although rounding of the parameters does not change it.
    otherwise = [plain_products(program, program.leaves(params), at, is_compiled=False)]
    for seed in range(NUM_ROUNDINGS):
        moved = program.leaves(perturbed(params, program.epsilon, seed))
        otherwise.append(plain_products(program, moved, at))
    for other in otherwise:
        for number in range(len(gaps)):
            moves = largest_gap(*plain.of(number), other.values[number], types[number])
            rounding[number] = max(rounding[number], moves)
        moves = largest_gap(*plain.total(size), other.total(size)[0], dtype, types)
        of_sum = max(of_sum, moves)
    part = ""
    is_wrong = not difference <= tolerance
    if is_wrong and of_largest <= tolerance and difference <= EXPLAINED * of_sum:
        is_wrong = False
    if not is_wrong:
        for number, name in enumerate(program.names.values()):
            gap = gaps[number]
            if not gap <= tolerance and not gap <= EXPLAINED * rounding[number]:
                is_wrong = True
                part = f" for {name}"
                difference = gap
                break
    if not is_wrong:
        return
    refuse_factors(program, program.leaves(params), at.rows)
    refuse_small_derivatives(program, program.leaves(params), at.rows)
    if not part:
        refuse_imprecise(program, difference, of_sum)
    raise TracingDisagrees(
        f"The kernel{part} from {len(program.layers)} traced layers differs from that of plain "
        f"gradients by {difference:.1e}; ntk_core.KernelOperator multiplies by it without them. "
        "Please report the model."
    )
