"""Fully connected networks."""

from typing import Any

from ntk_core.networks.graphs import Composition, FlattenInputBlock
from ntk_core.networks.kinds._kind import LAYERED, NETWORKS, Hidden, Kind, dense


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """One layer upon the other."""
    layers = [block for width, bias in hidden for block in dense(width, bias, settings.activation)]
    return Composition((FlattenInputBlock(), *layers))


KIND = Kind(
    "fully-connected",
    "fully connected",
    "α⁽ˡ⁾ = σ(W α⁽ˡ⁻¹⁾ / √m + b)",
    write_out=write_out,
    settings=(*LAYERED, "relative_widths"),
    network=f"{NETWORKS}:FullyConnected",
    has_infinite_width=True,
)
