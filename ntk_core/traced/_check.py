"""Before a traced program is believed: its rows, its kernel and its Hessian against plain derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr

from ntk_core.errors import InvalidInput
from ntk_core.traced._program import Apply, Program, traced, whole_kernels


class TracingDisagrees(RuntimeError):
    """A traced program whose numbers are not those of the function's own derivatives: a fault of this package."""


@dataclass(frozen=True)
class Check:
    """How far a small instance was from plain derivatives of the function on a whole batch, relative to the largest.

    Attributes:
        num_inputs: rows of that instance.
        outputs: largest difference of outputs, row by row against the batch.
        kernel: of inner products ⟨∇⟨u_i, f(x_i)⟩, ∇⟨u_j, f(x_j)⟩⟩ for random u from both.
        tolerance: of the kernel; beyond it an error is raised.
    """

    num_inputs: int
    outputs: float
    kernel: float
    tolerance: float


def checked(apply: Apply, params: Any, x: Array) -> Program | None:
    """The program of ``apply`` where it has layers, compared with plain derivatives before its first use.

    None where Jacobians of the function are the way: it cannot be traced, none of its parameters is a layer, or there
    are no numbers to check it with.

    Raises:
        InvalidInput: where rows of ``x`` meet each other, with the operation in which they do.
        TracingDisagrees: where the kernel is not that of plain derivatives.
    """
    program = traced(apply, params, x)
    if program is None or not len(x) or not compared_once(program, "kernel", _compared, params, x):
        return None
    return program if program.layers else None


def compared_once(
    program: Program, name: str, compare: Callable[[Program, Any, Array], Any], params: Any, x: Any
) -> bool:
    """Whether ``compare(program, params, x)`` has been made, and kept by its name; it raises where numbers disagree.

    Inside ``jax.jit`` and ``jax.vmap`` numbers are drawn in place of those that are not known, for the equations
    depend on shapes alone; they say nothing where outputs are not finite. Numbers that are known are compared anyway.
    """
    leaves = (*jax.tree.leaves(params), x)
    unknown = [each for each in leaves if isinstance(each, jax.core.Tracer)]
    kept_as = f"{name}, drawn" if unknown else name
    if {name, kept_as} & program.kept.keys():
        return True
    if any(jnp.issubdtype(each.dtype, jax.dtypes.extended) for each in unknown):
        return False
    with jax.ensure_compile_time_eval():
        if unknown:
            draw = partial(_drawn, np.random.default_rng(0))
            params, x = jax.tree.map(draw, params), draw(x, (2, *x.shape[1:]))
            if not np.isfinite(program(params, x)).all():
                return False
        program.kept[kept_as] = compare(program, params, x)
    return True


def _drawn(rng: np.random.Generator, leaf: Any, shape: tuple[int, ...] | None = None) -> Any:
    """Small random numbers in place of what is not known; what is known as it is."""
    if not isinstance(leaf, jax.core.Tracer):
        return leaf
    shape = leaf.shape if shape is None else shape
    if not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return jnp.asarray(rng.integers(0, 2, shape), leaf.dtype)
    return jnp.asarray(rng.standard_normal(shape, np.float32) / max(1, *shape[:1]) ** 0.5, leaf.dtype)


def two_rows(x: Array) -> Array:
    """The first two rows; of a single one also what it is read backwards."""
    return x[:2] if len(x) > 1 else jnp.stack([x[0], jnp.flip(x[0].ravel()).reshape(x[0].shape)])


def _compared(program: Program, params: Any, x: Array) -> Check:
    rows = two_rows(x)
    eps = program.epsilon
    apart = jnp.concatenate([program(params, rows[at : at + 1]) for at in range(2)])
    together = program(params, rows)
    outputs = _difference(together, apart)
    if not outputs <= 10 * eps**0.5:
        raise InvalidInput(
            "net",
            f"a function in which {mixing_operation(program, params, rows)} mixes the rows of x",
            "one that treats each row for itself, such as a batch normalization that keeps its averages",
        )
    if not program.layers:
        return Check(2, outputs, 0.0, eps**0.5)
    seeds = jax.random.normal(jax.random.key(0), apart.shape, apart.dtype)
    expected = _gram_of_gradients(program, params, rows, seeds)
    parts = whole_kernels(program, program.leaves(params), rows, None)
    found = jnp.einsum("ijab,ia,jb->ij", sum(parts.values()), seeds, seeds)
    kernel = _difference(expected, found)
    if not kernel <= eps**0.5:
        raise TracingDisagrees(
            f"The kernel from {len(program.layers)} traced layers differs from that of plain gradients by "
            f"{kernel:.1e}; ntk_core.kernels.generic_ntk computes it without them. Please report the model."
        )
    return Check(2, outputs, kernel, eps**0.5)


def _difference(expected: Array, found: Array) -> float:
    """Largest difference in units of the largest entry; 0 where both are not finite in the same places."""
    one, other = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return np.inf
    one, other = (np.where(np.isfinite(each), each, 0) for each in (one, other))
    scale = max(np.abs(one).max(initial=0), np.abs(other).max(initial=0))
    return float(np.abs(one - other).max(initial=0) / scale) if scale else 0.0


@partial(jax.jit, static_argnums=0)
def _gram_of_gradients(program: Program, params: Any, rows: Array, seeds: Array) -> Array:
    """Inner products of the gradients of two random mixtures of outputs, from the function on the whole batch."""
    leaves, structure = jax.tree.flatten(params)
    moving = {at: leaves[at] for at in program.names}

    def mixtures(moving: dict[int, Array]) -> Array:
        values = [moving.get(at, leaf) for at, leaf in enumerate(leaves)]
        return jnp.sum(program(jax.tree.unflatten(structure, values), rows) * seeds, axis=1)

    with jax.default_matmul_precision("highest"):
        gradients = jax.jacrev(mixtures)(moving)
        flat = [each.reshape(2, -1) for each in jax.tree.leaves(gradients)]
        return jnp.asarray(sum(each @ each.T for each in flat))


def mixing_operation(program: Program, params: Any, x: Array) -> str:
    """The first operation that takes rows of a batch together: one input has an axis for them, no output has."""

    def of_size(n: int) -> ClosedJaxpr:
        rows = jax.ShapeDtypeStruct((n, *x.shape[1:]), x.dtype)
        return jax.make_jaxpr(program.__call__)(params, rows)

    for first, second in _pairs(of_size(2).jaxpr, of_size(3).jaxpr):
        has_rows = [[one.aval.shape != two.aval.shape for one, two in zip(*each, strict=False)] for each in (
            (first.invars, second.invars), (first.outvars, second.outvars),
        )]  # fmt: skip
        if any(has_rows[0]) and not any(has_rows[1]):
            return str(first.primitive.name)
    return "an operation"


def _pairs(one: Jaxpr, two: Jaxpr) -> Iterator[tuple[Any, Any]]:
    """Equations of the same program for two sizes of batches, the inner ones before those that hold them."""
    for first, second in zip(one.eqns, two.eqns, strict=False):
        for name, each in first.params.items():
            inner, other = (getattr(it, "jaxpr", it) for it in (each, second.params.get(name)))
            if isinstance(inner, Jaxpr) and isinstance(other, Jaxpr):
                yield from _pairs(inner, other)
        yield first, second
