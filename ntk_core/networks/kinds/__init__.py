"""Every kind of network, one module each: its title, its settings, its layers and the class that computes it."""

from importlib import import_module

from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.kinds._kind import LAYERED, Hidden, Kind, dense
from ntk_core.settings.vocabulary import table

_MODULES = (
    "fully_connected",
    "bottleneck",
    "resnet",
    "densenet",
    "convnet",
    "mixed",
    "attention",
    "transformer",
    "composed",
)
ARCHITECTURES: dict[str, Kind] = table(*(import_module(f"{__name__}.{name}").KIND for name in _MODULES))


def network_title(kind: str, output: str = "linear") -> str:
    """``softmax output`` of a fully connected network; else ``ResNet``, or ``CNN, bottleneck, softmax output``.

    Args:
        kind: an architecture, followed by ``-bottleneck`` where one of its layers is narrow.
    """
    if kind == "fully-connected":
        return OUTPUTS[output].title
    plain = kind.removesuffix("-bottleneck")
    said = [ARCHITECTURES[plain].title, *(["bottleneck"] if plain != kind else [])]
    return ", ".join([*said, *([] if output == "linear" else [OUTPUTS[output].title])])
