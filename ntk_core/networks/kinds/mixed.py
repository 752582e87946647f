"""Networks of one convolution and dense layers after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import Composition
from ntk_core.networks.kinds._kind import NETWORKS, Hidden, Kind
from ntk_core.networks.kinds.convnet import SETTINGS, convolutions_first

if TYPE_CHECKING:
    from ntk_core.networks.spec import ArchitectureSpec


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """One convolution, or as many as the network itself says, then dense layers."""
    return convolutions_first(settings, hidden, getattr(settings, "num_conv", 1))


def check(architecture: ArchitectureSpec) -> None:
    """At least one dense layer."""
    if architecture.depth < 2:
        raise InvalidInput("depth", architecture.depth, "2 to 16, a convolution and at least one dense layer")


KIND = Kind(
    "mixed",
    "mixed",
    "one convolution, then dense layers; the width counts channels and neurons",
    write_out=write_out,
    settings=SETTINGS,
    check=check,
    network=f"{NETWORKS}:MixedNet",
    has_infinite_width=True,
)
