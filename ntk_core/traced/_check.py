"""Checks of traced programs.

Independent rows by proof or comparison, kernels against plain derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, RowsMix
from ntk_core.networks.architectures import Network
from ntk_core.traced._contractions import whole
from ntk_core.traced._derivatives import NonlinearRule, has_reverse_rule, transposed
from ntk_core.traced._drawn import EachLeaf, draws
from ntk_core.traced._layers import is_narrow_type, wide
from ntk_core.traced._of_network import program_of_network
from ntk_core.traced._program import Apply, Model, Program, Rows, Views, summed_kernels
from ntk_core.traced._row_axes import Proof
from ntk_core.traced._rows import operation_between_rows
from ntk_core.traced._same import ProgramComparison
from ntk_core.traced._trace import Batch, Independence, traced_batch

EXPLAINED = 30  # differences up to this multiple of one rounding are the program's precision
ROUNDINGS_OF_ROWS = 300  # between a batch and its rows, before rounding is measured; our choice
ROWS_SEARCHED = 64  # for two that differ
OUTPUTS_COMPARED = 8  # each by its own backward pass; our choice
RANGE_OF_DIGITS = 1e4  # above the least number of a type
# Gradients may overflow: infinite and unknown numbers allow no verdict, and are no warning.
QUIET = np.errstate(over="ignore", under="ignore", invalid="ignore")
NUM_ROUNDINGS = 4  # of the parameters, to measure what rounding does to gradients
STRETCH = 2**14
ENTRIES_OF_SIZE = 256  # of an array, to estimate its size; our choice
SIZES_KEPT = 8  # sizes of compared numbers; our choice
# Of a cotangent, to see whether a backward rule clips or rounds it; exact in every type.
CHANGES_OF_SIZE = (2.0**-10, 2.0**10)
# Of log2 of all sizes together; products of a layer have 100 more bits of range.
LARGEST_DRIFT = 16.0
# Evidence of independent rows: by proof, at random numbers, or at the given ones alone, so that
# each call repeats it.
Result = TypeVar("Result")


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


class Imprecise(InvalidInput):
    """A function whose derivatives rounding hides."""


class OutOfRange(InvalidInput):
    """A layer whose products are outside of their type."""


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
        batch.independence = _independence(batch, params, x)
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
        numbers = _numbers(params, x, program.each_leaf)
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


def _numbers(params: PyTree, x: Rows, each_leaf: EachLeaf | None) -> tuple[PyTree, Rows] | None:
    """Replace unknown parameters and inputs by small random numbers; see :func:`numbers_for`."""
    if each_leaf is not None and isinstance(x, jax.core.Tracer):
        draw = partial(_random, np.random.default_rng(0))
        x = each_leaf(draw, np.zeros(x.shape, x.dtype))
    found: tuple[PyTree, Rows] | None = numbers_for((params, x))
    return found


def numbers_for(given: PyTree) -> PyTree | None:
    """Replace unknown arrays by small random numbers.

    Return None for keys, which cannot be drawn.
    """
    leaves = jax.tree.leaves(given)
    if any(
        isinstance(each, jax.core.Tracer) and jnp.issubdtype(each.dtype, jax.dtypes.extended)
        for each in leaves
    ):
        return None
    return jax.tree.map(partial(_drawn, np.random.default_rng(0)), given)


def _drawn(rng: np.random.Generator, leaf: Rows) -> Rows:
    return _random(rng, leaf) if isinstance(leaf, jax.core.Tracer) else leaf


def _random(rng: np.random.Generator, leaf: Rows) -> Array:
    """Return small random numbers of the shape and type of an array."""
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return jnp.asarray(rng.integers(0, 2, leaf.shape), leaf.dtype)
    return jnp.asarray(
        rng.standard_normal(leaf.shape, np.float32) / max(1, *leaf.shape[:1]) ** 0.5, leaf.dtype
    )


def treats_rows_apart(apply: Apply, params: PyTree, x: Rows) -> bool:
    """Whether equations prove that a function of batches of any size treats each row apart."""
    leaves, structure = jax.tree.flatten(params)

    def called(*given: Array) -> Array:
        *given_leaves, rows = given
        return apply(jax.tree.unflatten(structure, given_leaves), rows)

    def program(count: int) -> ClosedJaxpr:
        shapes = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        shapes.append(jax.ShapeDtypeStruct((count, *x.shape[1:]), x.dtype))
        return jax.make_jaxpr(called)(*shapes)

    proof = Proof(len(x))
    batch = program(len(x))
    if operation_between_rows(batch, proof) is not None:
        return False
    try:
        single = program(1)
    except Exception:  # any error of a model that is made for one number of rows
        return False
    return ProgramComparison(proof).alike(batch, single)


def _independence(batch: Batch, params: PyTree, x: Rows) -> Independence:
    """Return the evidence that rows are independent.

    ``UNCHECKED`` if there are no numbers to compare.

    Raises:
        InvalidInput: if rows interact.
    """
    proof = Proof(batch.size)
    operation = operation_between_rows(batch.closed, proof)
    if operation is None and ProgramComparison(proof).alike(batch.closed, batch.program.single):
        return Independence.PROVEN
    with jax.core.eval_context():
        each_leaf = batch.program.each_leaf
        numbers = _numbers(params, x, each_leaf)
        if numbers is None:
            return Independence.UNCHECKED
        batches = _batches(numbers[1], batch.size, each_leaf)
        mixes = f"a function in which {operation or 'the size of the batch'} mixes the rows of x"
        for rows in batches:
            _refuse_mixed_rows(batch, numbers[0], rows, mixes)
        for drawn, (others,) in draws(numbers[0], batches[-1], each_leaf=each_leaf):
            if _refuse_mixed_rows(batch, drawn, jnp.asarray(others), mixes):
                return Independence.COMPARED
    return Independence.COMPARED_AS_GIVEN


def _refuse_mixed_rows(batch: Batch, params: PyTree, rows: Array, mixes: str) -> bool:
    """Compare a batch with its rows one by one; return whether all numbers were finite.

    Each output and each parameter is compared on its own scale. Where the scale itself is
    rounding, such as that of the derivative of a constant output, rounding of the parameters
    explains the difference.

    Raises:
        InvalidInput: if they differ.
    """
    program = batch.program
    leaves = program.leaves(params)
    together, apart = quickly(_both_ways)(batch, leaves, rows)
    rounded: BothWays | None = None
    is_finite = True
    for place, (one, other) in enumerate(zip(_parts(together), _parts(apart), strict=True)):
        is_finite &= bool(np.isfinite(other).all())
        difference = difference_of(one, other)
        if difference <= min(10 * program.epsilon**0.5, ROUNDINGS_OF_ROWS * program.epsilon):
            continue
        if rounded is None:
            moved = program.leaves(rounded_otherwise(program, params))
            rounded = quickly(_both_ways)(batch, moved, rows)
        rounding = difference_of(other, _parts(rounded[1])[place])
        if not difference <= EXPLAINED * rounding:
            allowed = (
                "one that treats each row for itself, such as a batch normalization that keeps its "
                "averages"
            )
            raise RowsMix("net", mixes, allowed)
    return is_finite


class WithDerivatives(NamedTuple):
    """Outputs (n, C), and two kinds of derivatives.

    They are derivatives (n, C) along a random direction, and gradients of a random mixture of
    outputs.
    """

    outputs: Array
    slopes: Array
    gradients: list[Array]


BothWays = tuple[WithDerivatives, WithDerivatives]


def _parts(found: WithDerivatives) -> list[np.ndarray]:
    """Return the arrays that are compared each for itself."""
    columns = [*np.asarray(found.outputs).T, *np.asarray(found.slopes).T]
    return [*columns, *map(np.asarray, found.gradients)]


def _other_rows(rng: np.random.Generator, size: int, given: np.ndarray) -> np.ndarray:
    """Return random rows like the given ones; ids are drawn from the given ones."""
    if np.issubdtype(given.dtype, np.integer) or given.dtype == bool:
        return rng.choice(given.ravel(), (size, *given.shape[1:]))
    spread = np.asarray(given, np.float64)
    return spread.mean() + (spread.std() or 1) * rng.standard_normal((size, *given.shape[1:]))


def _batches(x: Rows, size: int, each_leaf: EachLeaf | None) -> list[Array]:
    """Return the given rows and as many random ones, all distinct."""
    draw = partial(_other_rows, np.random.default_rng(0), size)
    given = np.asarray(x)
    drawn = draw(given) if each_leaf is None else each_leaf(draw, given)
    found = jnp.asarray(drawn).astype(x.dtype)
    return (
        [jnp.asarray(x), found]
        if len(given) == size
        else [jnp.concatenate([jnp.asarray(x), found[len(given) :]])]
    )


def _both_ways(batch: Batch, leaves: list[Array], x: Array) -> BothWays:
    """Differentiate the whole batch, and single rows."""
    places = list(batch.program.names)
    rng = np.random.default_rng(0)
    seeds = rng.standard_normal((batch.size, batch.program.num_outputs), np.float32)

    def values(moving: list[Array]) -> list[Array]:
        return list((dict(enumerate(leaves)) | dict(zip(places, moving, strict=True))).values())

    def whole(moving: list[Array]) -> Array:
        return jnp.asarray(
            jax.core.eval_jaxpr(batch.closed.jaxpr, batch.closed.consts, *values(moving), x)[0]
        )

    def single(moving: list[Array]) -> Array:
        return jax.vmap(partial(batch.program.row, values(moving)))(x)

    at = [leaves[place] for place in places]
    direction = []  # of the size of each parameter
    for leaf in at:
        largest = jnp.max(jnp.abs(leaf))
        signs = rng.choice(np.array([-1, 1], np.int8), leaf.shape)
        direction.append(jnp.where(largest > 0, largest, 1).astype(leaf.dtype) * signs)

    def derived(function: Callable[[list[Array]], Array], weights: Array | None) -> WithDerivatives:
        outputs, pull = jax.vjp(function, at)
        # The transpose of reverse mode: forward mode has no custom_vjp.
        slopes = transposed(pull, outputs)((direction,))
        if weights is None:
            weights = _reciprocal(jnp.max(jnp.abs(slopes), 0))
        (gradients,) = pull(seeds.astype(outputs.dtype) * weights)
        return WithDerivatives(outputs, slopes, gradients)

    with jax.default_matmul_precision("highest"):
        apart = derived(single, None)
        # A large output must not hide the gradient of a small one: both have about the same weight
        # in the mixture.
        weights = _reciprocal(jnp.max(jnp.abs(apart.slopes), 0))
        return derived(whole, weights), apart


def _reciprocal(sizes: Array) -> Array:
    """Return 1 / sizes; 1 for numbers whose reciprocal is 0 or infinite."""
    reciprocals = 1 / sizes
    return jnp.where(jnp.isfinite(reciprocals) & (reciprocals > 0), reciprocals, 1)


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
    _refuse_nonlinear_rules(program, params, x1)
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
        return _compared(program, drawn, found[0], found[-1], None).is_conclusive

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
        return _compared(program, params, x1, x2, kernel, factors)
    try:
        return _compared(program, params, x1, x2, kernel)
    except OutOfRange as refusal:
        if factors is None:
            raise
        # The kernel has been computed with these factors.
        try:
            return _compared(program, params, x1, x2, kernel, factors)
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


def compare_rows(program: Program, params: PyTree, x: Rows) -> Check:
    """Compare the kernel of the first two rows."""
    return _compared(program, params, x[:2], None, None)


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


class _Products(NamedTuple):
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


@QUIET
def _compared(
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
    rows = np.stack([left[i], right[j]])
    leaves = program.leaves(params)
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(program.num_outputs)[:OUTPUTS_COMPARED])
    mixture = rng.standard_normal(program.num_outputs).astype(np.float32)
    at = _Place(rows, mixture, chosen, factors)
    seeds = np.diag(factors) if (factors != 1).any() else None
    inside = at  # the place of the mixture and the chosen outputs in the entries
    without_pairs = kernel is not None and np.ndim(kernel) in (2, 3)  # of outputs
    if without_pairs:
        seeds, inside = _seeds_of(at, program.num_outputs)
        seeds = seeds * factors
    entries = np.asarray(quickly(_entries)(program, leaves, rows, seeds))
    if kernel is None and not np.isfinite(entries).all():
        # Overflow at random numbers allows no verdict.
        return Check(0, 0.0, tolerance, is_conclusive=False)
    blocks = np.asarray(sum(entries))  # (3, C, C)
    if kernel is not None and not without_pairs:
        blocks = _blocks_of(kernel, i, j, has_one_side=x2 is None)
        if (factors != 1).any():
            blocks = blocks * factors[:, None] * factors
    plain = _plain_products(program, leaves, at)
    sums = _of_mixture(blocks, inside)
    together = plain.total(len(sums))
    types = _types_of_parts(program, leaves, blocks.dtype)
    difference = _largest_gap(*together, sums, blocks.dtype, types)
    gaps = []
    for number in range(len(program.names)):
        own = _of_mixture(entries[number], inside)
        gaps.append(_largest_gap(*plain.of(number), own, types[number]))
    if not difference <= tolerance or not max(gaps) <= tolerance:
        # Relative to the largest entry, which rounding of a constant output does not affect.
        unit = together[1].max()
        of_largest = _largest_gap(together[0], np.full_like(sums, unit), sums, blocks.dtype, types)
        how = (difference, of_largest, len(sums), blocks.dtype)
        _explain(program, params, at, plain, how, gaps)
    if without_pairs:
        # The squared norms of the chosen outputs' gradients end the list of products.
        squares = plain.values.sum(0)[-len(chosen) :]
        own_entries = np.asarray(kernel)[i, j]
        _compare_same_outputs(program, leaves, at, squares, own_entries, types)
    is_conclusive = bool(np.isfinite(entries).all() and np.any(entries))
    distinct = 1 if np.array_equal(*rows) else 2
    return Check(distinct, difference, tolerance, is_conclusive)


def _has_vanishing_outputs(kernel: PyTree, factors: np.ndarray) -> bool:
    """Whether all entries of an output with a factor are near the least number of their type."""
    whole = np.abs(np.asarray(sum(map(np.asarray, jax.tree.leaves(kernel)))))
    least = RANGE_OF_DIGITS * float(jnp.finfo(whole.dtype).tiny)
    if whole.ndim == 4:
        whole = whole.diagonal(axis1=2, axis2=3)
    if whole.ndim == 2:
        return bool(whole.max() < least)
    return bool((whole.max((0, 1)) < least)[factors != 1].any())


def _seeds_of(at: _Place, num_outputs: int) -> tuple[np.ndarray, _Place]:
    """Return the mixture and the chosen outputs as rows of seeds, and their place in these."""
    num_chosen = len(at.chosen)
    seeds = np.zeros((1 + num_chosen, num_outputs), np.float32)
    seeds[0] = at.mixture
    seeds[1 + np.arange(num_chosen), at.chosen] = 1
    unit = (np.arange(len(seeds)) == 0).astype(np.float32)
    ones = np.ones(len(seeds))
    return seeds, _Place(at.rows, unit, 1 + np.arange(num_chosen), ones)


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
    at: _Place,
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
        _largest_gap(
            np.atleast_1d(expected),
            np.atleast_1d(scales),
            np.atleast_1d(entries),
            entries.dtype,
            types,
        ),
        _largest_gap(squares, squares, of_rows, entries.dtype, types),
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


class _Place(NamedTuple):
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


def _of_mixture(blocks: np.ndarray, at: _Place) -> np.ndarray:
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


def _plain_products(
    program: Program, leaves: list[Array], at: _Place, is_compiled: bool = True
) -> _Products:
    """Return the entries of :func:`_of_mixture` from plain gradients.

    Two of the gradients exist at a time.
    """
    gradient: Callable[..., list[Array]] = quickly(_gradient) if is_compiled else _gradient
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
    return _Products(values, np.concatenate([mixed, own[:, None], norms], 1))


def _largest_gap(
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


def _explain(
    program: Program,
    params: PyTree,
    at: _Place,
    plain: _Products,
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
    otherwise = [_plain_products(program, program.leaves(params), at, is_compiled=False)]
    for seed in range(NUM_ROUNDINGS):
        moved = program.leaves(perturbed(params, program.epsilon, seed))
        otherwise.append(_plain_products(program, moved, at))
    for other in otherwise:
        for number in range(len(gaps)):
            moves = _largest_gap(*plain.of(number), other.values[number], types[number])
            rounding[number] = max(rounding[number], moves)
        moves = _largest_gap(*plain.total(size), other.total(size)[0], dtype, types)
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
    _refuse_factors(program, program.leaves(params), at.rows)
    _refuse_small_derivatives(program, program.leaves(params), at.rows)
    if not part:
        refuse_imprecise(program, difference, of_sum)
    raise TracingDisagrees(
        f"The kernel{part} from {len(program.layers)} traced layers differs from that of plain "
        f"gradients by {difference:.1e}; ntk_core.KernelOperator multiplies by it without them. "
        "Please report the model."
    )


def _refuse_factors(program: Program, leaves: list[Array], rows: np.ndarray) -> None:
    """Refuse a layer whose products are outside of their type.

    They are a·a' and δ·δ', even if the product of both is inside. The derivatives δ of each output
    have their own size.

    Raises:
        InvalidInput: with the parameter and the sizes.
    """
    views = quickly(_views)(program, leaves, rows)
    for layer in program.layers:
        limits = jnp.finfo(layer.dtype)
        factors: list[tuple[str, Array]] = []
        for use in layer.uses:
            if use.kind != "look-up":
                factors.append(("inputs", views.inputs[use.name]))
            # (C, rows, …)
            factors += [("derivatives", each) for each in whole(views.cotangents[use.name])]
        for what, array in factors:
            largest = float(np.abs(np.asarray(array).astype(np.float64)).max(initial=0))
            square = largest**2
            is_exact = square >= float(limits.tiny) / float(limits.eps)
            if largest == 0 or (is_exact and square * array.size <= float(limits.max)):
                continue
            raise OutOfRange(
                "net",
                f"{what} around {largest:.0e} at the layer {layer.name}",
                "inputs and outputs in other units or a wider type: products are outside of "
                f"{np.dtype(layer.dtype)}",
            )


def _refuse_small_derivatives(program: Program, leaves: list[Array], rows: np.ndarray) -> None:
    """Refuse derivatives of a few digits, near the least number of their type.

    Raises:
        InvalidInput: with the parameter and the size.
    """
    least = float(jnp.finfo(program.roughest).tiny)
    views = quickly(_views)(program, leaves, rows)
    for layer in program.layers:
        for use in layer.uses:
            cotangents = np.asarray(whole(views.cotangents[use.name])).astype(np.float64)
            largest = float(np.abs(cotangents).max(initial=0))
            if 0 < largest < 100 * least:
                raise OutOfRange(
                    "net",
                    f"derivatives around {largest:.0e} at the layer {layer.name}",
                    f"outputs in other units or a wider type: {np.dtype(program.roughest)} has all "
                    f"digits from {least:.0e} on",
                )


@QUIET
def _refuse_nonlinear_rules(program: Program, params: PyTree, x: Rows) -> None:
    """Refuse a custom backward rule that is not linear in its cotangent, once per program.

    Such a rule clips, rounds or normalizes gradients: there are no derivatives whose products a
    kernel could contain. The gradient of a random mixture u of the outputs is compared with those
    of its multiples and of its parts.

    Raises:
        NonlinearRule: if the gradient of c·u is not c times that of u, or not the sum over parts.
    """
    if "linear rules" in program.kept:
        return
    if not has_reverse_rule(program.closed.jaxpr):
        program.kept["linear rules"] = None
        return
    leaves = program.leaves(params)
    row = np.asarray(x[0])
    rng = np.random.default_rng(0)
    mixture = rng.standard_normal(program.num_outputs).astype(np.float32)
    first = np.where(np.arange(len(mixture)) % 2, 0, mixture)

    def gradient(seed: np.ndarray) -> list[np.ndarray]:
        found = quickly(_gradient)(program, leaves, row, seed)
        return [np.asarray(leaf).astype(np.float64) for leaf in found]

    whole_gradient = gradient(mixture)
    pairs = []
    for factor in CHANGES_OF_SIZE:
        scaled = [factor * leaf for leaf in whole_gradient]
        pairs.append((scaled, gradient(np.float32(factor) * mixture)))
    parts = zip(gradient(first), gradient(mixture - first), strict=True)
    pairs.append((whole_gradient, [one + other for one, other in parts]))
    for expected, found in pairs:
        for leaf, other, place in zip(expected, found, program.names, strict=True):
            scale = np.full_like(leaf, np.abs(leaf).max(initial=0))
            if not np.isfinite(other).all():  # overflow allows no verdict
                continue
            if _largest_gap(leaf, scale, other, leaves[place].dtype) > program.epsilon**0.5:
                raise NonlinearRule(
                    "net",
                    "a function whose custom_vjp is not linear in its cotangent",
                    "a linear backward rule; clip or round gradients in the optimizer, after "
                    "differentiation",
                )
    program.kept["linear rules"] = None


def _views(program: Program, leaves: list[Array], x: Array) -> Views:
    return program.views(leaves, x)


def _inner(one: Sequence[Array], two: Sequence[Array]) -> np.ndarray:
    """Return ⟨one, two⟩ in float64 by array, in stretches that fit a core's cache."""
    found = np.zeros(len(one))
    for at, pair in enumerate(zip(one, two, strict=True)):
        a, b = (np.asarray(leaf).ravel() for leaf in pair)
        for start in range(0, a.size, STRETCH):
            part = [each[start : start + STRETCH].astype(np.float64) for each in (a, b)]
            found[at] += np.einsum("k,k", *part)
    return found


def rounded_otherwise(program: Program, params: PyTree) -> PyTree:
    """Return parameters perturbed by at most one rounding of the program."""
    return perturbed(params, program.epsilon)


def perturbed(params: PyTree, epsilon: float, seed: int = 0) -> PyTree:
    """Return parameters times 1 ± epsilon, with random signs."""
    rng = np.random.default_rng(seed)

    def moved(leaf: Array) -> Array:
        if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        return (leaf * (1 + epsilon * rng.choice([-1, 1], jnp.shape(leaf)))).astype(leaf.dtype)

    return jax.tree.map(moved, params)


def refuse_imprecise(program: Program, difference: float, rounding: float) -> None:
    """Refuse a program whose precision explains the difference of two routes.

    Args:
        difference: relative difference of the routes.
        rounding: relative change of the plain route under perturbed rounding.
    """
    if not difference <= EXPLAINED * rounding:
        return
    kind = np.dtype(program.roughest).name
    raise Imprecise(
        "net",
        f"a function too sensitive to rounding in {kind}",
        f"a wider type than {kind}, since rounding of the parameters moves derivatives by "
        f"{rounding:.0e} of their size",
    )


def _gradient(program: Program, leaves: list[Array], row: Array, seed: Array) -> list[Array]:
    """Return ∇⟨u, f(x)⟩ of all moving parameters, by reverse mode."""
    places = list(program.names)

    def mixture(moving: list[Array]) -> Array:
        values = dict(enumerate(leaves)) | dict(zip(places, moving, strict=True))
        outputs = program.row(list(values.values()), row)
        return jnp.sum(outputs * seed.astype(outputs.dtype))

    with jax.default_matmul_precision("highest"):
        return jax.grad(mixture)([leaves[at] for at in places])


@cache
def quickly(function: Callable[..., Result]) -> Callable[..., Result]:
    """Compile for one run, with a static first argument."""
    return jax.jit(
        function, static_argnums=0, compiler_options=quick_options(jax.default_backend())
    )


def quick_options(backend: str, level: int = 0) -> dict[str, int | bool] | None:
    """Return compiler options for programs that run once or on little data.

    A low LLVM level on CPUs.

    XLA's older emitters, while available, compile a gradient in half the time.
    """
    if backend != "cpu":
        return None
    older = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
    return {
        "xla_backend_optimization_level": level,
        "xla_cpu_parallel_codegen_split_count": 1,
        **({"xla_cpu_use_fusion_emitters": False} if older else {}),
    }


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
