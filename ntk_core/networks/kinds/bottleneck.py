"""Fully connected networks one of whose hidden layers is narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import Composition
from ntk_core.networks.kinds import fully_connected
from ntk_core.networks.kinds._kind import LAYERED, NETWORKS, Hidden, Kind, dense

if TYPE_CHECKING:
    from ntk_core.networks.spec import ArchitectureSpec


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """The layers of a fully connected network, one of them of another width and perhaps another activation."""
    own, at = settings.bottleneck_activation, settings.bottleneck_layer - 1
    activation = settings.activation if own in (None, "same") else own
    blocks = list(fully_connected.write_out(settings, hidden).layers)
    blocks[1 + 2 * at : 3 + 2 * at] = dense(settings.bottleneck_width, hidden[at][1], activation)
    return Composition(tuple(blocks))


def check(architecture: ArchitectureSpec) -> None:
    """A narrow layer between others, and among those that there are."""
    if architecture.depth < 2:
        raise InvalidInput("depth", architecture.depth, "2 to 16 with a bottleneck")
    if architecture.bottleneck_layer > architecture.depth:
        allowed = f"1 to {architecture.depth}, the number of hidden layers"
        raise InvalidInput("bottleneck_layer", architecture.bottleneck_layer, allowed)


KIND = Kind(
    "bottleneck",
    "bottleneck",
    "fully connected, one hidden layer narrow",
    write_out=write_out,
    settings=(*LAYERED, "bottleneck_width", "bottleneck_layer", "bottleneck_activation"),
    check=check,
    network=f"{NETWORKS}:Bottleneck",
)
