"""Residual networks, with a way around each layer after the first, or around every two."""

from typing import Any

from ntk_core.networks.graphs import Block, Composition, FlattenInputBlock, ResidualBlock
from ntk_core.networks.kinds._kind import LAYERED, NETWORKS, Hidden, Kind, dense


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """The first layer, then ``skip_every`` layers at a time with a way around; a rest of fewer layers has none."""
    first, *others = [dense(width, bias, settings.activation) for width, bias in hidden]
    blocks: list[Block] = [FlattenInputBlock(), *first]
    for low in range(0, len(others), settings.skip_every):
        inner = tuple(block for pair in others[low : low + settings.skip_every] for block in pair)
        is_whole = low + settings.skip_every <= len(others)
        blocks += [ResidualBlock.model_construct(layers=inner)] if is_whole else inner
    return Composition(tuple(blocks))


KIND = Kind(
    "resnet",
    "ResNet",
    "α⁽ˡ⁾ = σ(z⁽ˡ⁾) + α⁽ˡ⁻¹⁾",
    write_out=write_out,
    settings=(*LAYERED, "skip_every"),
    network=f"{NETWORKS}:ResNet",
    has_infinite_width=True,
)
