"""Steps of Gauss–Newton and of the natural gradient, solved in the space of outputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ntk_core.dynamics._losses import Loss

DAMPING = 1e-3  # λ in units of the mean eigenvalue of HK; our choice


def output_coefficients(
    loss: Loss,
    kernel: Float[Array, "n n C C"],
    outputs: Float[Array, "n C"],
    y: Float[Array, "n C"],
    cotangent: Float[Array, "n C"],
) -> Float[Array, "n C"]:
    """Return c with (G + λI)⁻¹ ∇L = Jᵀc, G = JᵀHJ.

    J = ∂F/∂w and H = ∂²L/∂F², one C × C block per sample. From (JᵀHJ + λI) Jᵀ = Jᵀ (HK + λI)
    with K = JJᵀ and ∇L = Jᵀg follows c = (HK + λI)⁻¹ g: a system of n·C equations, whatever
    the number of weights.

    λ = ``DAMPING`` · tr(HK)/(nC), since K may be singular. Without weights that move an
    output, K = 0 and c = g/1.

    Args:
        loss: of the outputs F.
        kernel: K of F at w.
        outputs: F.
        y: targets.
        cotangent: g = ∂L/∂F.

    Source: docs/math/second-order.md.
    """
    n, num_outputs = outputs.shape

    def of_sample(values: Array, target: Array) -> Array:
        return loss.of_model(values[None], target[None])

    # The loss is a mean over the samples: (n, C, C).
    curvature = jax.vmap(jax.hessian(of_sample))(outputs, y) / n
    with jax.default_matmul_precision("highest"):
        blocks = jnp.einsum("iac,ijcb->iajb", curvature, kernel)
    matrix = blocks.reshape(n * num_outputs, n * num_outputs)
    mean_eigenvalue = jnp.trace(matrix) / len(matrix)
    damping = jnp.where(mean_eigenvalue > 0, DAMPING * mean_eigenvalue, 1.0)
    damped = matrix + damping * jnp.eye(len(matrix), dtype=matrix.dtype)
    return jnp.linalg.solve(damped, cotangent.reshape(-1)).reshape(n, num_outputs)
