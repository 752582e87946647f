"""Convolutions: one matrix product, shared by all positions."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._contractions import Cotangents, convolution_kernel, whole
from ntk_core.networks.architectures._layers import (
    NTK_SCALING,
    Layer,
    Params,
    Scaling,
    Shape,
    add_bias,
    check_inputs,
    draw,
)

PADDINGS = ("circular", "zero")
_AXES = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC")}


@dataclass(frozen=True)
class Convolution(Layer):
    """z[p] = multiplier · Σ_o W[o]ᵀ a[stride · p + o − center] + b, channels last, W (*kernel, channels, num_features).

    Inputs are (n, length, channels) or (n, height, width, channels), by ``dimensions``. Padding keeps the size at
    stride 1: ``"circular"`` wraps around, ``"zero"`` continues with zeros. The fan-in is kernel_size^dimensions ·
    channels either way.

    Source: Liu, Zhu & Belkin 2020, App. G.1; Hu, Xiao, Adlam & Pennington 2020, App. (circular padding).
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
        if self.padding not in PADDINGS:
            raise InvalidInput("padding", self.padding, "one of " + ", ".join(PADDINGS))
        if self.dimensions not in _AXES:
            raise InvalidInput("dimensions", self.dimensions, "1 or 2")

    def output_shape(self, input_shape: Shape) -> Shape:
        allowed = "(length, channels)" if self.dimensions == 1 else "(height, width, channels)"
        if len(input_shape) != self.dimensions + 1:
            raise InvalidInput(
                "input_shape", input_shape, f"{allowed}, since the network convolves in {self.dimensions}-D"
            )
        if min(input_shape[:-1]) < self.kernel_size:
            raise InvalidInput(
                "kernel_size", self.kernel_size, f"at most {min(input_shape[:-1])}, the size of the image"
            )
        return (*(math.ceil(size / self.stride) for size in input_shape[:-1]), self.num_features)

    def init(self, key: Array, input_shape: Shape) -> Params:
        shape = (*(self.kernel_size,) * self.dimensions, input_shape[-1], self.num_features)
        return draw(self.scaling, key, shape, self.use_bias, paired=self.paired)

    def apply(self, params: Params, a: Shaped[Array, "..."]) -> Float[Array, "..."]:
        weight = params["weight"]
        check_inputs(a.shape[-1], weight.shape[-2])
        if jax.default_backend() == "cpu":
            # As a product of patches: XLA's convolutions on a CPU are an order of magnitude slower inside loops.
            z = self.features(params, a) @ weight.reshape(-1, weight.shape[-1])
            z = z.reshape(a.shape[0], *self.output_shape(a.shape[1:]))
        else:
            strides = (self.stride,) * self.dimensions
            numbers = _AXES[self.dimensions]
            z = jax.lax.conv_general_dilated(self._padded(a), weight, strides, "VALID", dimension_numbers=numbers)
        return add_bias(self.scaling, params, self.multiplier(params, math.prod(weight.shape[:-1])) * z)

    def features(self, params: Params, a: Array) -> Array:
        """Patches (n, positions, fan_in); fan_in runs over (*kernel, channels), as the reshaped weights do."""
        padded = self._padded(a)
        patches = jnp.stack([padded[:, *window] for window in self.windows(a.shape[1:-1])], axis=-2)
        return patches.reshape(a.shape[0], -1, patches.shape[-2] * patches.shape[-1])

    def positions_of(self, z: Array) -> Array:
        return z.reshape(*z.shape[: z.ndim - self.dimensions - 1], -1, z.shape[-1])

    def kernel(
        self,
        params: Params,
        a1: Shaped[Array, "n1 ..."],
        d1: Cotangents,
        a2: Shaped[Array, "n2 ..."],
        d2: Cotangents,
    ) -> Float[Array, "C n1 C n2"]:
        fan_in = math.prod(params["weight"].shape[:-1])
        bias = self.bias_multiplier() if "bias" in params else None
        left = (a1, self.positions_of(whole(d1)))
        return convolution_kernel(
            self.scaling.weight(fan_in)[0],
            bias,
            left,
            left if d2 is d1 and a2 is a1 else (a2, self.positions_of(whole(d2))),
            lambda a: self.features(params, a),
            self._patch_products,
            fan_in,
        )

    def _padded(self, a: Array) -> Array:
        return self.pad(a, range(1, a.ndim - 1))

    def pad(self, a: Array, axes: Sequence[int]) -> Array:
        """``a`` continued along some axes, around or with zeros, as far as the kernel reaches."""
        before = (self.kernel_size - 1) // 2
        widths = [(before, self.kernel_size - 1 - before) if axis in axes else (0, 0) for axis in range(a.ndim)]
        return jnp.pad(a, widths, mode="wrap" if self.padding == "circular" else "constant")

    def windows(self, sizes: Shape) -> list[tuple[slice, ...]]:
        """For each offset o of the kernel: the padded pixels that meet W[o], one slice per spatial axis."""
        return [
            tuple(slice(o, o + size, self.stride) for o, size in zip(offset, sizes, strict=True))
            for offset in itertools.product(range(self.kernel_size), repeat=self.dimensions)
        ]

    def _patch_products(self, a1: Array, a2: Array) -> Array:
        """features(a1)·features(a2) for all pairs of positions, (n1, P, n2, P), as sums of shifted products of pixels.

        Patches overlap: the kernel_size^dimensions-fold repetition of every pixel product is added, not recomputed.
        """
        sizes, d = a1.shape[1:-1], self.dimensions
        pixels = self.pad(self.pad(jnp.tensordot(a1, a2, (-1, -1)), range(1, d + 1)), range(d + 2, 2 * d + 2))
        products = sum(pixels[:, *window, :, *window] for window in self.windows(sizes))
        positions = math.prod(math.ceil(size / self.stride) for size in sizes)
        return jnp.asarray(products).reshape(a1.shape[0], positions, a2.shape[0], positions)
