"""The tangent kernel of infinitely wide networks, layer by layer (docs/math/infinite_width.md).

Propagates covariances of every x1 with every x2 (and their tangent kernel), and variances of
every input. For convolutions each pair has one entry per position, or per pair of positions
if pooling mixes them.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.kernels._arrays import in_float64
from ntk_core.kernels._gaussian import NUM_NODES, has_closed_form, mean, pair_expectations
from ntk_core.kernels._infinite_heads import infinite_heads_ntk
from ntk_core.kernels._infinite_of_function import infinite_width
from ntk_core.networks import graphs
from ntk_core.networks.architectures import (
    Activation,
    Attention,
    Convolution,
    Dense,
    Layer,
    Network,
    Paired,
    Stack,
)
from ntk_core.networks.choices import KINKED
from ntk_core.networks.graphs import Block
from ntk_core.networks.kinds import ARCHITECTURES
from ntk_core.traced import Apply, Inputs, Model, Trainable, with_usual_settings

# Our choice.
CHECKED_ROWS = 4
MAX_QUADRATURE_ERROR = 1e-3
BLOCK_ENTRIES = 2**24  # pairs of inputs and positions at a time: 128 MiB per array in float64


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
    num_nodes: int = NUM_NODES  # of every quadrature

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


@overload
def infinite_width_ntk(
    net: Network, x1: Shaped[ArrayLike, "n1 ..."], x2: Shaped[ArrayLike, "n2 ..."] | None = None
) -> Float[Array, "n1 n2"]: ...


@overload
def infinite_width_ntk(
    net: Apply,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    weight_std: Mapping[str, float] | None = None,
    trainable: Trainable = None,
) -> Float[Array, "n1 n2"]: ...


@with_usual_settings
def infinite_width_ntk(net: Model, *arguments: Any, **settings: Any) -> Float[Array, "n1 n2"]:
    """Return the tangent kernel in the limit of infinite width.

    lim_{m→∞} of the tangent kernel of one output, shape (n1, n2); kernels between
    different outputs vanish.

    ``infinite_width_ntk(net, x1, x2)`` takes a network: :class:`FullyConnected`,
    :class:`ResNet` and convolutional networks with linear output in the NTK parameterization.
    ``infinite_width_ntk(apply, params, x1, x2)`` takes your own function and reads the limit
    from its program; :func:`infinite_width` states its settings, and the scales of the
    weights that it found.

    ReLU, leaky ReLU and erf in closed form; other activations by quadrature in float64, to about
    1e-8 while pre-activations have variances of order one. For an activation given as a function
    the error is measured (``kernels.quadrature_error``) and refused above 1e-3.

    For :class:`Attention` the number of heads grows at a fixed head dimension. The kernel is a mean
    over 16,384 sampled heads, to about 1%; ``infinite_heads_ntk`` returns its standard error.

    Args:
        net: a network; its width is irrelevant. Or a function ``apply(params, x)``.
        arguments: inputs ``x1`` (n1, *input_shape) and ``x2``, by default ``x1``; before them the
            parameters of a function.
        settings: of a function, as for :func:`infinite_width`.

    Returns:
        The kernel of one output, shape (n1, n2).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(depth=1, activation="relu", use_bias=False)
    >>> # α² and the arc-cosine kernels are |x|²/2d each
    >>> infinite_width_ntk(net, jnp.array([[3.0, 4.0]])).item()
    12.5

    Raises:
        InvalidInput: for a network without such a limit (a bottleneck, a nonlinear output), another
            parameterization, an architecture that is not covered, an activation that quadrature
            does not resolve, inputs that are not finite, or inside of ``jax.jit``, ``jax.grad`` and
            ``jax.vmap``: it computes on the host in float64. For a function as
            :func:`infinite_width`.

    Source: Jacot, Gabriel & Hongler 2018; Arora et al. 2019 (convolutions).
    """
    if _is_function(net, arguments, settings):
        return infinite_width(net, *arguments, **settings).ntk
    return _network_ntk(net, *arguments, **settings)


def _is_function(net: Model, arguments: tuple[Any, ...], settings: Mapping[str, Any]) -> bool:
    """Whether a function was given with its parameters."""
    has_params = len(arguments) > 1 or "params" in settings
    return callable(net) and not isinstance(net, Network | type) and has_params


def _network_ntk(
    net: Any, x1: Shaped[ArrayLike, "n1 ..."], x2: Shaped[ArrayLike, "n2 ..."] | None = None
) -> Float[Array, "n1 n2"]:
    return _limit("tangent", net.net if isinstance(net, Paired) else net, x1, x2)


@overload
def infinite_width_nngp(
    net: Network, x1: Shaped[ArrayLike, "n1 ..."], x2: Shaped[ArrayLike, "n2 ..."] | None = None
) -> Float[Array, "n1 n2"]: ...


@overload
def infinite_width_nngp(
    net: Apply,
    params: PyTree,
    x1: Inputs,
    x2: Inputs | None = None,
    *,
    weight_std: Mapping[str, float] | None = None,
) -> Float[Array, "n1 n2"]: ...


@with_usual_settings
def infinite_width_nngp(net: Model, *arguments: Any, **settings: Any) -> Float[Array, "n1 n2"]:
    """Return the covariance of random networks in the limit of infinite width.

    lim_{m→∞} E[f(x1; w0) f(x2; w0)] of one output, shape (n1, n2): the kernel of the Gaussian
    process (NNGP) of initial outputs. Different outputs are independent. Architectures, functions
    and accuracy are those of :func:`infinite_width_ntk`; frozen layers count too.

    Args:
        net: a network; its width is irrelevant. Or a function ``apply(params, x)``.
        arguments: inputs ``x1`` (n1, *input_shape) and ``x2``, by default ``x1``; before them the
            parameters of a function.
        settings: of a function, as for :func:`infinite_width`.

    Returns:
        The covariance of one output, shape (n1, n2).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(depth=1, activation="relu", use_bias=False)
    >>> infinite_width_nngp(net, jnp.array([[3.0, 4.0]])).item()  # |x|²/2d
    6.25

    Raises:
        InvalidInput: as :func:`infinite_width_ntk`, and for networks whose initial output is
            0 and for attention.

    Source: Lee et al. 2018; Matthews et al. 2018; Novak et al. 2019 (convolutions).
    """
    if _is_function(net, arguments, settings):
        return infinite_width(net, *arguments, **settings).nngp
    return _network_nngp(net, *arguments, **settings)


def _network_nngp(
    net: Any, x1: Shaped[ArrayLike, "n1 ..."], x2: Shaped[ArrayLike, "n2 ..."] | None = None
) -> Float[Array, "n1 n2"]:
    if isinstance(net, Paired | Attention):
        allowed = (
            "a network with random initial outputs, without attention; other covariances are "
            "not derived"
        )
        raise InvalidInput("net", kind_of(net), allowed)
    return _limit("cov", net, x1, x2)


def _limit(
    part: str,
    inner: Network,
    x1: Shaped[ArrayLike, "n1 ..."],
    x2: Shaped[ArrayLike, "n2 ..."] | None,
) -> Float[Array, "n1 n2"]:
    """Return ``tangent`` or ``cov`` of the output, in blocks of rows."""
    _refuse_without_limit(inner)
    left = _finite_rows(x1, "x1")
    right = left if x2 is None else _finite_rows(x2, "x2")
    inner.layer_input_shapes(left.shape[1:])
    if right.shape[1:] != left.shape[1:]:
        raise InvalidInput("x2", right.shape, f"rows of shape {left.shape[1:]}, as in x1")
    if isinstance(inner, Attention):
        of_heads = infinite_heads_ntk(inner, left, right).value
        return jnp.asarray(of_heads, dtype=jnp.result_type(float))
    assert isinstance(inner, Stack)
    _check_quadrature(inner, left)
    rows = max(1, BLOCK_ENTRIES // (right.shape[0] * _entries_of_a_pair(inner, left)))
    blocks = []
    with jax.enable_x64(True):
        x_right = jnp.asarray(right)
        for start in range(0, left.shape[0], rows):
            x_left = jnp.asarray(left[start : start + rows])
            blocks.append(np.asarray(_kernel(inner, x_left, x_right, NUM_NODES, part)))
    return jnp.asarray(np.concatenate(blocks), dtype=jnp.result_type(float))


def _entries_of_a_pair(net: Stack, x: np.ndarray) -> int:
    """Return the number of covariances of one pair of inputs: one for each pair of positions."""
    positions = _positions(net)
    if not positions.axes:
        return 1
    sides = x.shape[1:-1]
    return math.prod(sides * 2 if positions.all_pairs else sides)


def _refuse_without_limit(inner: Network) -> None:
    """Refuse networks whose kernel has no limit, or none that is derived."""
    if not (isinstance(inner, Stack | Attention) and inner.kind.has_infinite_width):
        known = [
            kind.network.rpartition(":")[2]
            for kind in ARCHITECTURES.values()
            if kind.has_infinite_width
        ]
        allowed = (
            f"a network: {', '.join(known)}, Mirrored or Subtracted or not; other limits are not "
            "derived. Functions take their parameters: (apply, params, x)"
        )
        raise InvalidInput("net", kind_of(inner), allowed)
    if inner.parameterization != "ntk":
        raise InvalidInput(
            "parameterization",
            inner.parameterization,
            "ntk: the kernels of the others grow with the width",
        )
    if inner.output != "linear":
        raise InvalidInput(
            "output",
            inner.output,
            "linear: with another output the kernel does not become constant",
        )


def _finite_rows(x: ArrayLike, field: str) -> Float[np.ndarray, "n ..."]:
    """Return inputs in float64; refuse none, and numbers that are not finite."""
    rows = in_float64(x, field)
    if not rows.ndim or not len(rows):
        raise InvalidInput(field, f"shape {rows.shape}", "shape (n, …) with at least one input")
    if not np.isfinite(rows).all():
        raise InvalidInput(field, "inputs that are not finite", "finite numbers")
    return rows


@with_usual_settings
def quadrature_error(net: Stack, x: Shaped[ArrayLike, "n ..."]) -> float:
    """Return ‖K_N − K_{N/2}‖_∞ / ‖K_N‖_∞ at the first inputs, N quadrature nodes.

    0 for closed forms.

    Source: our choice; docs/math/infinite_width.md.
    """
    if all(map(has_closed_form, net.written_out.functions())):
        return 0.0
    with jax.enable_x64(True):
        rows = jnp.asarray(np.asarray(x, np.float64)[:CHECKED_ROWS])
        whole, half = (
            np.asarray(_kernel(net, rows, rows, nodes)) for nodes in (NUM_NODES, NUM_NODES // 2)
        )
    return float(np.abs(whole - half).max() / max(np.abs(whole).max(), np.finfo(float).tiny))


def _check_quadrature(net: Stack, x: Shaped[np.ndarray, "n ..."]) -> None:
    """Refuse functions unresolved by quadrature.

    Named ones are resolved at variances of order one.
    """
    if len(x) and not all(
        isinstance(each, str) and each not in KINKED for each in net.written_out.functions()
    ):
        error = quadrature_error(net, x)
        if not error <= MAX_QUADRATURE_ERROR:
            allowed = (
                f"a function whose kernel {NUM_NODES} nodes of a quadrature resolve to "
                f"{MAX_QUADRATURE_ERROR:g}"
            )
            raise InvalidInput(
                "activation", f"{kind_of(net.activation)}, with an error of {error:.1e}", allowed
            )


def _positions(net: Stack) -> Positions:
    """Return the positions of the first layer.

    All pairs if pooling or a global average mixes them.
    """
    blocks = net.written_out.layers
    mixed = any(
        isinstance(block, graphs.AveragePoolBlock | graphs.GlobalAverageBlock) for block in blocks
    )
    return Positions(net.dimensions if isinstance(blocks[0], graphs.ConvolutionBlock) else 0, mixed)


@partial(jax.jit, static_argnums=(0, 3, 4))
def _kernel(
    net: Stack,
    x1: Shaped[Array, "n1 ..."],
    x2: Shaped[Array, "n2 ..."],
    num_nodes: int = NUM_NODES,
    part: str = "tangent",
) -> Float[Array, "n1 n2"]:
    positions = replace(_positions(net), num_nodes=num_nodes)
    if not positions.axes:
        x1, x2 = (x.reshape(x.shape[0], -1) for x in (x1, x2))
    layers = iter(net.layers.values())
    limit = _through(net.written_out.layers, layers, _inputs(x1, x2, positions), positions)
    found: Array = getattr(_linear(next(layers), limit, Positions(0, False)), part)
    return found


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
    pairs = partial(pair_expectations, sigma, num_nodes=positions.num_nodes)
    cov, slopes = pairs(limit.cov, positions.at_first(q1)[:, None], positions.at_second(q2)[None])
    cov1, _ = pairs(limit.cov1, positions.at_first(q1), positions.at_second(q1))
    cov2, _ = pairs(limit.cov2, positions.at_first(q2), positions.at_second(q2))
    means = (mean(sigma, each, positions.num_nodes) for each in (q1, q2))
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
