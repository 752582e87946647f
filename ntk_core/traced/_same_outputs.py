"""Contractions of a layer's tangent kernel for equal outputs alone.

Σ_c K[i, j, c, c], without pairs of outputs.

The inner product of two gradients is summed over the outputs with the other axes of the cotangents.
One output as the only one gives its own entry K[i, j, c, c]. docs/math/kernel_without_jacobians.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ntk_core.traced._contractions import (
    MIN_BLOCKS,
    BlockKernel,
    Cotangents,
    FactoredCotangents,
    Patches,
    Side,
    blocked,
    gram,
    jacobian_contraction,
    whole,
)


def summed_products(d1: Cotangents, d2: Cotangents) -> Float[Array, "n1 n2"]:
    """Return Σ_ck δ^c_ik δ^c_jk of cotangents (C, n, k).

    Pass one object twice for a batch with itself.

    Factored cotangents give Σ_k (Σ_c w_ck²) s_ik s_jk: products of slopes alone.
    """
    if isinstance(d1, FactoredCotangents) and isinstance(d2, FactoredCotangents):
        size = jnp.sqrt(jnp.sum(d1.weights**2, axis=0, keepdims=True))  # (1, k)
        left = FactoredCotangents(d1.slopes, size)
        right = left if d2 is d1 else FactoredCotangents(d2.slopes, size)
        return gram(left, right)[0, :, 0]
    flat1 = _flat_features(whole(d1))
    flat2 = flat1 if d2 is d1 else _flat_features(whole(d2))
    if flat2.shape[1] <= flat2.shape[2]:
        # The products of one output, (n1, n2), are no larger than its cotangents (n1, k), and need
        # no transposed copy of them: 20% faster for 60 rows of 300 features on a CPU.
        return jnp.sum(jnp.einsum("cik,cjk->cij", flat1, flat2), axis=0)
    rows1 = _outputs_inside(flat1)
    return gram(rows1, rows1 if d2 is d1 else _outputs_inside(flat2))


def _flat_features(d: Float[Array, "C n ..."]) -> Float[Array, "C n k"]:
    return d.reshape(*d.shape[:2], -1)


def _outputs_inside(d: Float[Array, "C n k"]) -> Float[Array, "n Ck"]:
    return jnp.moveaxis(d, 0, 1).reshape(d.shape[1], -1)


def summed_in_blocks(
    kernel: Callable[[Side, Side], Array], left: Side, right: Side, entries_per_pair: int
) -> Float[Array, "n1 n2"]:
    """Compute a kernel (n1, n2) in blocks of rows, as :func:`blocked` does for one output."""
    one_output: BlockKernel = lambda one, two: kernel(one, two)[None, :, None, :]  # noqa: E731
    return blocked(one_output, left, right, entries_per_pair)[0, :, 0]


def summed_convolution(
    left: Side, right: Side, features: Callable[[Array], Array], patches: Patches, fan_in: int
) -> Float[Array, "n1 n2"]:
    """Return Σ_pq (patch_ip·patch_jq) Σ_c (δ^c_ip·δ^c_jq).

    Another route is the inner products of all Σ_p patch_ip ⊗ δ^c_ip.

    Arguments are those of :func:`convolution_kernel`.
    """
    a1, d1 = left
    a2, d2 = right
    num_outputs, n1, positions, num_features = d1.shape
    n2 = a2.shape[0]
    channels = patches.channels
    same = left is right
    pairs = n1 * n2 * (0.5 + 0.5 / MIN_BLOCKS if same else 1)
    pixels = math.prod(a1.shape[1:-1])
    by_positions = pairs * (
        pixels**2 * channels + positions**2 * (fan_in // channels + num_outputs * num_features + 1)
    )
    rows = n1 if same else n1 + n2
    by_jacobian = fan_in * num_features * num_outputs * (rows * positions + n1 * n2)
    if by_jacobian <= by_positions:
        features1 = features(a1)
        features2 = features1 if same else features(a2)
        return jacobian_contraction(features1, d1, features2, d2, summed=True)

    def block(one: Side, two: Side) -> Array:
        rows1 = jnp.transpose(one[1], (1, 2, 0, 3)).reshape(one[1].shape[1], positions, -1)
        rows2 = jnp.transpose(two[1], (1, 2, 0, 3)).reshape(two[1].shape[1], positions, -1)
        cotangents = jnp.einsum("ipk,jqk->ipjq", rows1, rows2)
        return jnp.einsum("ipjq,ipjq->ij", cotangents, patches.products(one[0], two[0]))

    return summed_in_blocks(block, left, right, positions**2 + 2 * pixels**2)


def summed_masked(mask: Array, left: Side, right: Side) -> Float[Array, "n1 n2"]:
    """Return Σ_uv M_uv a_iu a_ju Σ_c δ^c_iv δ^c_jv.

    Inputs are (n, fan_in), cotangents (C, n, num_features).
    """
    fan_in, num_features = mask.shape
    edges = mask.astype(left[0].dtype)

    def block(one: Side, two: Side) -> Array:
        reach = (one[0][:, None, :] * two[0][None, :, :]) @ edges
        products = jnp.einsum("civ,cjv->ijv", one[1], two[1])
        return jnp.sum(reach * products, -1)

    return summed_in_blocks(block, left, right, fan_in + 2 * num_features)
