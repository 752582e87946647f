"""The tangent kernel of any differentiable function, by contraction of its Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array


def generic_ntk(apply: Callable[[Any, Array], Array], params: Any, x1: Array, x2: Array | None = None) -> Array:
    """K[i, j, a, b] = Σ_w (∂f_a(x1_i)/∂w)(∂f_b(x2_j)/∂w), shape (n1, n2, C, C), from explicit Jacobians.

    Needs memory for n·C·p numbers; it is the route for callables that are not a ``Network``, and the tests' oracle.
    """

    def jacobian(x: Array) -> list[Array]:
        tree = jax.jacrev(apply)(params, x)
        return [leaf.reshape(leaf.shape[0], leaf.shape[1], -1) for leaf in jax.tree.leaves(tree)]

    with jax.default_matmul_precision("highest"):
        left = jacobian(x1)
        right = left if x2 is None else jacobian(x2)
        parts = [jnp.einsum("iap,jbp->ijab", u, v) for u, v in zip(left, right, strict=True)]
    return jnp.sum(jnp.stack(parts), axis=0)
