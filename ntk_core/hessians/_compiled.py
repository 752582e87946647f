"""Compiled Hessian products, compared with plain ones before a function's first result."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from jax.stages import Wrapped
from jax.tree_util import Partial, PyTreeDef
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput
from ntk_core.hessians._lanczos import Tridiagonal, beginning, step
from ntk_core.hessians._operator import operator, output_scalar
from ntk_core.hessians._space import Bases, SmallSpace, dimension_in, lifted, zero_coordinates
from ntk_core.kernels import as_it_is, refuse_traced
from ntk_core.networks.architectures import Network
from ntk_core.traced import (
    Model,
    Program,
    TracingDisagrees,
    checked,
    compared_once,
    program_of_network,
    quick_options,
    quickly,
    refuse_imprecise,
    refuse_no_curvature,
    rounded_otherwise,
    value_and_slope,
    wide,
)

Linearized = tuple[Partial, Array, dict[str, Bases]]
CALLS_REPEATED = 4  # calls of one program and shape that suggest more
NORMS_REPAID = 256  # each saves 5 to 25 ms; stretches compile in two seconds
MANY_WEIGHTS = 4_000_000  # above, optimized products are a fifth faster and compile 0.3 s longer


def compiled_product(
    net: Network | Program,
    params: PyTree,
    x: Array | np.ndarray,
    output_index: int,
    outputs: tuple[str, ...] = (),
) -> tuple[Callable[[np.ndarray], tuple[Array, Array]], Array, dict[str, Bases]]:
    """Return (compiled v ↦ (P v, H P v), the zero vector, bases of the small space).

    The index may change without compiling; with ``outputs`` as for :func:`output_scalar`.
    """
    linearized, image = _compiled(jax.default_backend(), num_weights(params) > MANY_WEIGHTS)
    product, zero, bases = linearized(net, outputs, params, x, output_index)
    return partial(image, product, params), zero, bases


def compiled_stretches(
    net: Network | Program,
    params: PyTree,
    x: Array | np.ndarray,
    output_index: int,
    rng: np.random.Generator,
    most: int,
) -> tuple[Callable[[Tridiagonal, int], Tridiagonal], Tridiagonal]:
    """Return optimized programs and the first state, for ``most`` steps.

    Each program maps a state to the state some Lanczos steps later.
    """
    program = program_of(net, params, x)
    if program.zero is None:
        _, zero, bases = jax.eval_shape(partial(_linearized, net, ()), params, x, output_index)
        program.zero = zero
        program.dimension = dimension_in(zero.size, bases)
    start = drawn_start(rng, program.zero)
    begin, advance = _stretches(jax.default_backend())
    product, state = begin(net, most, params, x, output_index, start)
    return lambda state, size: advance(state, size, product, params, start), state


def drawn_start(rng: np.random.Generator, zero: Array | jax.ShapeDtypeStruct) -> np.ndarray:
    """Draw a random starting vector, the same on both routes."""
    return rng.standard_normal(zero.size).astype(zero.dtype)


@cache
def _stretches(backend: str) -> tuple[Wrapped, Wrapped]:
    """Compile programs that run often.

    On a CPU with LLVM's first optimization level, in two thirds of the time.
    """

    def begin(
        net: Network | Program,
        most: int,
        params: PyTree,
        x: Array,
        output_index: int | Array,
        start: Array,
    ) -> tuple[Partial, Tridiagonal]:
        product, _, _ = _linearized(net, (), params, x, output_index)
        inside, _ = _image(product, params, start)
        return product, beginning(inside, most)

    def advance(
        state: Tridiagonal, size: int | Array, product: Partial, params: PyTree, start: Array
    ) -> Tridiagonal:
        def image(v: Array) -> Array:
            _, found = _image(product, params, v)
            return found

        def one_step(_: Array, state: Tridiagonal) -> Tridiagonal:
            # Images are inside of the space, so that nothing is left to project.
            return step(image, lambda v: v, state, start)

        return lax.fori_loop(0, size, one_step, state)

    compiled = partial(jax.jit, compiler_options=quick_options(backend, level=1))
    return compiled(begin, static_argnums=(0, 1)), compiled(advance, donate_argnums=0)


def program_of(net: Network | Program, params: PyTree, x: Array | np.ndarray) -> Program:
    return net if isinstance(net, Program) else program_of_network(net, params, jax.typeof(x))


def num_weights(params: PyTree) -> int:
    return sum(np.size(leaf) for leaf in jax.tree.leaves(params))


def is_repeated(
    net: Network | Program, params: PyTree, x: Array | np.ndarray, num_norms: int
) -> bool:
    """Whether norms of these shapes are frequent enough for an optimized program.

    Counts this call.
    """
    program = program_of(net, params, x)
    program.num_norms += 1
    return program.num_norms >= CALLS_REPEATED or repetition_pays(num_norms)


def repetition_pays(num_norms: int) -> bool:
    """Whether this many norms of one shape repay compiling stretches, at widths of hundreds."""
    return num_norms >= NORMS_REPAID


@cache
def _compiled(backend: str, many_weights: bool = False) -> tuple[Wrapped, Wrapped]:
    """Compile the programs of a norm.

    On a CPU without LLVM optimizations if they run once or on few data.
    """
    quick = quick_options(backend)
    return (
        jax.jit(_linearized, static_argnums=(0, 1), compiler_options=quick),
        jax.jit(_image, compiler_options=None if many_weights else quick),
    )


def _linearized(
    net: Network | Program,
    outputs: tuple[str, ...],
    params: PyTree,
    x: Array,
    output_index: int | Array,
) -> Linearized:
    """Return ((leaves, v) ↦ (P v, H P v), zero, bases).

    Everything at fixed parameters is precomputed.
    """
    hessian = operator(net, params, x, output_scalar(net, output_index, outputs))

    def both(v: Array) -> tuple[Array, Array]:
        inside = hessian.project(v)
        return inside, hessian.matvec(inside)

    # The arrays that the linear map holds are the weights and what is computed from them. Weights
    # would be copied when a compiled program returns them, so that they are left out here and read
    # from the parameters at every product.
    _, linear = jax.linearize(both, hessian.zero)
    held, structure = jax.tree.flatten(linear)
    number_of_leaf = {id(leaf): number for number, leaf in enumerate(jax.tree.leaves(params))}
    sources: list[int | None] = []  # for each array: the number of the leaf, or None
    own = []
    for each in held:
        number = number_of_leaf.get(id(each))
        sources.append(number)
        if number is None:
            own.append(each)
    bases = {} if hessian.space is None else hessian.space.bases
    return Partial(partial(_joined, structure, sources), own), hessian.zero, bases


def _joined(
    structure: PyTreeDef, sources: list[int | None], own: list[Array], leaves: list[Array], v: Array
) -> tuple[Array, Array]:
    """Apply the linear map to v, after putting the leaves of the parameters back into it."""
    rest = iter(own)
    held = []
    for number in sources:
        held.append(next(rest) if number is None else leaves[number])
    linear = jax.tree.unflatten(structure, held)
    inside, image = linear(v)
    return inside, image


def _image(product: Partial, params: PyTree, v: Array) -> tuple[Array, Array]:
    return product(jax.tree.leaves(params), v)


def with_layers(net: Model, params: PyTree, x: Array) -> Model:
    """Return the traced program of a callable; untraceable ones compile at every call.

    The first Hessian product of layers is compared with a plain one.

    Raises:
        InvalidInput: if rows of a batch interact, and inside of ``jax.jit``.
        NoSecondDerivative: for custom rules that have no derivatives themselves.
        TracingDisagrees: if the kernel or the Hessian differs from plain derivatives.
    """
    refuse_traced((params, x), "x")
    if isinstance(net, Network):
        return net
    refuse_no_curvature(net)
    row = np.asarray(x)
    try:
        program = checked(net, params, row[None])
    except InvalidInput:
        raise
    except (TypeError, ValueError):  # incompatible parameters and x are reported elsewhere
        return net
    if program is None:
        return as_it_is(net)
    if program.layers and not compared_once(program, "hessian", _compared, params, row[None]):
        return as_it_is(net)
    return program


def _compared(program: Program, params: PyTree, rows: Array | np.ndarray) -> float:
    """Return the error of ⟨e, H d⟩ for random directions.

    d is in the small space, and e is a direction of all parameters.

    It detects any part of H d outside the space. NaN where the type has too few digits for
    numbers of this size.
    """
    eps = program.epsilon
    x = rows[0]
    rng = np.random.default_rng(0)
    along = {}  # e: signs for every entry of every parameter
    for at in program.names:
        along[at] = rng.integers(0, 2, program.avals[at].shape, np.int8) * 2 - 1
    with jax.default_matmul_precision("highest"):
        product, zero, bases = compiled_product(program, params, x, 0)
        random = rng.standard_normal(zero.size).astype(zero.dtype)
        d, image = jax.device_get(product(random))
        length = float(np.linalg.norm(d.astype(np.float64)))
        length_of_image = float(np.linalg.norm(image.astype(np.float64)))

        def plainly(by: Callable[..., tuple[Array, ...]], params: PyTree) -> list[float]:
            found = quickly(by)(program, params, x, bases, d, image, along)
            return [float(each) for each in found]

        # Forward mode compiles faster; custom_vjp and out-of-range ids need the backward one.
        for by in (_forward, _backward):
            try:
                expected, found, slope = plainly(by, params)
            except (TypeError, NotImplementedError):
                if by is _backward:
                    raise
                continue
            largest = max(length_of_image, abs(expected))
            difference = abs(found - expected)
            # Rounding of the plain derivative is that of ⟨e, ∇f⟩, whose change it is.
            allowed = 10 * eps**0.5 * largest + 10 * eps * length * abs(slope)
            if difference <= allowed or not np.isfinite(expected):
                return difference / largest if largest else 0.0
        limits = jnp.finfo(jnp.promote_types(image.dtype, jnp.float32))
        if largest < float(limits.tiny) / float(limits.eps):
            # Such products are rounding and give no verdict; norms of this size are refused.
            return math.nan
        again, _, _ = plainly(_backward, rounded_otherwise(program, params))
        rounding = abs(again - expected)
        refuse_imprecise(program, difference / largest, rounding / largest)
        raise TracingDisagrees(
            f"A product with the Hessian of {len(program.layers)} traced layers differs from a "
            f"plain one by {difference:.1e} of {largest:.1e}. Please report the model."
        )


def _plain(
    forward: bool,
    program: Program,
    params: PyTree,
    x: Array,
    bases: dict[str, Bases],
    d: Array,
    image: Array,
    along: dict[int, Array],
) -> tuple[Array, ...]:
    """Return ⟨e, H d⟩ by plain derivatives, ⟨e, image⟩ and ⟨e, ∇f⟩.

    Rounding is measured by the last one. All vectors have full size.
    """
    small = SmallSpace(bases, zero_coordinates(program, bases))
    leaves = program.leaves(params)
    places = list(program.names)

    def written_out(flat: Array) -> list[Array]:
        """Return a vector of the small space at the size of the moving parameters."""
        _, unravel = ravel_pytree(small.zero)
        direction = lifted(program, small, unravel(flat), leaves)
        return [direction[at] for at in places]

    both = jax.vmap(written_out)(jnp.stack([d, image]))  # each (2, *shape of the parameter)

    def value(moving: list[Array]) -> Array:
        values = list(leaves)
        for at, leaf in zip(places, moving, strict=True):
            values[at] = leaf
        outputs, _ = program.steady(values, x)
        return outputs[0]

    def inner(one: list[Array], two: list[Array]) -> Array:
        parts = []
        for a, b in zip(one, two, strict=True):
            parts.append(jnp.vdot(a.astype(wide(a.dtype)), b))
        return jnp.asarray(sum(parts))

    at_zero = [leaves[at] for at in places]
    e = [along[at].astype(leaves[at].dtype) for at in places]
    moved = []  # d, in the types of the parameters
    for each, leaf in zip(both, at_zero, strict=True):
        moved.append(each[0].astype(leaf.dtype))

    def slope(moving: list[Array]) -> Array:
        """Return ⟨e, ∇f⟩, whose change along d is ⟨e, H d⟩."""
        if forward:
            _, change = jax.jvp(value, (moving,), (e,))
            return change
        return inner(jax.grad(value)(moving), e)

    first, second = value_and_slope(slope, at_zero, moved)
    return second, inner([each[1] for each in both], e), first


_forward = partial(_plain, True)
_backward = partial(_plain, False)
