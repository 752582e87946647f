"""Densely connected networks: every layer, the output included, sees the input and all layers below it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import Composition, ConcatBlock, FlattenInputBlock
from ntk_core.networks.kinds._kind import LAYERED, NETWORKS, Hidden, Kind, dense

if TYPE_CHECKING:
    from ntk_core.networks.spec import ArchitectureSpec


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """Each layer beside all that it sees; edges are dropped everywhere, before the outputs, too."""
    pairs = [dense(width, bias, settings.activation) for width, bias in hidden]
    blocks = [ConcatBlock.model_construct(layers=pair) for pair in pairs]
    return Composition((FlattenInputBlock(), *blocks), settings.drop_probability)


def check(architecture: ArchitectureSpec) -> None:
    """Output weights ±1 have no mask."""
    if architecture.output_weights == "signs" and architecture.drop_probability:
        raise InvalidInput("output_weights", architecture.output_weights, "normal where edges are dropped")


KIND = Kind(
    "densenet",
    "DenseNet",
    "every layer sees all layers below it; edges may be dropped",
    write_out=write_out,
    settings=(*LAYERED, "relative_widths", "drop_probability"),
    check=check,
    network=f"{NETWORKS}:DenseNet",
    by_in_degree=True,
)
