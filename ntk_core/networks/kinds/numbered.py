"""Architectures with numbered hidden layers: their compositions and settings."""

from __future__ import annotations

from ntk_core.errors import InvalidInput
from ntk_core.networks import graphs
from ntk_core.networks.graphs import (
    Block,
    Composition,
    ConcatBlock,
    FlattenInputBlock,
    ResidualBlock,
)
from ntk_core.networks.kinds._kind import LAYERED, NETWORKS, Hidden, Kind, Settings, dense

CONVOLUTIONAL = (*LAYERED, "relative_widths", "kernel_size", "padding", "readout", "pool_size")


def _fully_connected(settings: Settings, hidden: Hidden) -> Composition:
    """Stack dense layers."""
    layers = [block for width, bias in hidden for block in dense(width, bias, settings.activation)]
    return Composition((FlattenInputBlock(), *layers))


def _bottleneck(settings: Settings, hidden: Hidden) -> Composition:
    """Stack dense layers, one with its own width and activation."""
    own = settings.bottleneck_activation
    at = settings.bottleneck_layer - 1
    activation = settings.activation if own in (None, "same") else own
    blocks = list(_fully_connected(settings, hidden).layers)
    blocks[1 + 2 * at : 3 + 2 * at] = dense(settings.bottleneck_width, hidden[at][1], activation)
    return Composition(tuple(blocks))


def _check_bottleneck(architecture: Settings) -> None:
    """Require an existing layer between others."""
    if architecture.depth < 2:
        raise InvalidInput("depth", architecture.depth, "2 to 16 with a bottleneck", 2)
    if architecture.bottleneck_layer > architecture.depth:
        allowed = f"1 to {architecture.depth}, the number of hidden layers"
        raise InvalidInput(
            "bottleneck_layer", architecture.bottleneck_layer, allowed, architecture.depth
        )


def _resnet(settings: Settings, hidden: Hidden) -> Composition:
    """Stack a first layer and residual blocks of ``skip_every`` layers.

    Remaining layers have no skip.
    """
    first, *others = [dense(width, bias, settings.activation) for width, bias in hidden]
    blocks: list[Block] = [FlattenInputBlock(), *first]
    for low in range(0, len(others), settings.skip_every):
        inner = tuple(block for pair in others[low : low + settings.skip_every] for block in pair)
        is_whole = low + settings.skip_every <= len(others)
        blocks += [ResidualBlock.model_construct(layers=inner)] if is_whole else inner
    return Composition(tuple(blocks))


def _densenet(settings: Settings, hidden: Hidden) -> Composition:
    """Concatenate each layer with its inputs; drop edges everywhere, including into the outputs."""
    pairs = [dense(width, bias, settings.activation) for width, bias in hidden]
    blocks = [ConcatBlock.model_construct(layers=pair) for pair in pairs]
    return Composition((FlattenInputBlock(), *blocks), settings.drop_probability)


def _check_densenet(architecture: Settings) -> None:
    """Refuse output weights ±1, which have no mask."""
    if architecture.output_weights == "signs" and architecture.drop_probability:
        raise InvalidInput(
            "output_weights", architecture.output_weights, "normal where edges are dropped"
        )


def _check_mixed(architecture: Settings) -> None:
    """Require at least one dense layer."""
    if architecture.depth < 2:
        raise InvalidInput(
            "depth", architecture.depth, "2 to 16, a convolution and at least one dense layer", 2
        )


def _convnet(settings: Settings, hidden: Hidden, count: int | None = None) -> Composition:
    """``count`` convolutions, by default all layers, each with its pooling.

    A readout, then dense layers.
    """
    count = len(hidden) if count is None else count
    found = list[Block]()
    filters = graphs.ConvolutionBlock.model_construct(
        kernel_size=settings.kernel_size, padding=settings.padding
    )
    for width, bias in hidden[:count]:
        found.append(filters.model_copy(update={"width": width, "bias": bias}))
        found.append(graphs.ActivationBlock.model_construct(function=settings.activation))
        if settings.pool_size > 1:
            found.append(graphs.AveragePoolBlock.model_construct(size=settings.pool_size))
    found.append(
        graphs.GlobalAverageBlock()
        if settings.readout == "global-average"
        else graphs.FlattenBlock()
    )
    for width, bias in hidden[count:]:
        found += dense(width, bias, settings.activation)
    return Composition(tuple(found))


KINDS = (
    Kind(
        "fully-connected",
        "fully connected",
        "α⁽ˡ⁾ = σ(W α⁽ˡ⁻¹⁾ / √m + b)",
        write_out=_fully_connected,
        settings=(*LAYERED, "relative_widths"),
        network=f"{NETWORKS}:FullyConnected",
        has_infinite_width=True,
    ),
    Kind(
        "bottleneck",
        "bottleneck",
        "fully connected, one hidden layer narrow",
        write_out=_bottleneck,
        settings=(*LAYERED, "bottleneck_width", "bottleneck_layer", "bottleneck_activation"),
        check=_check_bottleneck,
        network=f"{NETWORKS}:Bottleneck",
    ),
    Kind(
        "resnet",
        "ResNet",
        "α⁽ˡ⁾ = σ(z⁽ˡ⁾) + α⁽ˡ⁻¹⁾",
        write_out=_resnet,
        settings=(*LAYERED, "skip_every"),
        network=f"{NETWORKS}:ResNet",
        has_infinite_width=True,
    ),
    Kind(
        "densenet",
        "DenseNet",
        "every layer sees all layers below it; edges may be dropped",
        write_out=_densenet,
        settings=(*LAYERED, "relative_widths", "drop_probability"),
        check=_check_densenet,
        network=f"{NETWORKS}:DenseNet",
        by_in_degree=True,
    ),
    Kind(
        "convnet",
        "CNN",
        "convolutions, then a readout; the width is the number of channels",
        write_out=_convnet,
        settings=CONVOLUTIONAL,
        network=f"{NETWORKS}:ConvNet",
        has_infinite_width=True,
    ),
    Kind(
        "mixed",
        "mixed",
        "one convolution, then dense layers; the width counts channels and neurons",
        write_out=lambda settings, hidden: _convnet(
            settings, hidden, getattr(settings, "num_conv", 1)
        ),
        settings=CONVOLUTIONAL,
        check=_check_mixed,
        network=f"{NETWORKS}:MixedNet",
        has_infinite_width=True,
    ),
)
