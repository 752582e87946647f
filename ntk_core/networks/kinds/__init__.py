"""Architectures by name: title, settings, layers and network class."""

from __future__ import annotations

from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.kinds import adapted, numbered, sequences
from ntk_core.networks.kinds._kind import LAYERED, Hidden, Kind, dense
from ntk_core.terms import table

_MODULES = (numbered, sequences, adapted)  # in the order of menus

ARCHITECTURES: dict[str, Kind] = table(
    *(kind for module in _MODULES for kind in module.KINDS),
    Kind(
        "composed",
        "your own layers",
        "registered layers in your order",
        write_out=lambda settings, hidden: settings.composition,
        settings=("composition",),
    ),
)


def network_title(kind: str, output: str = "linear") -> str:
    """``softmax output`` of a fully connected network.

    Else ``ResNet``, or ``CNN, bottleneck, softmax output``.

    Args:
        kind: an architecture, followed by ``-bottleneck`` if one of its layers is narrow.
    """
    if kind == "fully-connected":
        return OUTPUTS[output].title
    plain = kind.removesuffix("-bottleneck")
    parts = [ARCHITECTURES[plain].title, *(["bottleneck"] if plain != kind else [])]
    return ", ".join([*parts, *([] if output == "linear" else [OUTPUTS[output].title])])
