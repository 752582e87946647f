"""Speed of the tangent kernel at initialization."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.dynamics._losses import Loss
from ntk_core.errors import InvalidInput, kind_of
from ntk_core.kernels import (
    has_lost_entries,
    kernel_derivative,
    moving_of,
    refuse_rows_without_outputs,
    relative_norm,
)
from ntk_core.networks.architectures import Network
from ntk_core.traced import (
    Apply,
    Inputs,
    Trainable,
    accepted,
    accepted_targets,
    restricted,
    with_usual_settings,
)


@with_usual_settings
def kernel_velocity(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: Shaped[ArrayLike, "n C"],
    loss: Callable[[Array, Array], Array] | None = None,
    *,
    memory_limit: float | None = None,
    trainable: Trainable = None,
) -> Float[Array, ""]:
    """Return the relative speed of the kernel at initialization.

    ‖K̇₀‖_F / ‖K₀‖_F, a scalar: the kernel's relative speed under gradient flow of the
    mean loss at ``params``.

    K̇₀ = d/dt K(w_t) at t = 0 with dw/dt = −∇L is the derivative of the kernel of φ(f) along −∇L.
    A step of gradient descent is η units of this time. ``jax.vmap`` over ``params`` computes
    several draws in one batch.

    >>> w, ones = jnp.array(3.0), jnp.ones((1, 1))
    >>> # ∇L = (9 − 1)·6 and K = 4 w², so it is 8 w ∇L / 4 w²
    >>> kernel_velocity(lambda w, x: w**2 * x, w, ones, ones).item()
    32.0

    Args:
        net: a network of this package, or any callable ``apply(params, x) -> (n, C)`` (by
            Jacobians).
        params: w₀.
        x: inputs (n, *input_shape).
        y: targets (n, C).
        loss: mean loss of (f, y) with the pre-outputs f of a network, or the outputs of a
            callable; by default that of ``Loss``: cross-entropy for softmax, ½‖φ(f) − y‖²
            for any other output.
        memory_limit: bytes between parameters and kernel, 4 GiB by default; beyond, rows are
            processed in blocks.
        trainable: the parameters that move, as for ``empirical_ntk``.

    Returns:
        A scalar array.

    Raises:
        InvalidInput: for a memory limit that is not above 0.

    Source: Dyer & Gur-Ari 2020; Huang & Yau 2020; docs/math/kernel-velocity.md.
    """
    if trainable is not None and isinstance(net, Network) and net.output != "linear":
        raise InvalidInput("trainable", kind_of(trainable), "None with an output other than linear")
    net, rows, num_outputs = accepted(restricted(net, params, trainable), params, x)
    inputs = jnp.asarray(rows)
    targets = jnp.asarray(accepted_targets(y, len(rows), num_outputs))
    mean_loss = loss or Loss(net.output if isinstance(net, Network) else "linear")
    moving, restore = moving_of(net, params)
    outputs = net.pre_outputs if isinstance(net, Network) else net

    with jax.default_matmul_precision("highest"):
        slopes = jax.grad(lambda w: mean_loss(outputs(restore(w), inputs), targets))(moving)
    if has_lost_entries(slopes):
        refuse_rows_without_outputs(net, params, inputs)
    downhill = restore(jax.tree.map(jnp.negative, slopes))
    kernel, speed = kernel_derivative(net, params, downhill, inputs, memory_limit=memory_limit)
    return relative_norm(speed, kernel)
