"""Every kind of network, one module each: its title, its settings, its layers and the class that computes it."""

from importlib import import_module

from ntk_core.networks.kinds._kind import LAYERED, Hidden, Kind, dense
from ntk_core.settings.vocabulary import ARCHITECTURES

_MODULES = (
    "fully_connected",
    "bottleneck",
    "resnet",
    "densenet",
    "convnet",
    "mixed",
    "composed",
)
KINDS: dict[str, Kind] = {}
for _name in _MODULES:
    _kind: Kind = import_module(f"{__name__}.{_name}").KIND
    KINDS[_kind.name] = _kind
ARCHITECTURES.update(KINDS)

__all__ = ["KINDS", "LAYERED", "Hidden", "Kind", "dense"]
