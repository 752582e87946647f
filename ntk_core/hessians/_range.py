"""Hessians whose entries overflow or vanish in the type of the computation.

An output of parameters around 1e30 can have second derivatives around 1e-60. Products with unit
vectors are then 0, and 0 would be taken for the norm of a linear function. In directions as long as
the parameters, the same product has the size of the output divided by that of a parameter, and
shows which of both it is.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.kernels import as_function, moving_of, refuse_rows_without_outputs, widened
from ntk_core.networks.architectures import Network
from ntk_core.traced import Model, linearized


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
    largest = float(np.max(np.abs(np.asarray(values, np.float64)), initial=0.0))
    if not math.isfinite(largest):
        refuse_rows_without_outputs(net, params, np.asarray(x)[None])
    limits = jnp.finfo(_narrowest(net, params, x))
    computed = jnp.finfo(jnp.promote_types(limits.dtype, jnp.float32))
    # Rounding of numbers below tiny / eps is no longer relative to their size.
    smallest = float(computed.tiny) / float(computed.eps)
    if smallest <= largest < math.inf:
        return None
    decimal = float(_decimal(net, _as_arrays(params), jnp.asarray(x), output_index))
    if not math.isfinite(decimal):  # no curvature at all, or derivatives that are not finite
        return None
    overflows = not math.isfinite(largest) and decimal > math.log10(float(limits.max)) - 1
    vanishes = largest < smallest and decimal < math.log10(smallest)
    return decimal if overflows or vanishes else None


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
def _decimal(
    net: Model, params: PyTree, x: Shaped[Array, "..."], output_index: int | Array
) -> Float[Array, ""]:
    """Return log10 of the largest entry of the Hessian, within about one power of ten; −∞ for 0."""
    moving, restore = moving_of(net, params)
    apply = as_function(net)

    def output(moving: PyTree) -> Array:
        return apply(restore(moving), x[None])[0, output_index]

    leaves, structure = jax.tree.flatten(moving)
    sizes = []
    steps = []
    for at, leaf in enumerate(leaves):
        size = jnp.max(jnp.abs(leaf), initial=0)
        size = jnp.where(size > 0, size, 1)
        signs = jax.random.rademacher(jax.random.key(at), leaf.shape, leaf.dtype)
        sizes.append(size)
        steps.append(size * signs)
    _, product = linearized(jax.grad(output), moving)
    bent = jax.tree.leaves(product(jax.tree.unflatten(structure, steps)))
    decimals = []
    for leaf, size in zip(bent, sizes, strict=True):
        largest = widened(jnp.max(jnp.abs(leaf), initial=0))
        # H d is the sum of entries times the sizes of parameters, about that of the leaf itself.
        decimals.append(jnp.log10(largest) - jnp.log10(widened(size)))
    return jnp.max(jnp.stack(decimals))
