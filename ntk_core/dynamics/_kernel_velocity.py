"""Speed of the tangent kernel at initialization."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int, PyTree, Shaped

from ntk_core.dynamics._losses import Loss
from ntk_core.errors import InvalidInput, kind_of
from ntk_core.kernels import (
    ScaledNorm,
    exponent_of,
    has_entries_beyond,
    has_lost_entries,
    kernel_derivative,
    largest_entry,
    moving_of,
    refuse_rows_without_outputs,
    scaled,
    scaled_model,
    scaled_norm,
    widened,
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

# Of factors of a loss whose gradient overflows or vanishes.
GRADIENT_POWERS = (12, 100, -12, -100)


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
        InvalidInput: for a memory limit that is not above 0, and for a speed that the type of the
            parameters cannot represent.

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

    def loss_of(moving: PyTree) -> Array:
        value: Array = mean_loss(outputs(restore(moving), inputs), targets)
        return value

    with jax.default_matmul_precision("highest"):
        slopes, exponent = _scaled_gradient(loss_of, moving)
    if has_lost_entries(slopes):
        refuse_rows_without_outputs(net, params, inputs)
    downhill = restore(jax.tree.map(jnp.negative, slopes))
    kernel, speed = kernel_derivative(net, params, downhill, inputs, memory_limit=memory_limit)
    if has_lost_entries(speed) or has_entries_beyond(net, params, inputs, kernel):
        # The quotient does not depend on the scale of the outputs.
        scaled_net, _ = scaled_model(net, params, inputs)
        kernel, speed = kernel_derivative(
            scaled_net, params, downhill, inputs, memory_limit=memory_limit
        )
    above = scaled_norm(speed)
    below = scaled_norm(kernel)
    quotient = ScaledNorm(above.size / below.size, above.exponent - below.exponent + exponent)
    _refuse_out_of_range(quotient)
    return jnp.ldexp(quotient.size, quotient.exponent)


def _scaled_gradient(
    loss_of: Callable[[PyTree], Array], moving: PyTree
) -> tuple[PyTree, Int[Array, ""]]:
    """Return (∇L / 2^e of order one, e)."""
    value, pull = jax.vjp(loss_of, moving)
    (slopes,) = pull(jnp.ones_like(value))
    power = 0
    for longer in GRADIENT_POWERS:
        if not _is_rough(slopes):
            break
        (other,) = pull(jnp.ldexp(jnp.ones_like(value), longer))
        if not _is_rough(other):
            slopes = other
            power = longer
    exponent = exponent_of(*map(widened, jax.tree.leaves(slopes)))
    unit = jax.tree.map(lambda leaf: scaled(leaf, exponent).astype(leaf.dtype), slopes)
    return unit, exponent - power


def _is_rough(slopes: PyTree) -> bool:
    """Whether a known gradient overflows, or vanishes in its type."""
    leaves = jax.tree.leaves(slopes)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return False
    limits = jnp.finfo(jnp.result_type(*leaves))
    return not float(limits.tiny) / float(limits.eps) <= largest_entry(leaves) < math.inf


def _refuse_out_of_range(velocity: ScaledNorm) -> None:
    """Refuse a known velocity that its type cannot represent.

    Raises:
        InvalidInput: with the size of the velocity, and the remedy.
    """
    size, exponent = velocity
    if isinstance(size, jax.core.Tracer) or not 0 < float(size) < math.inf:
        return
    decimal = math.log10(float(size)) + int(exponent) * math.log10(2)
    limits = jnp.finfo(size.dtype)
    if math.log10(limits.tiny) <= decimal < math.log10(limits.max):
        return
    raise InvalidInput(
        "net",
        f"a relative speed of the kernel around 1e{decimal:.0f}",
        "outputs, targets or parameters in other units, or a wider type; numbers in "
        f"{limits.dtype} are from {float(limits.tiny):.0e} to {float(limits.max):.0e}",
    )
