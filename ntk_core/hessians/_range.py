"""Hessians whose entries overflow or vanish in the type of the computation.

An output of parameters around 1e30 can have second derivatives around 1e-60. Products with unit
vectors are then 0, and 0 would be taken for the norm of a linear function. Second derivatives
around 1e45 make every product infinite. Products are linear, so that longer or shorter directions
show the size of the entries.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Bool, Float, PyTree, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.kernels import as_function, moving_of, refuse_rows_without_outputs, widened
from ntk_core.networks.architectures import Network
from ntk_core.traced import Model, linearized

# Of the steps in a parameter, relative to its size: with one of them, products with entries of any
# size are within the type.
STEP_LENGTHS = tuple(2.0**power for power in (120, 60, 12, 0, -12, -60, -120))


def refuse_out_of_range(
    net: Model, params: PyTree, x: Array | np.ndarray, output_index: int, values: ArrayLike
) -> None:
    """Refuse a Hessian whose entries its type cannot represent.

    Args:
        net: an accepted model.
        params: where the Hessian is taken.
        x: one input.
        output_index: a, of the differentiated output.
        values: norms or eigenvalues that were found; finite ones of a usual size cost nothing here.

    Raises:
        InvalidInput: with the size of the entries, and the remedy.
    """
    decimal = decimal_beyond(net, params, x, output_index, values)
    if decimal is None:
        return
    limits = jnp.finfo(_narrowest(net, params, x))
    raise InvalidInput(
        "net",
        f"outputs with second derivatives around 1e{decimal:.0f}",
        "outputs or parameters in other units, or a wider type; second derivatives in "
        f"{limits.dtype} are from {float(limits.tiny / limits.eps):.0e} to {float(limits.max):.0e}",
    )


def decimal_beyond(
    net: Model, params: PyTree, x: Array | np.ndarray, output_index: int, values: ArrayLike
) -> float | None:
    """Return log10 of second derivatives beyond the range of their type.

    None if they are within it.

    Raises:
        InvalidInput: for an input that is a tree and has no finite outputs.
    """
    largest = largest_size(values)
    if not math.isfinite(largest):
        refuse_rows_without_outputs(net, params, np.asarray(x)[None])
    dtype = jnp.promote_types(_narrowest(net, params, x), jnp.float32)
    if is_representable(largest, dtype):
        return None
    entries = _entries(net, _as_arrays(params), jnp.asarray(x), output_index)
    return decimal_of_lost(largest, entries, dtype)


def largest_size(values: ArrayLike) -> float:
    """Return the largest |value|; NaN if there is one."""
    return float(np.max(np.abs(np.asarray(values, np.float64)), initial=0.0))


def is_representable(size: float, dtype: DTypeLike) -> bool:
    """Whether neither numbers of this size nor sums of several overflow or lose digits."""
    return smallest_of(dtype) <= size <= _largest_of(dtype)


def _largest_of(dtype: DTypeLike) -> float:
    """Return a sixteenth of the largest number: sums of larger ones may overflow.

    Sums of 16-bit numbers have at least 32 bits.
    """
    return float(jnp.finfo(jnp.promote_types(dtype, jnp.float32)).max) / 16


def smallest_of(dtype: DTypeLike) -> float:
    """Return tiny / eps; rounding of smaller numbers is not relative to their size.

    For float16, whose denormal numbers processors keep, 16 times the smallest one.
    """
    limits = jnp.finfo(dtype)
    if limits.dtype == jnp.float16:
        return 16 * float(limits.smallest_subnormal)
    return float(limits.tiny) / float(limits.eps)


class Entries(NamedTuple):
    """Entries of a symmetric matrix that is known by its products.

    Attributes:
        decimal: log10 of the largest one, within about one power of ten; −∞ for none.
        are_finite: whether its products with short vectors are finite.
    """

    decimal: Float[Array, ""]
    are_finite: Bool[Array, ""]


def decimal_of_lost(largest: float, entries: Entries, dtype: DTypeLike) -> float | None:
    """Return log10 of the entries if a result overflowed or vanished because of their size.

    Args:
        largest: the largest computed |eigenvalue|, outside of the range of ``dtype``.
        entries: of the matrix.
        dtype: of the products.
    """
    decimal = float(entries.decimal)
    if decimal == -math.inf:  # no curvature at all
        return None
    overflows = not largest <= _largest_of(dtype) and bool(entries.are_finite)
    vanishes = largest < smallest_of(dtype) and decimal < math.log10(smallest_of(dtype))
    return decimal if overflows or vanishes else None


def entries_of(product: Callable[[PyTree], PyTree], params: PyTree) -> Entries:
    """Measure the entries of a matrix A between the given parameters, inside of ``jax.jit``.

    Args:
        product: d ↦ A d for directions like the parameters.
        params: the parameters; a step in one of them has its size, times each of
            ``STEP_LENGTHS``.
    """
    leaves, structure = jax.tree.flatten(params)
    sizes = []
    signs = []
    for at, leaf in enumerate(leaves):
        size = widened(jnp.max(jnp.abs(leaf), initial=0))
        sizes.append(jnp.where(size > 0, size, 1))
        signs.append(jax.random.rademacher(jax.random.key(at), leaf.shape, leaf.dtype))
    decimals_of_sizes = jnp.log10(jnp.stack(sizes))

    def decimal_along(request: tuple[Array, Array]) -> tuple[Array, Array]:
        """Return (log10 of entries in the columns of one leaf, whether the product is finite)."""
        chosen, length = request
        steps = []
        for at, (size, sign) in enumerate(zip(sizes, signs, strict=True)):
            step = (size * length).astype(sign.dtype) * sign
            steps.append(jnp.where(chosen == at, step, 0))
        images = jax.tree.leaves(product(jax.tree.unflatten(structure, steps)))
        largest_of_each = [widened(jnp.max(jnp.abs(image), initial=0)) for image in images]
        largest = jnp.max(jnp.stack(largest_of_each))
        decimal = jnp.log10(largest) - decimals_of_sizes[chosen] - jnp.log10(length)
        is_finite = jnp.isfinite(largest)
        return jnp.where(is_finite, decimal, -jnp.inf), is_finite

    # Every leaf with every length; the shortest one comes last.
    lengths = jnp.asarray(STEP_LENGTHS, decimals_of_sizes.dtype)
    chosen = jnp.repeat(jnp.arange(len(leaves)), len(lengths))
    decimals, are_finite = lax.map(decimal_along, (chosen, jnp.tile(lengths, len(leaves))))
    with_shortest = are_finite.reshape(len(leaves), len(lengths))[:, -1]
    return Entries(jnp.max(decimals), jnp.all(with_shortest))


def _as_arrays(params: PyTree) -> PyTree:
    """Return the parameters with arrays of JAX in place of NumPy's."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, params
    )


def _narrowest(net: Model, params: PyTree, x: Array | np.ndarray) -> jnp.dtype:
    """Return the least precise floating-point type of parameters and input."""
    leaves = jax.tree.leaves(moving_of(net, _as_arrays(params))[0])
    if not isinstance(net, Network):
        leaves.append(x)
    kinds = []
    for leaf in leaves:
        kind = jnp.result_type(leaf)
        if jnp.issubdtype(kind, jnp.floating):
            kinds.append(kind)
    return min(kinds, key=lambda kind: (jnp.finfo(kind).bits, float(jnp.finfo(kind).max)))


@partial(jax.jit, static_argnums=0)
def _entries(
    net: Model, params: PyTree, x: Shaped[Array, "..."], output_index: int | Array
) -> Entries:
    """Measure the entries of the Hessian."""
    moving, restore = moving_of(net, params)
    apply = as_function(net)

    def output(moving: PyTree) -> Array:
        return apply(restore(moving), x[None])[0, output_index]

    _, product = linearized(jax.grad(output), moving)
    return entries_of(product, moving)
