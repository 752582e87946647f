"""The tangent kernel of any differentiable function, by contraction of its Jacobian."""

from collections.abc import Callable
from typing import cast

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.networks.architectures import Network, merge
from ntk_core.traced import Apply, Model


def split_inexact(params: PyTree) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
    """Return (floating-point leaves, a function that replaces them); masks and counters are kept."""
    leaves, structure = jax.tree.flatten(params)
    moves = [hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in leaves]

    def restore(moving: PyTree) -> PyTree:
        new = iter(moving)
        return jax.tree.unflatten(
            structure, [next(new) if m else leaf for m, leaf in zip(moves, leaves, strict=True)]
        )

    return [leaf for m, leaf in zip(moves, leaves, strict=True) if m], restore


def moving_of(net: Model, params: PyTree) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
    """Return (trained parameters of a network or all floats of a function, a function that replaces them)."""
    if not isinstance(net, Network):
        return split_inexact(params)
    trained, fixed = net.partition(params)
    return trained, lambda moved: merge(moved, fixed)


def as_function(net: Model) -> Apply:
    """(params, x) ↦ outputs."""
    return net.apply if isinstance(net, Network) else net


def as_it_is(apply: Apply) -> Apply:
    """Wrap a function to compile at every call, since untraceable functions may change."""
    return lambda params, x: apply(params, x)


def generic_ntk(
    apply: Apply,
    params: PyTree,
    x1: Shaped[ArrayLike, "n1 ..."],
    x2: Shaped[ArrayLike, "n2 ..."] | None = None,
) -> Float[Array, "n1 n2 C C"]:
    """K[i, j, a, b] = Σ_w (∂f_a(x1_i)/∂w)(∂f_b(x2_j)/∂w), shape (n1, n2, C, C), from explicit Jacobians.

    Stores n·C·p numbers; used for callables without layers, and as the tests' oracle.
    """
    moving, restore = split_inexact(params)

    def jacobian(x: ArrayLike) -> list[Float[Array, "n C size"]]:
        leaves = jax.jacrev(lambda w: apply(restore(w), cast(Array, x)))(moving)
        return [leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves]

    with jax.default_matmul_precision("highest"):
        left = jacobian(x1)
        right = left if x2 is None else jacobian(x2)
        parts = [jnp.einsum("iap,jbp->ijab", u, v) for u, v in zip(left, right, strict=True)]
    return jnp.sum(jnp.stack(parts), axis=0)
