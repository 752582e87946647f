"""The empirical tangent kernel of a network, without gradients of the size of its weights.

For a layer z = ⟨W, a⟩ the gradient of an output is the outer product of a and δ = ∂f/∂z, so the kernel is
K = Σ_layers (a·a') ∘ (δ·δ'): O(n² C² m) work after one forward and one backward pass (docs/math/kernel_without_jacobians.md).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ntk_core.architectures import LayerViews, Network, NetworkParams, layer_views, output_jacobian
from ntk_core.kernels._generic import generic_ntk

Apply = Callable[[Any, Array], Array]


def empirical_ntk(net: Network | Apply, params: Any, x1: Array, x2: Array | None = None) -> Array:
    """K[i, j, a, b] = ⟨∇_w φ_a(f(x1_i)), ∇_w φ_b(f(x2_j))⟩, shape (n1, n2, C, C).

    ``net`` is a network of this package (fast, structured route) or any callable ``apply(params, x) -> (n, C)``
    (Jacobian contraction). ``x2`` defaults to ``x1``.

    >>> from ntk_core.architectures import FullyConnected
    >>> net = FullyConnected(width=8, depth=1, num_outputs=2, activation="tanh")
    >>> x = jnp.ones((3, 5))
    >>> empirical_ntk(net, net.init(jax.random.key(0), (5,)), x).shape
    (3, 3, 2, 2)

    Source: Jacot, Gabriel & Hongler 2018; Liu, Zhu & Belkin 2020, §2.
    """
    if not isinstance(net, Network):
        return generic_ntk(net, params, x1, x2)
    return _structured(net, params, x1, x2)


@partial(jax.jit, static_argnums=0)
def _structured(net: Network, params: NetworkParams, x1: Array, x2: Array | None) -> Array:
    kernel, f1, f2 = pre_output_ntk(net, params, x1, x2)
    return through_output(net.output, kernel, f1, f2)


def pre_output_ntk(net: Network, params: NetworkParams, x1: Array, x2: Array | None = None) -> tuple[Array, Array, Array]:
    """(kernel of the pre-outputs f, f(x1), f(x2)): shapes (n1, n2, C, C), (n1, C), (n2, C)."""
    with jax.default_matmul_precision("highest"):
        views1 = layer_views(net, params, x1)
        views2 = views1 if x2 is None else layer_views(net, params, x2)
        total = sum(layer_kernels(net, params, views1, views2).values())
        return jnp.transpose(jnp.asarray(total), (1, 3, 0, 2)), views1.outputs, views2.outputs


def layer_kernels(net: Network, params: NetworkParams, views1: LayerViews, views2: LayerViews) -> dict[str, Array]:
    """Each trained layer's part of the pre-output kernel, as (C, n1, C, n2)."""
    return {
        name: layer.kernel(params[name], views1.inputs[name], views1.cotangents[name], views2.inputs[name], views2.cotangents[name])
        for name, layer in net.layers.items()
        if layer.trainable
    }


def through_output(output: str, kernel: Array, f1: Array, f2: Array) -> Array:
    """Kernel of φ(f) from the kernel of f: J(x_i) K(x_i, x_j) J(x_j)ᵀ with J = ∂φ/∂f, all of shape (n1, n2, C, C).

    Networks that share parameters and differ only in φ (the linear and the softmax output of Liu et al., Fig. 1) thus
    share one kernel of their pre-outputs.
    """
    if output == "linear":
        return kernel
    with jax.default_matmul_precision("highest"):
        return jnp.einsum("iac,ijcd,jbd->ijab", output_jacobian(output, f1), kernel, output_jacobian(output, f2))
