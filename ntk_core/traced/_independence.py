"""Evidence that the rows of a batch are independent: by proof, or by comparison."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr
from jaxtyping import PyTree

from ntk_core.errors import RowsMix
from ntk_core.traced._derivatives import transposed
from ntk_core.traced._drawn import EachLeaf, draws, numbers_for_call, placed
from ntk_core.traced._plain_gradients import difference_of
from ntk_core.traced._precision import EXPLAINED, rounded_otherwise
from ntk_core.traced._program import Apply, Rows
from ntk_core.traced._quickly import quickly
from ntk_core.traced._row_axes import Proof
from ntk_core.traced._rows import operation_between_rows
from ntk_core.traced._same import ProgramComparison
from ntk_core.traced._trace import Batch, Independence

ROUNDINGS_OF_ROWS = 300  # between a batch and its rows, before rounding is measured; our choice


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


def independence_of(batch: Batch, params: PyTree, x: Rows) -> Independence:
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
        numbers = numbers_for_call(params, x, each_leaf)
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


def _batches(x: Rows, size: int, each_leaf: EachLeaf | None) -> list[Array]:
    """Return the given rows and as many random ones, all distinct."""
    draw = partial(_other_rows, np.random.default_rng(0), size)
    given = np.asarray(x)
    drawn = draw(given) if each_leaf is None else each_leaf(draw, given)
    found = jnp.asarray(placed(drawn.astype(x.dtype), x))
    return (
        [jnp.asarray(x), found]
        if len(given) == size
        else [jnp.concatenate([jnp.asarray(x), found[len(given) :]])]
    )


def _other_rows(rng: np.random.Generator, size: int, given: np.ndarray) -> np.ndarray:
    """Return random rows like the given ones; ids are drawn from the given ones."""
    if np.issubdtype(given.dtype, np.integer) or given.dtype == bool:
        return rng.choice(given.ravel(), (size, *given.shape[1:]))
    spread = np.asarray(given, np.float64)
    return spread.mean() + (spread.std() or 1) * rng.standard_normal((size, *given.shape[1:]))


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
