"""Every kind of network, one module each: its title, its settings, its layers and the class that computes it."""

from importlib import import_module

from ntk_core.networks.kinds._kind import LAYERED, Hidden, Kind, dense
from ntk_core.settings.vocabulary import table

_MODULES = (
    "fully_connected",
    "bottleneck",
    "resnet",
    "densenet",
    "convnet",
    "mixed",
    "composed",
)
ARCHITECTURES: dict[str, Kind] = table(*(import_module(f"{__name__}.{name}").KIND for name in _MODULES))

__all__ = ["ARCHITECTURES", "LAYERED", "Hidden", "Kind", "dense"]
