"""Checks of traced programs: independent rows by proof or comparison, kernels against plain derivatives."""

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
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, RowsMix
from ntk_core.networks.architectures import Network
from ntk_core.traced._derivatives import transposed
from ntk_core.traced._drawn import draws
from ntk_core.traced._of_network import program_of_network
from ntk_core.traced._program import Model, Program, Rows, whole_kernels
from ntk_core.traced._row_axes import Proof
from ntk_core.traced._rows import operation_between_rows
from ntk_core.traced._same import Comparison
from ntk_core.traced._trace import Batch, traced_batch

EXPLAINED = 30  # differences up to this multiple of one rounding are the program's precision
ROWS_SEARCHED = 64  # for two that differ
STRETCH = 2**14
MOST_ROWS_DRAWN = (
    128  # whose program is compiled already; a kernel of many rows is computed in blocks
)
# Evidence of independent rows: by proof, at random numbers, or at the given ones alone, so that each call repeats it.
PROVEN, COMPARED, AS_GIVEN = "proven", "compared", "compared as given"
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


@dataclass(frozen=True)
class Check:
    """Largest error of the kernel against plain derivatives, relative to the gradients' norms.

    Attributes:
        num_inputs: number of distinct compared rows.
        kernel: largest difference of inner products ⟨∇⟨u_i, f(x_i)⟩, ∇⟨u_j, f(x_j)⟩⟩ for random u from both.
        tolerance: of the kernel; larger errors raise.

    >>> Check(num_inputs=3, kernel=1e-7, tolerance=1e-3).kernel < 1e-3
    True
    """

    num_inputs: int
    kernel: float
    tolerance: float


def checked(apply: Model, params: PyTree, x: Rows) -> Program | None:
    """Return the checked program of a model; for a network that of its pre-outputs.

    None if Jacobians are needed: the function cannot be traced, or no numbers are available to check it.

    Raises:
        InvalidInput: if rows of ``x`` interact, with the operation.
        TracingDisagrees: inside ``jax.jit``, if the kernel at random numbers differs from plain derivatives.
    """
    if isinstance(apply, Program):
        return apply
    if isinstance(apply, Network):
        return program_of_network(apply, params, jax.ShapeDtypeStruct(x.shape[1:], x.dtype))
    batch = traced_batch(apply, params, x)
    if batch is None or not len(x):
        return None
    if batch.apart in ("", AS_GIVEN):  # numbers that no check has seen
        batch.apart = _how_apart(batch, params, x)
    if not batch.program.num_outputs or not batch.apart:
        return None
    unknown = any(isinstance(each, jax.core.Tracer) for each in (*jax.tree.leaves(params), x))
    if unknown and not compared_once(batch.program, "kernel", _kernel_compared, params, x[:2]):
        return None
    return batch.program


def compared_once(
    program: Program,
    name: str,
    compare: Callable[[Program, PyTree, Rows], object],
    params: PyTree,
    x: Rows,
) -> bool:
    """Run ``compare(program, params, x)`` once per name; return whether it ran. It raises on disagreement.

    Inside ``jax.jit`` and ``jax.vmap`` random numbers replace unknown ones, since equations depend only on shapes; they
    are inconclusive if outputs are not finite. Known numbers are compared as they are.
    """
    unknown = any(isinstance(each, jax.core.Tracer) for each in (*jax.tree.leaves(params), x))
    kept_as = f"{name}, drawn" if unknown else name
    if {name, kept_as} & program.kept.keys() and name not in program.only_as_given:
        return True
    with jax.core.eval_context():
        numbers = _numbers(params, x)
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
    """Repeat a comparison at random numbers; without finite ones, note that each call has to repeat it.

    Numbers at which rounding prevents a verdict are skipped.
    """
    for drawn, rows in draws(params, *inputs):
        try:
            is_conclusive = compare(drawn, [jnp.asarray(each) for each in rows])
        except Imprecise:
            continue
        if is_conclusive:
            program.only_as_given.discard(name)
            return
    program.only_as_given.add(name)


def _numbers(params: PyTree, x: Rows) -> tuple[PyTree, Rows] | None:
    """Replace unknown parameters and inputs by small random numbers; see :func:`numbers_for`."""
    found: tuple[PyTree, Rows] | None = numbers_for((params, x))
    return found


def numbers_for(given: PyTree) -> PyTree | None:
    """Replace unknown arrays by small random numbers; return None for keys, which cannot be drawn."""
    leaves = jax.tree.leaves(given)
    if any(
        isinstance(each, jax.core.Tracer) and jnp.issubdtype(each.dtype, jax.dtypes.extended)
        for each in leaves
    ):
        return None
    return jax.tree.map(partial(_drawn, np.random.default_rng(0)), given)


def _drawn(rng: np.random.Generator, leaf: Rows) -> Rows:
    if not isinstance(leaf, jax.core.Tracer):
        return leaf
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return jnp.asarray(rng.integers(0, 2, leaf.shape), leaf.dtype)
    return jnp.asarray(
        rng.standard_normal(leaf.shape, np.float32) / max(1, *leaf.shape[:1]) ** 0.5, leaf.dtype
    )


def _how_apart(batch: Batch, params: PyTree, x: Rows) -> str:
    """Return ``proven``, ``compared`` or ``compared as given``; empty if none is possible.

    Raises:
        InvalidInput: if rows interact.
    """
    proof = Proof(batch.size)
    operation = operation_between_rows(batch.closed, proof)
    if operation is None and Comparison(proof).alike(batch.closed, batch.program.single):
        return PROVEN
    with jax.core.eval_context():
        numbers = _numbers(params, x)
        if numbers is None:
            return ""
        mixes = f"a function in which {operation or 'the size of the batch'} mixes the rows of x"
        for rows in _batches(numbers[1], batch.size):
            _refuse_mixed_rows(batch, numbers[0], rows, mixes)
        for drawn, (others,) in draws(numbers[0], _batches(numbers[1], batch.size)[-1]):
            if _refuse_mixed_rows(batch, drawn, jnp.asarray(others), mixes):
                return COMPARED
    return AS_GIVEN


def _refuse_mixed_rows(batch: Batch, params: PyTree, rows: Array, mixes: str) -> bool:
    """Compare a batch with its rows one by one; return whether all numbers were finite.

    Each output and each parameter is compared on its own scale. Where the scale itself is rounding, such as that of
    the derivative of a constant output, rounding of the parameters explains the difference.

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
        if difference <= 10 * program.epsilon**0.5:
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


class Derived(NamedTuple):
    """Outputs (n, C), their derivatives (n, C) along a random direction, and gradients of their random mixture."""

    outputs: Array
    slopes: Array
    gradients: list[Array]


BothWays = tuple[Derived, Derived]


def _parts(found: Derived) -> list[np.ndarray]:
    """Return the arrays that are compared each for itself."""
    columns = [*np.asarray(found.outputs).T, *np.asarray(found.slopes).T]
    return [*columns, *map(np.asarray, found.gradients)]


def _batches(x: Rows, size: int) -> list[Array]:
    """Return the given rows and as many random ones, all distinct; ids are drawn from the given ones."""
    rng = np.random.default_rng(0)
    given = np.asarray(x)
    if np.issubdtype(given.dtype, np.integer) or given.dtype == bool:
        drawn = rng.choice(given.ravel(), (size, *given.shape[1:]))
    else:
        spread = np.asarray(given, np.float64)
        drawn = spread.mean() + (spread.std() or 1) * rng.standard_normal((size, *given.shape[1:]))
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

    def derived(function: Callable[[list[Array]], Array], weights: Array | None) -> Derived:
        outputs, pull = jax.vjp(function, at)
        # The transpose of reverse mode: forward mode has no custom_vjp.
        slopes = transposed(pull, outputs)((direction,))
        if weights is None:
            weights = _reciprocal(jnp.max(jnp.abs(slopes), 0))
        (gradients,) = pull(seeds.astype(outputs.dtype) * weights)
        return Derived(outputs, slopes, gradients)

    with jax.default_matmul_precision("highest"):
        apart = derived(single, None)
        # A large output must not hide the gradient of a small one: both have about the same weight in the mixture.
        weights = _reciprocal(jnp.max(jnp.abs(apart.slopes), 0))
        return derived(whole, weights), apart


def _reciprocal(sizes: Array) -> Array:
    """Return 1 / sizes; 1 for numbers whose reciprocal is 0 or infinite."""
    reciprocals = 1 / sizes
    return jnp.where(jnp.isfinite(reciprocals) & (reciprocals > 0), reciprocals, 1)


def agree(program: Program, params: PyTree, x1: Array, x2: Array | None, kernel: PyTree) -> None:
    """Compare a kernel of ``program``, or its parts, with plain derivatives for two distinct rows, once per program.

    Raises:
        TracingDisagrees: if they differ.
    """
    if program.stated.layers or not program.layers:
        return
    is_seen = "kernel" in program.kept and "kernel" not in program.only_as_given
    unknown = any(
        isinstance(each, jax.core.Tracer) for each in jax.tree.leaves((params, x1, x2, kernel))
    )
    if is_seen or unknown:
        return
    program.kept["kernel"] = _compared(program, params, x1, x2, kernel)
    per_layer = isinstance(kernel, dict)
    inputs = [
        each if len(each) <= MOST_ROWS_DRAWN else each[:2] for each in (x1, x2) if each is not None
    ]

    def at(drawn: PyTree, rows: Sequence[Rows]) -> bool:
        left, right = rows[0], (rows[1] if len(rows) > 1 else None)
        found = whole_kernels(program, per_layer, program.leaves(drawn), left, right)
        if not all(np.isfinite(each).all() for each in jax.tree.leaves(found)):
            return False  # overflow of large numbers, which allows no verdict
        _compared(program, drawn, left, right, found)
        return all(np.any(each) for each in jax.tree.leaves(found))

    _compare_at_random_numbers(program, "kernel", at, params, *inputs)


def _kernel_compared(program: Program, params: PyTree, x: Rows) -> Check:
    return _compared(
        program, params, x, None, whole_kernels(program, False, program.leaves(params), x, None)
    )


def _compared(program: Program, params: PyTree, x1: Rows, x2: Rows | None, kernel: PyTree) -> Check:
    rng = np.random.default_rng(0)
    tolerance = program.epsilon**0.5
    if not program.layers:
        return Check(0, 0.0, tolerance)
    left, right = np.asarray(x1), np.asarray(x1 if x2 is None else x2)
    i = int(rng.integers(len(left)))
    others = rng.permutation(len(right))[:ROWS_SEARCHED]
    j = int(next((at for at in others if not np.array_equal(left[i], right[at])), others[0]))
    entries = [(0, 1)] if x2 is not None else [(0, 0), (0, 1), (1, 1)]
    places, leaves = (i, j), program.leaves(params)
    seeds = rng.standard_normal((2, program.num_outputs))
    seeds = seeds.astype(np.float32)

    def products(leaves: list[Array]) -> tuple[np.ndarray, float]:
        """Return inner products of plain gradients, and the scale of rows with themselves."""
        pair = [
            quickly(_gradient)(program, leaves, row, seed)
            for row, seed in zip((left[i], right[j]), seeds, strict=True)
        ]
        gram = {(a, b): _inner(pair[a], pair[b]) for a, b in ((0, 0), (0, 1), (1, 1))}
        return np.array([gram[entry] for entry in entries]), max(gram[0, 0], gram[1, 1])

    block = np.asarray(sum(map(np.asarray, jax.tree.leaves(kernel))))
    expected, scale = products(leaves)
    with np.errstate(
        over="ignore", under="ignore"
    ):  # where the kernel's own type has no such numbers
        expected = expected.astype(block.dtype)
    seeds = seeds.astype(np.float64)
    found = np.array(
        [seeds[a] @ block[places[a], places[b]].astype(np.float64) @ seeds[b] for a, b in entries]
    )
    scale = scale if np.isfinite(scale) else 0.0
    difference = difference_of(expected, found, scale)
    if not difference <= tolerance:
        seeds = seeds.astype(np.float32)
        moved, _ = products(program.leaves(rounded_otherwise(program, params)))
        refuse_imprecise(program, difference, difference_of(expected, moved, scale))
        raise TracingDisagrees(
            f"The kernel from {len(program.layers)} traced layers differs from that of plain gradients by "
            f"{difference:.1e}; ntk_core.KernelOperator multiplies by it without them. Please report the model."
        )
    return Check(1 if i == j and x2 is None else 2, difference, tolerance)


def _inner(one: Sequence[Array], two: Sequence[Array]) -> float:
    """Return ⟨one, two⟩ in float64, in stretches that fit a core's cache."""
    total = 0.0
    for pair in zip(one, two, strict=True):
        a, b = (np.asarray(leaf).ravel() for leaf in pair)
        for at in range(0, a.size, STRETCH):
            total += np.einsum(
                "k,k", *(each[at : at + STRETCH].astype(np.float64) for each in (a, b))
            )
    return total


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
        f"a wider type than {kind}, since rounding of the parameters moves derivatives by {rounding:.0e} of their size",
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
    """Return compiler options for programs that run once or on little data: a low LLVM level on CPUs.

    XLA's older emitters, while available, compile a gradient in half the time.
    """
    if backend != "cpu":
        return None
    older = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
    return {
        "xla_backend_optimization_level": level,
        **({"xla_cpu_use_fusion_emitters": False} if older else {}),
    }


def difference_of(expected: ArrayLike, found: ArrayLike, scale: float = 0.0) -> float:
    """Return the largest difference relative to the largest entry; infinite if nonfinite entries differ."""
    one, other = np.asarray(expected).astype(np.float64), np.asarray(found).astype(np.float64)
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return np.inf
    one, other = (np.where(np.isfinite(each), each, 0) for each in (one, other))
    scale = max(np.abs(one).max(initial=0), np.abs(other).max(initial=0), scale)
    return float(np.abs(one - other).max(initial=0) / scale) if scale else 0.0
