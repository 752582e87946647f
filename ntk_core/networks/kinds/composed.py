"""Networks that a person puts together."""

from typing import Any

from ntk_core.networks.graphs import Composition
from ntk_core.networks.kinds._kind import Hidden, Kind


def write_out(settings: Any, hidden: Hidden) -> Composition:
    """What stands in the setting."""
    found: Composition = settings.composition
    return found


KIND = Kind(
    "composed",
    "your own layers",
    "registered layers in the order in which you write them",
    write_out=write_out,
    settings=("composition",),
)
