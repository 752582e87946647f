"""Convolutional networks, and networks of convolutions with dense layers after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ntk_core.networks.architectures._convolution import PADDINGS
from ntk_core.networks.architectures._settings import check_choice, check_count
from ntk_core.networks.architectures._stack import Chain
from ntk_core.networks.kinds import ARCHITECTURES, Kind

READOUTS = ("flatten", "global-average")


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


@dataclass(frozen=True)
class ConvNet(Convolutional):
    """α^(l) = σ(conv(α^(l-1))) for l = 1…depth, then flatten or global average, then a linear output layer.

    Liu, Zhu & Belkin 2020, App. G.1; Hu, Xiao, Adlam & Pennington 2020, §4. Settings: :class:`Convolutional`.

    >>> net = ConvNet(width=8, depth=2, readout="global-average")
    >>> net.num_params((4, 4, 3))
    800
    """

    kind: ClassVar[Kind] = ARCHITECTURES["convnet"]


@dataclass(frozen=True)
class MixedNet(Convolutional):
    """Convolutions first, dense hidden layers after them (Liu, Zhu & Belkin 2020, App. G.3).

    Attributes:
        num_conv: how many of the ``depth`` hidden layers are convolutions.
    """

    kind: ClassVar[Kind] = ARCHITECTURES["mixed"]

    depth: int = 2
    num_conv: int = 1

    def __post_init__(self) -> None:
        check_count("depth", self.depth, 64, lowest=2)
        check_count("num_conv", self.num_conv, self.depth - 1)
        super().__post_init__()
