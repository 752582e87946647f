"""The tangent kernel of any callable, by the route that needs fewer multiplications.

Counts for inputs whose forward pass takes F multiplications each, p parameters and C outputs:
contraction of Jacobians n C · 2F + n1 n2 C² p, storing n C p numbers; vector products, one per pair
of input and output, n1 n2 C · 2F, storing C p numbers (docs/math/kernel_without_jacobians.md).
"""

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PyTree, Shaped

from ntk_core.kernels._blocks import in_blocks, rows_within
from ntk_core.kernels._generic import AsItIs, as_it_is, moving_of
from ntk_core.kernels._output_pairs import ALL_PAIRS, OutputPairs
from ntk_core.kernels._small_outputs import OutputFactors, Types, is_narrow
from ntk_core.traced import Apply, Program, derivative_along, wide


def callable_ntk(
    apply: Apply,
    params: PyTree,
    x1: Shaped[Array, "n1 ..."],
    x2: Shaped[Array, "n2 ..."] | None,
    memory_limit: float | None,
    pairs: OutputPairs = ALL_PAIRS,
    scale: OutputFactors | None = None,
) -> Float[Array, "n1 n2 ..."]:
    """Return K[i, j, a, b] of ``apply`` for these pairs of outputs.

    It is computed in blocks of rows within a limit in bytes. Outputs are multiplied by the factors
    of ``scale`` before they are differentiated.
    """
    function = apply if isinstance(apply, Program | AsItIs) else as_it_is(apply)
    moving, _ = moving_of(apply, params)
    row = jax.eval_shape(function, params, x1[:1])
    num_outputs = row.shape[-1]
    jacobian_bytes = num_outputs * sum(leaf.size * leaf.dtype.itemsize for leaf in moving)
    num_params = sum(leaf.size for leaf in moving)
    n1 = x1.shape[0]
    n2 = x1.shape[0] if x2 is None else x2.shape[0]
    size = max(n1, n2) if memory_limit is None else rows_within(memory_limit, 2 * jacobian_bytes)
    forward = forward_multiplications(function, params, x1[:1], num_params)
    partners = num_outputs if pairs is OutputPairs.ALL else 1  # of each output
    # Entries of vector products have the type of the outputs, in which float16 has no K = 1e-8.
    can_multiply = not is_narrow(types_of_function(apply, params, x1))
    if can_multiply and vector_products_are_cheaper(
        n1, n2 if x2 is not None else 0, num_outputs, num_params, forward, size, partners
    ):
        right = x1 if x2 is None else x2
        return _by_vector_products(function, pairs, params, x1, right, scale)
    if size >= max(n1, n2):
        return _by_jacobians(function, pairs, params, x1, x2, scale)
    seeds = None if scale is None else scale.seeds
    jacobian = partial(row_jacobian, function, params, seeds=seeds)
    contract = partial(contract_jacobians, pairs)
    return undone(in_blocks(jacobian, contract, x1, x2, size), pairs, scale)


def types_of_function(apply: Apply, params: PyTree, x: Shaped[Array, "n ..."]) -> Types:
    """Return the types of a function's outputs and parameters, and of a program's numbers."""
    if isinstance(apply, Program):
        return Types.of_program(apply)
    moving, _ = moving_of(apply, params)
    row = jax.eval_shape(as_it_is(apply), params, x[:1])
    own = [row.dtype, *(leaf.dtype for leaf in moving)]
    roughest = max(own, key=lambda each: float(jnp.finfo(each).eps))
    parts = frozenset(wide(leaf.dtype) for leaf in moving)
    return Types(row.shape[-1], row.dtype, parts, roughest)


def undone(
    kernel: Float[Array, "n1 n2 ..."], pairs: OutputPairs, scale: OutputFactors | None
) -> Float[Array, "n1 n2 ..."]:
    """Divide a kernel by the factors of its outputs, one after the other."""
    if scale is None:
        return kernel
    reciprocals = scale.reciprocals.astype(kernel.dtype)
    if pairs is OutputPairs.ALL:
        return kernel * reciprocals[:, None] * reciprocals
    if pairs is OutputPairs.EQUAL:
        return kernel * reciprocals * reciprocals
    # The outputs of a mean have one factor.
    return kernel * reciprocals[0] * reciprocals[0]


def vector_products_are_cheaper(
    n1: int,
    n2: int,
    num_outputs: int,
    num_params: int,
    forward: float,
    block: int,
    partners: int,
) -> bool:
    """Whether vector products need fewer multiplications than Jacobians in blocks of rows.

    n2 = 0 for x2 = x1.
    """
    others = n2 or n1
    blocks1 = math.ceil(n1 / block)
    blocks2 = math.ceil(others / block)
    # Each block of x1 recomputes the Jacobians of all blocks of x2; half of them if x2 is x1.
    recomputed = n1 + (others * blocks1 if n2 else (blocks2 - 1) * n1 / 2)
    by_jacobians = (
        recomputed * num_outputs * 2 * forward + n1 * others * num_outputs * partners * num_params
    )
    by_products = (n1 + 1) * others * num_outputs * 2 * forward
    return by_products < by_jacobians


def forward_multiplications(function: Apply, params: PyTree, row: Array, num_params: int) -> float:
    """Return the compiler's count of multiplications for one row's forward pass; p if unknown."""
    costs = jax.jit(function).lower(params, row).cost_analysis()
    flops = costs.get("flops", 0.0) if isinstance(costs, dict) else 0.0
    return flops / 2 if flops > 0 else float(num_params)


def _row_function(
    apply: Apply, params: PyTree
) -> tuple[list[Array], Callable[[list[Array], Array], Array]]:
    moving, restore = moving_of(apply, params)
    return moving, lambda leaves, row: apply(restore(leaves), row[None])[0]


@partial(jax.jit, static_argnums=0)
def row_jacobian(
    apply: Apply,
    params: PyTree,
    x: Shaped[Array, "n ..."],
    seeds: Float[Array, "C C"] | None = None,
) -> list[Float[Array, "n C _"]]:
    """Return ∂apply/∂w of each leaf, (n, C, size), by C backward passes per row.

    ``seeds`` of these passes are usually the unit vectors.
    """
    moving, function = _row_function(apply, params)

    def of_row(row: Array) -> list[Array]:
        if seeds is None:
            return jax.jacrev(function)(moving, row)
        return _gradients(function, moving, row, seeds)

    with jax.default_matmul_precision("highest"):
        leaves = jax.vmap(of_row)(x)
    return [leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves]


def _gradients(
    function: Callable[..., Array],
    moving: PyTree,
    row: Shaped[Array, "..."],
    seeds: Float[Array, "C C"] | None,
) -> PyTree:
    """Return the gradients of the outputs of one row, with a leading axis of outputs.

    With ``seeds``, those of the combinations of outputs in its rows.
    """

    def outputs(leaves: PyTree) -> Array:
        return function(leaves, row)

    output, pull = jax.vjp(outputs, moving)
    if seeds is None:
        seeds = jnp.eye(output.shape[-1])
    (gradients,) = jax.vmap(pull)(seeds.astype(output.dtype))
    return gradients


@partial(jax.jit, static_argnums=0)
def contract_jacobians(
    pairs: OutputPairs,
    left: list[Float[Array, "n1 C _"]],
    right: list[Float[Array, "n2 C _"]] | None,
) -> Float[Array, "n1 n2 ..."]:
    other = left if right is None else right
    with jax.default_matmul_precision("highest"):
        if pairs is OutputPairs.ALL:
            axes = "iap,jbp->ijab"
        elif pairs is OutputPairs.EQUAL:
            axes = "iap,jap->ija"
        else:
            axes = "iap,jap->ij"
        parts = []
        for u, v in zip(left, other, strict=True):
            dtype = wide(u.dtype)
            parts.append(jnp.einsum(axes, u.astype(dtype), v.astype(dtype)))
        total = jnp.asarray(sum(parts))
        return total / left[0].shape[1] if pairs is OutputPairs.MEAN else total


@partial(jax.jit, static_argnums=(0, 1))
def _by_jacobians(
    apply: Apply,
    pairs: OutputPairs,
    params: PyTree,
    x1: Array,
    x2: Array | None,
    scale: OutputFactors | None,
) -> Array:
    seeds = None if scale is None else scale.seeds
    left = row_jacobian(apply, params, x1, seeds)
    right = None if x2 is None else row_jacobian(apply, params, x2, seeds)
    return undone(contract_jacobians(pairs, left, right), pairs, scale)


@partial(jax.jit, static_argnums=(0, 1))
def _by_vector_products(
    apply: Apply,
    pairs: OutputPairs,
    params: PyTree,
    x1: Shaped[Array, "n1 ..."],
    x2: Shaped[Array, "n2 ..."],
    scale: OutputFactors | None,
) -> Float[Array, "n1 n2 ..."]:
    """Column (j, b) of the kernel is ⟨∇f(x1), g⟩, g = ∇f_b(x2_j).

    A backward pass, then the transpose of one. Only the former is scaled: its results are
    multiplied by others.
    """
    moving, function = _row_function(apply, params)
    with jax.default_matmul_precision("highest"):
        push = derivative_along(lambda leaves: jax.vmap(partial(function, leaves))(x1), moving)

        def columns(row: Array) -> Array:
            gradients = _gradients(function, moving, row, None if scale is None else scale.seeds)
            found = jax.vmap(push)(gradients)  # (C of x2, n1, C of x1)
            if scale is not None:
                found = found * scale.reciprocals.astype(found.dtype)[:, None, None]
            if pairs is OutputPairs.ALL:
                return jnp.transpose(found, (1, 2, 0))
            equal = jnp.einsum("aia->ia", found)
            return equal if pairs is OutputPairs.EQUAL else equal.mean(1)

        return jnp.swapaxes(jax.lax.map(columns, x2), 0, 1)
