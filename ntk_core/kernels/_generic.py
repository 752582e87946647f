"""The tangent kernel of any differentiable function, by contraction of its Jacobian."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.networks.architectures import Network, merge
from ntk_core.traced import Apply, Model, moving_leaves


def split_inexact(params: PyTree) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
    """Return (floating-point leaves, a function that replaces them).

    Masks and counters are kept.
    """
    return _split(moving_leaves(None, params), params)


def moving_of(net: Model, params: PyTree) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
    """Return (differentiated parameters, a function that replaces them).

    These are the trained parameters of a network, and the chosen floats of a function as a list.
    """
    if not isinstance(net, Network):
        return _split(moving_leaves(net, params), params)
    trained, fixed = net.partition(params)
    return trained, lambda moved: merge(moved, fixed)


def direction_of(net: Model, params: PyTree, moving: PyTree) -> PyTree:
    """Return a direction in which the given parameters move, as a tree like ``params``.

    Other floats do not move: they are 0. Integers, which are no directions, keep their values.
    """
    _, restore = moving_of(net, params)
    if isinstance(net, Network):
        return restore(moving)
    zeros = jax.tree.map(
        lambda leaf, is_float: jnp.zeros_like(leaf) if is_float else leaf,
        params,
        jax.tree.unflatten(jax.tree.structure(params), moving_leaves(None, params)),
    )
    return _split(moving_leaves(net, params), zeros)[1](moving)


def _split(moves: Sequence[bool], params: PyTree) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
    """Return (moving leaves, a function that replaces them)."""
    leaves, structure = jax.tree.flatten(params)

    def restore(moving: PyTree) -> PyTree:
        new = iter(moving)
        return jax.tree.unflatten(
            structure, [next(new) if m else leaf for m, leaf in zip(moves, leaves, strict=True)]
        )

    return [leaf for m, leaf in zip(moves, leaves, strict=True) if m], restore


def as_function(net: Model) -> Apply:
    """(params, x) ↦ outputs."""
    return net.apply if isinstance(net, Network) else net


@dataclass(frozen=True, eq=False)
class AsItIs:
    """A function at one call, equal to no other one."""

    function: Apply

    def __call__(self, params: PyTree, x: Array) -> Array:
        return self.function(params, x)


def as_it_is(apply: Apply) -> Apply:
    """Wrap a function to compile at every call, since untraceable functions may change."""
    return AsItIs(apply)


def generic_ntk(
    apply: Apply,
    params: PyTree,
    x1: Shaped[ArrayLike, "n1 ..."],
    x2: Shaped[ArrayLike, "n2 ..."] | None = None,
) -> Float[Array, "n1 n2 C C"]:
    """K[i, j, a, b] = Σ_w (∂f_a(x1_i)/∂w)(∂f_b(x2_j)/∂w) from explicit Jacobians.

    Its shape is (n1, n2, C, C).

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
