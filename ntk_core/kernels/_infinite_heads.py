"""The tangent kernel of one attention layer with infinitely many heads.

Source: docs/math/attention.md.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Shaped

from ntk_core.networks.architectures import Attention
from ntk_core.networks.architectures._convolution import scores_of

NUM_BATCHES = 64
BATCH = 256


class SampledKernel(NamedTuple):
    """Mean over independent heads, and its standard error.

    The error is entry by entry, from the means of batches of heads.
    """

    value: Float[np.ndarray, "n1 n2"]
    standard_error: Float[np.ndarray, "n1 n2"]


def infinite_heads_ntk(
    net: Attention,
    x1: Shaped[ArrayLike, "n1 T d_in"],
    x2: Shaped[ArrayLike, "n2 T d_in"] | None = None,
    *,
    num_batches: int = NUM_BATCHES,
    seed: int = 0,
) -> SampledKernel:
    """lim_{H→∞} of the tangent kernel of one output at the head dimension of ``net``.

    The mean kernel of one head.

    Given queries and keys, hence A, values and output weights are integrated exactly: their two
    layers contribute r·r' each, with r = Ā x / √d_in. Queries contribute J·J' with J = (1/T) Σ_i
    x_i ⊗ Σ_j A_ij (g_j − A_i·g) k_j / (√d_in d^τ) and g = x γ / √d_in, keys the same with exchanged
    roles. The rest, q, k and γ ~ N(0, I), is sampled: 256 heads per batch, in float64.

    Args:
        num_batches: batches of heads; the standard error decreases as its inverse root.
        seed: of the heads, shared by all inputs.

    Source: Hron, Bahri, Sohl-Dickstein & Novak 2020 (limits of many heads); the formulas for
    fixed d are derived here.
    """
    parts = tuple(layer.trainable for layer in net.layers.values())
    left = np.asarray(x1, np.float64)
    right = left if x2 is None else np.asarray(x2, np.float64)
    settings = (net.head_dim, net.score_exponent, net.causal)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), num_batches)
        means = np.stack(
            [_batch(settings, parts, key, jnp.asarray(left), jnp.asarray(right)) for key in keys]
        )
    return SampledKernel(means.mean(axis=0), means.std(axis=0, ddof=1) / num_batches**0.5)


@partial(jax.jit, static_argnums=(0, 1))
def _batch(
    settings: tuple[int, float, bool], parts: tuple[bool, ...], key: Array, x1: Array, x2: Array
) -> Float[Array, "n1 n2"]:
    def add(total: Array, key: Array) -> tuple[Array, None]:
        left, right = (_gradients(settings, parts, key, x) for x in (x1, x2))
        return total + left @ right.T, None

    start = jnp.zeros((len(x1), len(x2)))
    return jax.lax.scan(add, start, jax.random.split(key, BATCH))[0] / BATCH


def _gradients(
    settings: tuple[int, float, bool], parts: tuple[bool, ...], key: Array, x: Array
) -> Array:
    """Rows whose inner products are the kernel of one head, (n, p)."""
    dim, exponent, causal = settings
    length, num_features = x.shape[1:]
    *projections, direction = jax.random.split(key, 3)
    x = x / num_features**0.5
    q, k = (x @ jax.random.normal(each, (num_features, dim)) for each in projections)
    attention = jax.nn.softmax(scores_of(q, k, 1, exponent, causal)[:, 0], axis=-1)
    g = x @ jax.random.normal(direction, (num_features,))
    moved = attention * (g[:, None, :] - jnp.einsum("nij,nj->ni", attention, g)[:, :, None])
    moved = moved / (length * dim**exponent)
    read = jnp.einsum("nij,nje->ne", attention, x) / length
    rows = (
        jnp.einsum("nij,nie,njc->nec", moved, x, k).reshape(len(x), -1),
        jnp.einsum("nij,nje,nic->nec", moved, x, q).reshape(len(x), -1),
        read,
        read,
    )
    return jnp.concatenate(
        [row for row, trained in zip(rows, parts, strict=True) if trained], axis=-1
    )
