"""Layers with positions: convolutions, attention, normalization."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.errors import InvalidInput, check_choice
from ntk_core.networks.architectures._activations import PADDINGS
from ntk_core.networks.architectures._layers import (
    NTK_SCALING,
    Layer,
    Params,
    Scaling,
    Shape,
    check_inputs,
    draw,
)

_AXES = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}


@dataclass(frozen=True)
class Convolution(Layer):
    """A convolution with channels last.

    z[p] = multiplier · Σ_o W[o]ᵀ a[stride · p + o − center] + b, W (*kernel, channels,
    num_features).

    Inputs are (n, length, channels) or (n, height, width, channels), by ``dimensions``. Padding
    keeps the size at stride 1: ``"circular"`` wraps around, ``"zero"`` adds zeros. The fan-in is
    kernel_size^dimensions · channels.

    Source: Liu, Zhu & Belkin 2020, App. G.1; Hu, Xiao, Adlam & Pennington 2020, App. (circular
    padding).

    >>> Convolution(4, kernel_size=3).output_shape((8, 8, 3))
    (8, 8, 4)
    """

    num_features: int
    kernel_size: int = 3
    padding: str = "circular"
    dimensions: int = 2
    stride: int = 1
    use_bias: bool = False
    scaling: Scaling = NTK_SCALING
    paired: bool = False

    def __post_init__(self) -> None:
        check_choice("padding", self.padding, PADDINGS)
        if self.dimensions not in _AXES:
            raise InvalidInput("dimensions", self.dimensions, "1 or 2")

    def output_shape(self, input_shape: Shape) -> Shape:
        allowed = "(length, channels)" if self.dimensions == 1 else "(height, width, channels)"
        if len(input_shape) != self.dimensions + 1:
            raise InvalidInput(
                "input_shape",
                input_shape,
                f"{allowed}, since the network convolves in {self.dimensions}-D",
            )
        if min(input_shape[:-1]) < self.kernel_size:
            raise InvalidInput(
                "kernel_size",
                self.kernel_size,
                f"at most {min(input_shape[:-1])}, the size of the image",
            )
        return (*(math.ceil(size / self.stride) for size in input_shape[:-1]), self.num_features)

    def init(self, key: Array, input_shape: Shape) -> Params:
        shape = (*(self.kernel_size,) * self.dimensions, input_shape[-1], self.num_features)
        return draw(self.scaling, key, shape, self.use_bias, paired=self.paired)

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        weight = params["weight"]
        check_inputs(a.shape[-1], weight.shape[-2])
        if jax.default_backend() == "cpu":
            # As a product of patches: XLA's convolutions on a CPU are an order of magnitude slower
            # inside loops.
            z = self.features(params, a) @ weight.reshape(-1, weight.shape[-1])
            z = z.reshape(a.shape[0], *self.output_shape(a.shape[1:]))
        else:
            strides = (self.stride,) * self.dimensions
            numbers = _AXES[self.dimensions]
            padded = self.pad(a, range(1, a.ndim - 1))
            z = jax.lax.conv_general_dilated(
                padded, weight, strides, "VALID", dimension_numbers=numbers
            )
        return self.biased(params, self.multiplier(params, math.prod(weight.shape[:-1])) * z)

    def features(self, params: Params, a: Array) -> Array:
        """Patches (n, positions, fan_in).

        fan_in runs over (*kernel, channels), as the reshaped weights do.
        """
        padded = self.pad(a, range(1, a.ndim - 1))
        patches = jnp.stack([padded[:, *window] for window in self.windows(a.shape[1:-1])], axis=-2)
        return patches.reshape(a.shape[0], -1, patches.shape[-2] * patches.shape[-1])

    def pad(self, a: Array, axes: Sequence[int]) -> Array:
        """Pad ``a`` along some axes, circularly or with zeros, by the reach of the kernel."""
        before = (self.kernel_size - 1) // 2
        widths = [
            (before, self.kernel_size - 1 - before) if axis in axes else (0, 0)
            for axis in range(a.ndim)
        ]
        return jnp.pad(a, widths, mode="wrap" if self.padding == "circular" else "constant")

    def windows(self, sizes: Shape) -> list[tuple[slice, ...]]:
        """Return the padded pixels multiplied by W[o], for each offset o.

        They are one slice per spatial axis.
        """
        found = []
        for offset in itertools.product(range(self.kernel_size), repeat=self.dimensions):
            axes = zip(offset, sizes, strict=True)
            found.append(tuple(slice(o, o + size, self.stride) for o, size in axes))
        return found

    def patch_products(self, input_shape: Shape, features1: Array, features2: Array) -> Array:
        """Return products of all pairs of ``features`` at stride 1.

        They are sums of shifted products of pixels, (n1, P, n2, P).

        Patches overlap, so every pixel product is computed once and added
        kernel_size^dimensions times.
        """
        *sizes, channels = input_shape
        before = (self.kernel_size - 1) // 2
        d = self.dimensions
        center = channels * sum(before * self.kernel_size**axis for axis in range(d))
        a1, a2 = (
            each[..., center : center + channels].reshape(-1, *input_shape)
            for each in (features1, features2)
        )
        pixels = self.pad(
            self.pad(jnp.tensordot(a1, a2, (-1, -1)), range(1, d + 1)), range(d + 2, 2 * d + 2)
        )
        products = sum(pixels[:, *window, :, *window] for window in self.windows(tuple(sizes)))
        return jnp.asarray(products).reshape(len(a1), math.prod(sizes), len(a2), math.prod(sizes))


NORMALIZED_FROM = 1e-5  # added to variances, so constant inputs stay finite
PERIODS = 10_000.0  # the slowest sine takes 2π times as many positions


def attend(
    queries: Float[Array, "n T F"],
    keys: Float[Array, "n T F"],
    values: Float[Array, "n T F"],
    num_heads: int,
    exponent: float,
    causal: bool,
) -> Float[Array, "n T F"]:
    """Σⱼ Aᵢⱼ vⱼ of each head with Aᵢ = softmaxⱼ(qᵢ·kⱼ / d^τ).

    F = H d features, contiguous for each head.

    Args:
        exponent: τ.
        causal: softmax over j ≤ i alone.

    Source: Vaswani et al. 2017, §3.2; 1/d in place of 1/√d: Hron, Bahri,
    Sohl-Dickstein & Novak 2020.
    """
    scores = scores_of(queries, keys, num_heads, exponent, causal)
    heads = values.reshape(*values.shape[:-1], num_heads, -1)
    mixed = jnp.einsum("nhij,njhc->nihc", jax.nn.softmax(scores, axis=-1), heads)
    return mixed.reshape(values.shape)


def scores_of(
    queries: Float[Array, "n T F"],
    keys: Float[Array, "n T F"],
    num_heads: int,
    exponent: float,
    causal: bool,
) -> Float[Array, "n H T T"]:
    """qᵢ·kⱼ / d^τ of every head; −∞ for j > i if causal."""
    q, k = (each.reshape(*each.shape[:-1], num_heads, -1) for each in (queries, keys))
    scores = jnp.einsum("nihc,njhc->nhij", q, k) / q.shape[-1] ** exponent
    return jnp.where(jnp.tri(scores.shape[-1], dtype=bool), scores, -jnp.inf) if causal else scores


def normalize(a: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return (a − mean) / √(variance + 10⁻⁵) over the last axis.

    Source: Ba, Kiros & Hinton 2016, without gains and biases.
    """
    centered = a - a.mean(axis=-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(axis=-1, keepdims=True) + NORMALIZED_FROM)


def sines(shape: Shape) -> Float[Array, "T d"]:
    """√2 (sin ωᵢ t, cos ωᵢ t) interleaved for positions t, ω decreasing from 1 to 10⁻⁴.

    Mean square 1 (for even d).
    """
    length, features = shape
    pairs = jnp.arange(features) // 2
    angles = jnp.arange(length)[:, None] * PERIODS ** (-2 * pairs / features)
    return jnp.sqrt(2) * jnp.where(jnp.arange(features) % 2, jnp.cos(angles), jnp.sin(angles))


@dataclass(frozen=True)
class Gain(Layer):
    """z = g ∘ a along the last axis.

    One factor g_k for each feature k, the same at all positions, 1 at initialization.

    In the NTK and standard parameterizations the factor is the parameter; in ``lecun`` it is √m
    times the parameter.
    """

    scaling: Scaling = NTK_SCALING

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def init(self, key: Array, input_shape: Shape) -> Params:
        return {
            "weight": jnp.full(input_shape[-1:], 1 / self.scaling.bias()[0], jnp.result_type(float))
        }

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        return self.scaling.bias()[0] * params["weight"] * a


@dataclass(frozen=True)
class Positions(Layer):
    """z_p = w_p for every input: one vector per position, drawn and scaled like biases, N(0, I)."""

    scaling: Scaling = NTK_SCALING

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape

    def init(self, key: Array, input_shape: Shape) -> Params:
        return {"weight": self.scaling.bias()[1] * jax.random.normal(key, input_shape)}

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        return jnp.broadcast_to(self.scaling.bias()[0] * params["weight"], a.shape)
