"""Checks of traced programs: independent rows, and kernels against plain gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from ntk_core.networks.architectures import Network
from ntk_core.traced._against_plain import (
    ROWS_SEARCHED,
    Check,
    TracingDisagrees,
    compare_rows,
    compared,
)
from ntk_core.traced._drawn import draws, numbers_for_call
from ntk_core.traced._independence import independence_of
from ntk_core.traced._layers import is_narrow_type
from ntk_core.traced._linear_rules import refuse_nonlinear_rules
from ntk_core.traced._of_network import program_of_network
from ntk_core.traced._precision import Imprecise, OutOfRange
from ntk_core.traced._program import Model, Program, Rows
from ntk_core.traced._trace import Independence, traced_batch

ENTRIES_OF_SIZE = 256  # of an array, to estimate its size; our choice
SIZES_KEPT = 8  # sizes of compared numbers; our choice
# Of log2 of all sizes together; products of a layer have 100 more bits of range.
LARGEST_DRIFT = 16.0


def checked(apply: Model, params: PyTree, x: Rows) -> Program | None:
    """Return the checked program of a model; for a network that of its pre-outputs.

    None if Jacobians are needed: the function cannot be traced, or no numbers are
    available to check it.

    Raises:
        InvalidInput: if rows of ``x`` interact, with the operation.
        TracingDisagrees: inside ``jax.jit``, if the kernel at random numbers differs
            from plain derivatives.
    """
    if isinstance(apply, Program):
        return apply
    if isinstance(apply, Network):
        return program_of_network(apply, params, jax.ShapeDtypeStruct(x.shape[1:], x.dtype))
    batch = traced_batch(apply, params, x)
    if batch is None or not len(x):
        return None
    if batch.independence in (Independence.UNCHECKED, Independence.COMPARED_AS_GIVEN):
        # No check has seen these numbers.
        batch.independence = independence_of(batch, params, x)
    if not batch.program.num_outputs or batch.independence is Independence.UNCHECKED:
        return None
    unknown = any(isinstance(each, jax.core.Tracer) for each in (*jax.tree.leaves(params), x))
    if unknown and not compared_once(batch.program, "kernel", compare_rows, params, x[:2]):
        return None
    return batch.program


def compared_once(
    program: Program,
    name: str,
    compare: Callable[[Program, PyTree, Rows], object],
    params: PyTree,
    x: Rows,
) -> bool:
    """Run ``compare(program, params, x)`` once per name; return whether it ran.
    It raises on disagreement.

    Inside ``jax.jit`` and ``jax.vmap`` random numbers replace unknown ones, since equations
    depend only on shapes; they are inconclusive if outputs are not finite. Known numbers are
    compared as they are.
    """
    unknown = any(isinstance(each, jax.core.Tracer) for each in (*jax.tree.leaves(params), x))
    kept_as = f"{name}, drawn" if unknown else name
    if {name, kept_as} & program.kept.keys() and name not in program.only_as_given:
        return True
    with jax.core.eval_context():
        numbers = numbers_for_call(params, x, program.each_leaf)
        if numbers is None or (unknown and not np.isfinite(program(*numbers)).all()):
            return False
        program.kept[kept_as] = compare(program, *numbers)
        if not unknown:

            def at(drawn: PyTree, rows: Sequence[Rows]) -> bool:
                return bool(np.isfinite(np.asarray(compare(program, drawn, rows[0]), float)))

            _compare_at_random_numbers(program, name, at, params, x)
    return True


def _compare_at_random_numbers(
    program: Program,
    name: str,
    compare: Callable[[PyTree, Sequence[Rows]], bool],
    params: PyTree,
    *inputs: Rows,
) -> None:
    """Repeat a comparison at random numbers.

    Without finite ones, note that each call has to repeat it.

    Numbers at which rounding, or the range of a type, prevents a verdict are skipped.
    """
    for drawn, rows in draws(params, *inputs, each_leaf=program.each_leaf):
        try:
            is_conclusive = compare(drawn, [jnp.asarray(each) for each in rows])
        except (Imprecise, OutOfRange):
            continue
        if is_conclusive:
            program.only_as_given.discard(name)
            return
    program.only_as_given.add(name)


def agree(
    program: Program,
    params: PyTree,
    x1: Array,
    x2: Array | None,
    kernel: PyTree,
    factors: np.ndarray | None = None,
) -> None:
    """Compare a kernel of ``program``, or its parts, with plain derivatives for two distinct rows.

    Once per program, and again when the sizes of parameters or inputs differ much from those of all
    comparisons: the products of a layer may then be outside of their type.

    Args:
        factors: of the outputs when they are compared, (C,), so that derivatives keep their
            digits; None for ones.

    Raises:
        TracingDisagrees: if they differ.
        InvalidInput: if they differ since products of a layer are outside of their type, or for a
            custom backward rule that is not linear.
    """
    given = jax.tree.leaves((params, x1, x2, kernel))
    if any(isinstance(each, jax.core.Tracer) for each in given):
        return
    refuse_nonlinear_rules(program, params, x1)
    if program.stated.layers or not program.layers:
        return
    sizes = _sizes((params, x1, x2))
    is_seen = "kernel" in program.kept and "kernel" not in program.only_as_given
    if is_seen and any(_are_near(sizes, others) for others in program.sizes_compared):
        return
    program.kept["kernel"] = _compared_in_range(program, params, x1, x2, kernel, factors)
    program.sizes_compared = [sizes, *program.sizes_compared][:SIZES_KEPT]
    if is_seen:
        return
    # An error at random numbers leaves the verdict open, so that every later call raises it too.
    program.only_as_given.add("kernel")
    rows = [each[:ROWS_SEARCHED] for each in (x1, x2) if each is not None]

    def at(drawn: PyTree, found: Sequence[Rows]) -> bool:
        return compared(program, drawn, found[0], found[-1], None).is_conclusive

    _compare_at_random_numbers(program, "kernel", at, params, *rows)


def _compared_in_range(
    program: Program,
    params: PyTree,
    x1: Rows,
    x2: Rows | None,
    kernel: PyTree,
    factors: np.ndarray | None,
) -> Check:
    """Compare a kernel at factors of its outputs if derivatives need them, as in float16.

    Raises:
        TracingDisagrees, InvalidInput: as :func:`agree`.
    """
    if is_narrow_type(program.roughest):
        return compared(program, params, x1, x2, kernel, factors)
    try:
        return compared(program, params, x1, x2, kernel)
    except OutOfRange as refusal:
        if factors is None:
            raise
        # The kernel has been computed with these factors.
        try:
            return compared(program, params, x1, x2, kernel, factors)
        except TracingDisagrees:
            raise refusal from None


def _sizes(numbers: PyTree) -> np.ndarray:
    """Return log2 of the size of each array, on a CPU from some of its entries; -inf for zeros."""
    arrays = []
    for leaf in jax.tree.leaves(numbers):
        if jnp.issubdtype(jnp.result_type(leaf), jnp.inexact) and jnp.size(leaf):
            arrays.append(leaf)
    if jax.default_backend() == "cpu":  # the host reads them in place
        largest = np.array([_largest_of_some(np.asarray(each)) for each in arrays])
    else:
        largest = np.asarray(_largest_of_each(arrays)).astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.log2(largest)


def _largest_of_some(array: np.ndarray) -> float:
    flat = array.reshape(-1)
    some = flat[:: max(1, flat.size // ENTRIES_OF_SIZE)].astype(np.float64)
    return float(np.abs(some).max())


@jax.jit
def _largest_of_each(arrays: list[Array]) -> Array:
    return jnp.stack([jnp.max(jnp.abs(each)).astype(jnp.float32) for each in arrays])


def _are_near(one: np.ndarray, two: np.ndarray) -> bool:
    """Whether sizes differ by at most ``LARGEST_DRIFT`` in total, and the same arrays are zero."""
    if len(one) != len(two) or not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return False
    finite = np.isfinite(one)
    return bool(np.abs(one[finite] - two[finite]).sum() <= LARGEST_DRIFT)
