"""Closed recursions of infinite width for networks of ours, block by block: an oracle.

Written from the formulas of docs/math/infinite_width.md for the blocks of a composition, so it
shares only the expectations of Gaussian pairs with what it tests, which reads programs.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import jax.numpy as jnp
from jax import Array

from ntk_core.kernels._gaussian import mean, pair_expectations
from ntk_core.networks import graphs
from ntk_core.networks.architectures import Activation, Convolution, Dense, Layer, Stack
from ntk_core.networks.graphs import Block


def limit_of(net: Stack, x1: Array, x2: Array) -> tuple[Array, Array]:
    """(tangent kernel, covariance) of one output, (n1, n2) each; in float64."""
    blocks = net.written_out.layers
    mixes = (graphs.AveragePoolBlock, graphs.GlobalAverageBlock)
    axes = net.dimensions if isinstance(blocks[0], graphs.ConvolutionBlock) else 0
    positions = Positions(axes, any(isinstance(block, mixes) for block in blocks))
    if not axes:
        x1 = x1.reshape(len(x1), -1)
        x2 = x2.reshape(len(x2), -1)
    layers = iter(net.layers.values())
    limit = _through(blocks, layers, _inputs(x1, x2, positions), positions)
    found = _linear(next(layers), limit, Positions(0, False))
    return found.tangent, found.cov


@dataclass(frozen=True)
class Limit:
    """Covariances and tangent kernel of one neuron (or channel) in the limit.

    Positions follow the axes of inputs.

    Attributes:
        cov: of x1 with x2, (n1, n2, *positions).
        cov1, cov2: of x1 and of x2 with themselves, (n, *positions).
        tangent: products of derivatives summed over all parameters so far, (n1, n2, *positions).
        mean1, mean2: average over the neurons, (n,).
    """

    cov: Array
    cov1: Array
    cov2: Array
    tangent: Array
    mean1: Array
    mean2: Array


@dataclass(frozen=True)
class Positions:
    """Propagated pairs of positions on ``axes`` spatial axes.

    Equal positions only, or all pairs.
    """

    axes: int
    all_pairs: bool

    @property
    def pair_axes(self) -> tuple[int, ...]:
        return tuple(range(-self.axes * (2 if self.all_pairs else 1), 0))

    def diagonal(self, cov: Array) -> Array:
        """Return the entries at equal positions, (..., *sizes)."""
        if not (self.all_pairs and self.axes):
            return cov
        sizes = cov.shape[-self.axes :]
        flat = cov.reshape(*cov.shape[: -2 * self.axes], math.prod(sizes), math.prod(sizes))
        return jnp.diagonal(flat, axis1=-2, axis2=-1).reshape(*flat.shape[:-2], *sizes)

    def at_first(self, variance: Array) -> Array:
        """Return variances of the first member of each pair.

        Their shape (..., *sizes) broadcasts against covariances.
        """
        return variance[(..., *(None,) * self.axes)] if self.all_pairs else variance

    def at_second(self, variance: Array) -> Array:
        """Variances (n, *sizes) of the second member of each pair."""
        if not self.all_pairs:
            return variance
        return jnp.expand_dims(variance, tuple(range(variance.ndim - self.axes, variance.ndim)))


def _through(
    blocks: tuple[Block, ...], layers: Iterator[Layer], limit: Limit, positions: Positions
) -> Limit:
    """Propagate the limit through these blocks; trained ones take the next ``layers``."""
    for block in blocks:
        match block:
            case graphs.DenseBlock() | graphs.ConvolutionBlock():
                limit = _linear(next(layers), limit, positions)
            case graphs.ActivationBlock():
                limit = _activate(block.function, limit, positions)
            case graphs.AveragePoolBlock():
                limit = _each(limit, partial(_pool, block.size, positions))
            case graphs.ResidualBlock():
                limit = _add(_through(block.layers, layers, limit, positions), limit)
            case graphs.FlattenInputBlock():
                pass
            case graphs.GlobalAverageBlock() | graphs.FlattenBlock():
                limit = _read_out(limit, block, positions)
                positions = replace(positions, axes=0, all_pairs=False)
    return limit


def _each(limit: Limit, function: Callable[[Array], Array]) -> Limit:
    """Apply ``function`` to covariances and tangent kernel."""
    changed = {name: function(getattr(limit, name)) for name in ("cov", "cov1", "cov2", "tangent")}
    return replace(limit, **changed)


def _inputs(x1: Array, x2: Array, positions: Positions) -> Limit:
    """Products of the inputs, averaged over their channels."""
    first = "hw"[: positions.axes]
    second = "pq"[: positions.axes] if positions.all_pairs else first
    pairs = first + second if positions.all_pairs else first
    channels = x1.shape[-1]
    cov = jnp.einsum(f"i{first}c,j{second}c->ij{pairs}", x1, x2) / channels
    cov1, cov2 = (jnp.einsum(f"i{first}c,i{second}c->i{pairs}", x, x) / channels for x in (x1, x2))
    return Limit(cov, cov1, cov2, jnp.zeros_like(cov), jnp.zeros(len(x1)), jnp.zeros(len(x2)))


def _linear(layer: Layer, limit: Limit, positions: Positions) -> Limit:
    """Σ = gain² C + σ_b² and Θ = gain² Θ' + (gain² C + 1 where weights and biases are trained)."""
    assert isinstance(layer, Dense | Convolution)
    gain = layer.scaling.gain**2
    bias = layer.scaling.bias_std**2 if layer.use_bias else 0.0

    def average(cov: Array) -> Array:
        return gain * (
            _windows_average(layer, positions, cov) if isinstance(layer, Convolution) else cov
        )

    below = _each(limit, average)
    # Derivatives are multiplier · a (weight) and 1 (bias): together gain² C + 1 for a trained
    # layer.
    own = below.cov + (1.0 if layer.use_bias else 0.0) if layer.trainable else 0.0
    return replace(
        below,
        cov=below.cov + bias,
        cov1=below.cov1 + bias,
        cov2=below.cov2 + bias,
        tangent=below.tangent + own,
    )


def _windows_average(layer: Convolution, positions: Positions, cov: Array) -> Array:
    """Mean over the offsets o of the kernel of C[p + o, q + o]."""
    axes = [cov.ndim + axis for axis in positions.pair_axes]
    padded = layer.pad(cov, axes)
    windows = layer.windows(tuple(cov.shape[axis] for axis in axes[: positions.axes]))
    repeats = 2 if positions.all_pairs else 1
    return jnp.asarray(sum(padded[(..., *window * repeats)] for window in windows)) / len(windows)


def _activate(sigma: Activation, limit: Limit, positions: Positions) -> Limit:
    """Through σ: C = E[σ(u)σ(v)], Θ = Θ' E[σ'(u)σ'(v)]."""
    q1 = positions.diagonal(limit.cov1)
    q2 = positions.diagonal(limit.cov2)
    pairs = partial(pair_expectations, sigma)
    cov, slopes = pairs(limit.cov, positions.at_first(q1)[:, None], positions.at_second(q2)[None])
    cov1, _ = pairs(limit.cov1, positions.at_first(q1), positions.at_second(q1))
    cov2, _ = pairs(limit.cov2, positions.at_first(q2), positions.at_second(q2))
    means = (mean(sigma, each) for each in (q1, q2))
    return Limit(cov, cov1, cov2, limit.tangent * slopes, *means)


def _add(upper: Limit, lower: Limit) -> Limit:
    """Add a branch: α = σ(z) + α'.

    Given α', z is independent of each of its neurons, so cross terms are products of means.
    """
    return Limit(
        upper.cov
        + lower.cov
        + upper.mean1[:, None] * lower.mean2
        + lower.mean1[:, None] * upper.mean2,
        upper.cov1 + lower.cov1 + 2 * upper.mean1 * lower.mean1,
        upper.cov2 + lower.cov2 + 2 * upper.mean2 * lower.mean2,
        upper.tangent + lower.tangent,
        upper.mean1 + lower.mean1,
        upper.mean2 + lower.mean2,
    )


def _pool(size: int, positions: Positions, cov: Array) -> Array:
    """Averages over windows of ``size`` positions along each axis of both members of the pairs."""
    for axis in positions.pair_axes:
        axis += cov.ndim
        cov = cov.reshape(*cov.shape[:axis], -1, size, *cov.shape[axis + 1 :]).mean(axis=axis + 1)
    return cov


def _read_out(limit: Limit, block: Block, positions: Positions) -> Limit:
    """Return flat features, with average products over positions.

    They are over equal positions (flatten) or all pairs (global average).
    """
    if isinstance(block, graphs.GlobalAverageBlock):
        return _each(limit, lambda cov: cov.mean(axis=positions.pair_axes))
    return _each(
        limit, lambda cov: positions.diagonal(cov).mean(axis=tuple(range(-positions.axes, 0)))
    )
