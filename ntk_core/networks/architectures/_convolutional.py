"""Convolutional networks, and networks of convolutions with dense layers after them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._convolution import PADDINGS, Convolution
from ntk_core.networks.architectures._layers import Layer
from ntk_core.networks.architectures._network import Call
from ntk_core.networks.architectures._settings import check_choice, check_count
from ntk_core.networks.architectures._stack import OUTPUT_LAYER, Chain, dense_chain, hidden_name

READOUTS = ("flatten", "global-average")


def average_pool(a: Array, size: int) -> Array:
    """Means over windows of ``size`` positions along each spatial axis of (n, *sizes, channels), without overlap."""
    sizes = a.shape[1:-1]
    if any(length % size for length in sizes):
        raise InvalidInput("pool_size", size, f"a divisor of every spatial size {sizes} that reaches a pooling")
    windows = [part for length in sizes for part in (length // size, size)]
    axes = tuple(range(2, 2 * len(sizes) + 1, 2))
    return a.reshape(a.shape[0], *windows, a.shape[-1]).mean(axis=axes)


def read_out(a: Array, readout: str) -> Array:
    """(n, *sizes, channels) as (n, features): the mean over positions, or all of them, channel by channel."""
    if readout == "global-average":
        return a.mean(axis=tuple(range(1, a.ndim - 1)))
    return jnp.moveaxis(a, -1, 1).reshape(a.shape[0], -1)


@dataclass(frozen=True)
class Convolutional(Chain):
    """Abstract: convolutions (and poolings) first, then a readout, then dense layers.

    Attributes:
        width: channels of the convolutions, neurons of the dense layers.
        kernel_size: pixels along each side of the receptive field.
        padding: ``"circular"`` or ``"zero"``; the size of the image is kept.
        dimensions: 2 for images (height, width, channels), 1 for sequences (length, channels).
        readout: from the last convolution to flat features: ``"flatten"`` or ``"global-average"``.
        pool_size: side of the windows that are averaged after each convolution; 1 for no pooling.
    """

    width: int | tuple[int, ...] = 64
    kernel_size: int = 3
    padding: str = "circular"
    dimensions: int = 2
    readout: str = "flatten"
    pool_size: int = 1

    def __post_init__(self) -> None:
        check_count("kernel_size", self.kernel_size, 1024)
        check_count("pool_size", self.pool_size, 1024)
        check_choice("padding", self.padding, PADDINGS)
        check_choice("readout", self.readout, READOUTS)
        check_count("dimensions", self.dimensions, 2)
        super().__post_init__()

    @property
    def num_convolutions(self) -> int:
        """How many of the hidden layers are convolutions; the others are dense."""
        return self.depth

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        layers: dict[str, Layer] = {}
        for index in range(self.depth):
            layers[hidden_name(index)] = (
                self._convolution(index)
                if index < self.num_convolutions
                else self._dense(index, self._is_paired(index))
            )
        return {**layers, OUTPUT_LAYER: self._output(opposed=self.symmetric)}

    def _convolution(self, index: int) -> Convolution:
        return Convolution(
            self.widths[index],
            self.kernel_size,
            self.padding,
            self.dimensions,
            use_bias=self.biases[index],
            scaling=self.hidden_scaling,
            paired=self._is_paired(index),
            trainable=self._trains(index),
        )

    def body(self, call: Call, x: Array) -> Array:
        a = x
        for index in range(self.num_convolutions):
            a = average_pool(self.nonlinearity(call(hidden_name(index), a)), self.pool_size)
        features = read_out(a, self.readout)
        return dense_chain(self, call, features, (self.nonlinearity,) * self.depth, start=self.num_convolutions)


@dataclass(frozen=True)
class ConvNet(Convolutional):
    """α^(l) = σ(conv(α^(l-1))) for l = 1…depth, then flatten or global average, then a linear output layer.

    Liu, Zhu & Belkin 2020, App. G.1; Hu, Xiao, Adlam & Pennington 2020, §4. Settings: :class:`Convolutional`.

    >>> net = ConvNet(width=8, depth=2, readout="global-average")
    >>> net.num_params((4, 4, 3))
    800
    """


@dataclass(frozen=True)
class MixedNet(Convolutional):
    """Convolutions first, dense hidden layers after them (Liu, Zhu & Belkin 2020, App. G.3).

    Attributes:
        num_conv: how many of the ``depth`` hidden layers are convolutions.
    """

    depth: int = 2
    num_conv: int = 1

    def __post_init__(self) -> None:
        check_count("depth", self.depth, 64, lowest=2)
        check_count("num_conv", self.num_conv, self.depth - 1)
        super().__post_init__()

    @property
    def num_convolutions(self) -> int:
        return self.num_conv

    def read_elementwise(self) -> Mapping[str, str]:
        return self._last_hidden_layer_read()
