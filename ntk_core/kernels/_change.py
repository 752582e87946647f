"""How far a kernel has moved."""

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Shaped


def kernel_change(k: Shaped[ArrayLike, "..."], k0: Shaped[ArrayLike, "..."]) -> Float[Array, ""]:
    """Return the relative change between two kernels.

    ΔK = ‖k − k0‖_F / ‖k0‖_F over all axes of two kernels of equal shape, a scalar.

    All (n, n', C, C) entries count: averaging over the outputs first would hide change between classes.

    Args:
        k: kernel after the change.
        k0: reference kernel of the same shape.

    Returns:
        A scalar array.

    >>> kernel_change(3 * jnp.ones((2, 2, 1, 1)), jnp.ones((2, 2, 1, 1))).item()
    2.0

    Raises:
        ValueError: for kernels of different shapes.

    Source: Liu, Zhu & Belkin 2020, §6.
    """
    k, k0 = jnp.asarray(k), jnp.asarray(k0)
    if k.shape != k0.shape:
        raise ValueError(f"kernels of shapes {k.shape} and {k0.shape} cannot be compared; equal shapes are needed")
    return jnp.linalg.norm((k - k0).ravel()) / jnp.linalg.norm(k0.ravel())
