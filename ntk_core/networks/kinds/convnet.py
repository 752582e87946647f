"""Convolutional networks: convolutions, each with its pooling, then a readout."""

from typing import Any

from ntk_core.networks import graphs
from ntk_core.networks.graphs import Block, Composition
from ntk_core.networks.kinds._kind import LAYERED, NETWORKS, Hidden, Kind, dense

SETTINGS = (*LAYERED, "relative_widths", "kernel_size", "padding", "readout", "pool_size")


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """Convolutions alone."""
    return convolutions_first(settings, hidden, len(hidden))


def convolutions_first(settings: Any, hidden: Hidden, count: int) -> Composition:
    """``count`` of the hidden layers as convolutions, a readout, and the others as dense layers."""
    found: list[Block] = []
    for width, bias in hidden[:count]:
        found.append(
            graphs.ConvolutionBlock.model_construct(
                width=width, bias=bias, kernel_size=settings.kernel_size, padding=settings.padding
            )
        )
        found.append(graphs.ActivationBlock.model_construct(function=settings.activation))
        if settings.pool_size > 1:
            found.append(graphs.AveragePoolBlock.model_construct(size=settings.pool_size))
    found.append(graphs.GlobalAverageBlock() if settings.readout == "global-average" else graphs.FlattenBlock())
    for width, bias in hidden[count:]:
        found += dense(width, bias, settings.activation)
    return Composition(tuple(found))


KIND = Kind(
    "convnet",
    "CNN",
    "convolutions, then a readout; the width is the number of channels",
    write_out=write_out,
    settings=SETTINGS,
    network=f"{NETWORKS}:ConvNet",
    has_infinite_width=True,
)
