"""Contractions of a layer's tangent kernel, chosen by counted multiplications.

Derivations and counts: docs/math/kernel_without_jacobians.md. Blocks bound intermediate
arrays to about ``BLOCK_ENTRIES`` numbers; the kernel of a batch with itself computes only its
upper triangle of blocks.
"""

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Shaped

# 32 MiB in float32: larger than caches, small against the weights of a wide network.
BLOCK_ENTRIES = 2**23
MIN_HALVED_ROWS = 32  # with fewer rows a second product costs more than it saves
STRETCH = 2_000  # entries of rows at a time: a hundred rows, 1 to 2 MiB, fit a core's cache
# With more outputs, products of pairs take longer than whole cotangents: 1.3 times with 10 outputs,
# 60 rows and widths of 1,000 to 10,000.
MOST_PAIRED_OUTPUTS = 5
MIN_BLOCKS = 4  # of rows; a batch with itself then needs 10 of 16 pairs of blocks

Side = tuple[Array, Array]  # inputs (n, ...) and cotangents (C, n, ...) of one batch
BlockKernel = Callable[[Side, Side], Array]  # (C, n1, C, n2)


class FactoredCotangents(NamedTuple):
    """Cotangents δ^c_ik = slopes_ik · weights_ck of a layer z.

    Its only route to the outputs is one function of each z_k.

    Attributes:
        slopes: ∂a_ik/∂z_ik of that function, (n, *output_shape).
        weights: ∂f_c/∂a_k, the same for all inputs, (C, *output_shape).

    >>> cotangents = FactoredCotangents(jnp.ones((5, 8)), jnp.ones((3, 8)))
    >>> cotangents.whole().shape
    (3, 5, 8)
    """

    slopes: Array
    weights: Array

    def whole(self) -> Array:
        """δ, (C, n, *output_shape)."""
        return self.weights[:, None] * self.slopes


Cotangents = Array | FactoredCotangents


def whole(cotangents: Cotangents) -> Float[Array, "C n ..."]:
    """Return δ, (C, n, *output_shape), from either form."""
    return cotangents.whole() if isinstance(cotangents, FactoredCotangents) else cotangents


def in_stretches() -> bool:
    """Whether to process long rows in chunks, as on a CPU, whose cache fits a chunk."""
    return jax.default_backend() == "cpu"


def gram(left: Cotangents, right: Cotangents) -> Float[Array, "..."]:
    """Return all inner products along the last axis, (*rows1, *rows2).

    Of an array with itself three quarters are computed: the upper half with all rows and the lower
    half with itself; the rest is the transpose. Finer halving does not pay. On a CPU long rows, and
    rows that are products, are processed in stretches that stay in the cache.
    """
    rows1 = _row_axes(left)
    rows2 = _row_axes(right)
    num1 = math.prod(rows1)
    half = num1 // 2 if right is left and num1 >= MIN_HALVED_ROWS else 0

    def products(start: Array | int, size: int) -> tuple[Array, Array | None]:
        """Return products for one range of entries.

        They are blocks of the upper half (or all), and of the lower half with itself.
        """
        part1 = _stretch_of(left, start, size)
        part2 = part1 if right is left else _stretch_of(right, start, size)
        return part1[: half or num1] @ part2.T, part1[half:] @ part2[half:].T if half else None

    length = left[0].shape[-1] if isinstance(left, FactoredCotangents) else left.shape[-1]
    num_stretches = length // STRETCH if in_stretches() else 1
    if num_stretches < 2:
        upper, lower = products(0, length)
    else:

        def add(index: Array, sums: tuple[Array, Array | None]) -> tuple[Array, Array | None]:
            return jax.tree.map(jnp.add, sums, products(index * STRETCH, STRETCH))

        rest = length - (num_stretches - 1) * STRETCH
        upper, lower = jax.lax.fori_loop(0, num_stretches - 1, add, products(length - rest, rest))
    if lower is not None:
        upper = jnp.concatenate([upper, jnp.concatenate([upper[:, half:].T, lower], axis=1)])
    return upper.reshape(rows1 + rows2)


def _row_axes(rows: Cotangents) -> tuple[int, ...]:
    if isinstance(rows, FactoredCotangents):
        return (len(rows.weights), *rows.slopes.shape[:-1])
    return rows.shape[:-1]


def _stretch_of(rows: Cotangents, start: Array | int, size: int) -> Array:
    """Return entries ``start`` to ``start + size`` of every row, (number of rows, size)."""
    if isinstance(rows, FactoredCotangents):
        slopes, weights = (_stretch_of(each, start, size) for each in rows)
        return FactoredCotangents(slopes, weights).whole().reshape(-1, size)
    return jax.lax.dynamic_slice_in_dim(rows.reshape(-1, rows.shape[-1]), start, size, 1)


def cotangent_products(d1: Cotangents, d2: Cotangents) -> Array:
    """Return Σ_k δ^c_ik δ^d_jk, (C, n1, C, n2), of the same parameters on both sides.

    Factored cotangents give Σ_k (w_ck w_dk) s_ik s_jk, symmetric in c and d: C (C + 1) / 2 products
    of slopes. ``gram`` is used if that is not below ¾ C², with more than ``MOST_PAIRED_OUTPUTS``
    outputs, or if the products of weights need more memory than the slopes.
    """
    if not isinstance(d1, FactoredCotangents) or not isinstance(d2, FactoredCotangents):
        return gram(whole(d1), d1 if d2 is d1 else whole(d2))
    num_outputs = len(d1.weights)
    n1 = len(d1.slopes)
    upper, lower = np.triu_indices(num_outputs)
    are_fewer = len(upper) < (0.75 if d2 is d1 else 1) * num_outputs**2
    are_few = num_outputs <= MOST_PAIRED_OUTPUTS and len(upper) <= n1
    fit = len(upper) * n1 * STRETCH <= BLOCK_ENTRIES
    if not (in_stretches() and are_fewer and are_few and fit):
        return gram(d1, d2)
    pairs = gram(FactoredCotangents(d1.slopes, d1.weights[upper] * d1.weights[lower]), d2.slopes)
    at = np.zeros((num_outputs, num_outputs), int)
    at[upper, lower] = at[lower, upper] = np.arange(len(upper))
    return jnp.transpose(pairs[at], (0, 2, 1, 3))


def blocked(kernel: BlockKernel, left: Side, right: Side, entries_per_pair: int) -> Array:
    """Compute ``kernel(left, right)`` in square blocks of rows.

    Only half of them if ``left is right``.

    ``entries_per_pair`` is the number of intermediate numbers per pair of inputs.
    """
    n1 = left[0].shape[0]
    n2 = right[0].shape[0]
    largest = max(1, math.isqrt(BLOCK_ENTRIES // max(entries_per_pair, 1)))
    if max(n1, n2) <= min(largest, MIN_BLOCKS):
        return kernel(left, right)
    num_blocks = max(MIN_BLOCKS if left is right else 1, math.ceil(max(n1, n2) / largest))
    size = math.ceil(max(n1, n2) / num_blocks)
    blocks1 = math.ceil(n1 / size)
    blocks2 = math.ceil(n2 / size)
    padded1 = _padded_rows(left, blocks1 * size)
    padded2 = _padded_rows(right, blocks2 * size)
    pairs = list(itertools.product(range(blocks1), range(blocks2)))
    if left is right:
        pairs = [(i, j) for i, j in pairs if i <= j]
    index = jnp.array(pairs)
    parts = jax.lax.map(
        lambda ij: kernel(_rows(padded1, ij[0] * size, size), _rows(padded2, ij[1] * size, size)),
        index,
    )
    num_outputs = parts.shape[1]
    whole = jnp.zeros((blocks1, blocks2, num_outputs, size, num_outputs, size), parts.dtype)
    whole = whole.at[index[:, 0], index[:, 1]].set(parts)
    if left is right:
        whole = whole.at[index[:, 1], index[:, 0]].set(jnp.transpose(parts, (0, 3, 4, 1, 2)))
    whole = jnp.transpose(whole, (2, 0, 3, 4, 1, 5))
    return whole.reshape(num_outputs, blocks1 * size, num_outputs, blocks2 * size)[:, :n1, :, :n2]


def _padded_rows(side: Side, rows: int) -> Side:
    a, d = side
    missing = rows - a.shape[0]
    pad_a = [(0, missing)] + [(0, 0)] * (a.ndim - 1)
    return jnp.pad(a, pad_a), jnp.pad(d, [(0, 0), *pad_a[:1]] + [(0, 0)] * (d.ndim - 2))


def _rows(side: Side, start: Array, size: int) -> Side:
    a, d = side
    return jax.lax.dynamic_slice_in_dim(a, start, size, 0), jax.lax.dynamic_slice_in_dim(
        d, start, size, 1
    )


def jacobian_contraction(
    features1: Shaped[Array, "n1 ..."],
    d1: Float[Array, "C n1 ..."],
    features2: Shaped[Array, "n2 ..."],
    d2: Float[Array, "C n2 ..."],
    *,
    summed: bool = False,
) -> Float[Array, "C n1 C n2"] | Float[Array, "n1 n2"]:
    """Return the Gram matrix of J^c_i, (C, n1, C, n2).

    J^c_i = Σ_p features_ip ⊗ δ^c_ip, from (n, P, fan_in) and (C, n, P, num_features).

    The Jacobians of this one layer, a stretch of its features at a time. ``summed`` gives Σ_c
    J^c_i · J^c_j, (n1, n2).
    """
    same = features2 is features1 and d2 is d1
    num_outputs, n1, _, num_features = d1.shape
    n2, _, fan_in = features2.shape
    rows = num_outputs * (n1 if same else n1 + n2)
    stretch = min(num_features, max(1, BLOCK_ENTRIES // (rows * fan_in)))

    def jacobian(features: Array, d: Array) -> Array:
        """(n·C, stretch · fan_in), from cotangents (n, P, C · stretch).

        One product per input, rows in order.
        """
        rows = features.shape[0] if summed else features.shape[0] * num_outputs
        return jnp.einsum("ipk,ipg->igk", features, d).reshape(rows, -1)

    def add(total: Array, parts: tuple[Array, Array]) -> tuple[Array, None]:
        j1 = jacobian(features1, parts[0])
        j2 = j1 if same else jacobian(features2, parts[1])
        return total + gram(j1, j2), None

    parts1 = _stretches(d1, stretch)
    parts = (parts1, parts1 if same else _stretches(d2, stretch))
    each = 1 if summed else num_outputs
    total = jnp.zeros((n1 * each, n2 * each), jnp.result_type(features1, d1))
    if stretch == num_features:
        total, _ = add(total, (parts[0][0], parts[1][0]))
    else:
        total, _ = jax.lax.scan(add, total, parts)
    if summed:
        return total
    return jnp.transpose(total.reshape(n1, num_outputs, n2, num_outputs), (1, 0, 3, 2))


def _stretches(d: Array, stretch: int) -> Array:
    """Divide the features of (C, n, P, num_features) into stretches.

    The result is (num_stretches, n, P, C · stretch), with zeros after the last feature.
    """
    num_outputs, n, positions, num_features = d.shape
    num_stretches = math.ceil(num_features / stretch)
    padded = jnp.pad(d, [(0, 0)] * 3 + [(0, num_stretches * stretch - num_features)])
    split = padded.reshape(num_outputs, n, positions, num_stretches, stretch)
    return jnp.transpose(split, (3, 1, 2, 0, 4)).reshape(
        num_stretches, n, positions, num_outputs * stretch
    )


class Patches(NamedTuple):
    """Overlapping patches of pixels.

    Entries of a pixel, and all products of two batches of patches, (n1, P, n2, P).
    """

    channels: int
    products: Callable[[Array, Array], Array]


def convolution_kernel(
    left: Side,
    right: Side,
    features: Callable[[Array], Array],
    patches: Patches,
    fan_in: int,
) -> Array:
    """Σ_pq (patch_ip·patch_jq) (δ^c_ip·δ^d_jq), or the Gram matrix of Σ_p patch_ip ⊗ δ_ip.

    Inputs are (n, *sizes, channels), cotangents (C, n, P, num_features). ``features`` extracts
    patches; ``patches`` defines their products.
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
        pixels**2 * channels
        + positions**2 * (fan_in // channels + num_outputs**2 * (num_features + 1))
    )
    by_jacobian = (
        fan_in
        * num_features
        * num_outputs
        * ((n1 if same else n1 + n2) * positions + num_outputs * n1 * n2)
    )
    if by_jacobian <= by_positions:
        features1 = features(a1)
        return jacobian_contraction(features1, d1, features1 if same else features(a2), d2)

    def block(one: Side, two: Side) -> Array:
        cotangents = jnp.einsum("cipf,djqf->cidjpq", one[1], two[1])
        return jnp.einsum("cidjpq,ipjq->cidj", cotangents, patches.products(one[0], two[0]))

    return blocked(block, left, right, positions**2 * num_outputs**2 + 2 * pixels**2)


def masked_kernel(mask: Array, left: Side, right: Side) -> Array:
    """Σ_uv M_uv a_iu a_ju δ^c_iv δ^d_jv for inputs (n, fan_in) and cotangents (C, n, num_features).

    By products of pairs, ((a_i ∘ a_j) M) · (δ_i ∘ δ_j), or by the Gram matrix of (a_i ⊗ δ_i) ∘ M.
    """
    a1, d1 = left
    a2, _ = right
    same = left is right
    num_outputs, n1, num_features = d1.shape
    n2, fan_in = a2.shape
    edges = mask.astype(a1.dtype)
    pairs = n1 * n2 * (0.5 + 0.5 / MIN_BLOCKS if same else 1)
    by_pairs = pairs * (fan_in * num_features + fan_in + num_outputs**2 * num_features)
    by_jacobian = (
        fan_in * num_features * num_outputs * ((n1 if same else n1 + n2) + num_outputs * n1 * n2)
    )

    def pair_block(one: Side, two: Side) -> Array:
        reach = (one[0][:, None, :] * two[0][None, :, :]) @ edges
        return jnp.einsum("ijv,civ,djv->cidj", reach, one[1], two[1])

    def jacobian_block(one: Side, two: Side) -> Array:
        j1, j2 = (jnp.einsum("iu,civ,uv->ciuv", a, d, edges) for a, d in (one, two))
        return jnp.tensordot(j1, j2, ((2, 3), (2, 3)))

    if by_pairs <= by_jacobian:
        return blocked(pair_block, left, right, fan_in + (1 + num_outputs**2) * num_features)
    return blocked(jacobian_block, left, right, 2 * num_outputs * fan_in * num_features)
