"""Figures of the papers as specs, one name each, in the order of the papers."""

from __future__ import annotations

from ntk_core.errors import InvalidInput
from ntk_core.papers._dynamics import DYNAMICS
from ntk_core.papers._hu import HU
from ntk_core.papers._liu import LIU
from ntk_core.papers._liu_hessian import LIU_HESSIAN
from ntk_core.papers._optimization import OPTIMIZATION
from ntk_core.papers._preset import Preset
from ntk_core.papers._zhu import ZHU
from ntk_core.specs import Spec

__all__ = ["PRESETS", "Preset", "preset", "presets"]

PRESETS: dict[str, Preset[Spec]] = {
    found.name: found for found in (*LIU, *LIU_HESSIAN, *DYNAMICS, *OPTIMIZATION, *ZHU, *HU)
}


def presets() -> dict[str, Spec]:
    """Specs of the papers' figures by name, sized for two cores: ``{"liu-fig1-left": spec, …}``."""
    return {name: preset.spec for name, preset in PRESETS.items()}


def preset(name: str, field: str = "preset") -> Preset[Spec]:
    """The preset of that name.

    Raises:
        InvalidInput: for an unknown name.
    """
    if name not in PRESETS:
        raise InvalidInput(field, name, "one of " + ", ".join(PRESETS))
    return PRESETS[name]
