"""How fast the tangent kernel begins to move in training, without training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Shaped

from ntk_core.dynamics._losses import Loss
from ntk_core.kernels import kernel_derivative, split_inexact
from ntk_core.networks.architectures import Network, merge
from ntk_core.traced import accepted, accepted_targets

Apply = Callable[[Any, Array], Array]


def kernel_velocity(
    net: Network | Apply,
    params: Any,
    x: Shaped[ArrayLike, "n ..."],
    y: Shaped[ArrayLike, "n C"],
    loss: Callable[[Array, Array], Array] | None = None,
    *,
    memory_limit: float | None = None,
) -> Float[Array, ""]:
    """Return the relative speed of the kernel at initialization.

    ‖K̇₀‖_F / ‖K₀‖_F, a scalar: the relative speed of the kernel as gradient flow of the mean loss leaves ``params``.

    K̇₀ = d/dt K(w_t) at t = 0 with dw/dt = −∇L is the derivative of the kernel of φ(f) along −∇L. A step of gradient
    descent is η units of this time. Nothing is trained; ``jax.vmap`` over ``params`` takes several draws in one batch.

    >>> w, ones = jnp.array(3.0), jnp.ones((1, 1))
    >>> kernel_velocity(lambda w, x: w**2 * x, w, ones, ones).item()  # ∇L = (9 − 1)·6, K = 4 w²: 8 w ∇L / 4 w²
    32.0

    Args:
        net: a network of this package, or any callable ``apply(params, x) -> (n, C)`` (by Jacobians).
        params: w₀.
        x: inputs (n, *input_shape).
        y: targets (n, C).
        loss: mean loss of (f, y) with the pre-outputs f of a network, or the outputs of a callable; by default what
            ``Loss`` takes for the network's output: cross-entropy for softmax, ½‖φ(f) − y‖² for any other.
        memory_limit: bytes between parameters and kernel, 4 GiB by default; beyond, rows are taken in blocks.

    Returns:
        A scalar array.

    Raises:
        InvalidInput: for a memory limit that is not above 0.

    Source: Dyer & Gur-Ari 2020; Huang & Yau 2020; docs/math/kernel-velocity.md.
    """
    net, rows, num_outputs = accepted(net, params, x)
    inputs, targets = jnp.asarray(rows), jnp.asarray(accepted_targets(y, len(rows), num_outputs))
    mean_loss = loss or Loss(net.output if isinstance(net, Network) else "linear")
    moving: Any
    outputs: Apply
    restore: Callable[[Any], Any]
    if isinstance(net, Network):
        moving, fixed = net.partition(params)
        outputs, restore = net.pre_outputs, partial(merge, fixed=fixed)
    else:
        moving, restore = split_inexact(params)
        outputs = net

    with jax.default_matmul_precision("highest"):
        slopes = jax.grad(lambda w: mean_loss(outputs(restore(w), inputs), targets))(moving)
    downhill = restore(jax.tree.map(jnp.negative, slopes))
    kernel, speed = kernel_derivative(net, params, downhill, inputs, memory_limit=memory_limit)
    return jnp.linalg.norm(speed.ravel()) / jnp.linalg.norm(kernel.ravel())
