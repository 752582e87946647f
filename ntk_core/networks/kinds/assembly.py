"""Assemblies: many copies of one small model, added up."""

from __future__ import annotations

from typing import Any

from ntk_core.networks.graphs import Composition, CopiesBlock, FlattenInputBlock
from ntk_core.networks.kinds._kind import NETWORKS, Hidden, Kind


def _copies(settings: Any, hidden: Hidden) -> Composition:
    """The copies; the output layer adds them."""
    width = getattr(settings, "width", "m")  # a network itself has its size as a number
    return Composition((FlattenInputBlock(), CopiesBlock.model_construct(width=width, model=settings.sub_model)))


KINDS = (
    Kind(
        "assembly",
        "assembly",
        "f = m^(−½) Σ vᵢ g(wᵢ; x), m copies of one small model g",
        write_out=_copies,
        settings=("sub_model",),
        network=f"{NETWORKS}:Assembly",
    ),
)
