"""Smallest settings of experiments, and networks of every kind,
derived from the tables of the core.
"""

from __future__ import annotations

from typing import Any

from annotated_types import Ge

from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import Spec
from linearity_lab.settings.grammar import settings, values_of
from linearity_lab.settings.part import SpecPart
from ntk_core.networks.kinds import ARCHITECTURES

WIDTH, NUM_STEPS, NUM_SAMPLES = 8, 4, 6


def settings_of(kind: str, depth: int = 3) -> dict[str, Any]:
    """Settings of a network of this kind, with this depth if it has a depth."""
    return {"kind": kind, **({"depth": depth} if "depth" in ARCHITECTURES[kind].settings else {})}


def network_of(kind: str) -> ArchitectureSpec:
    """A network of this kind with its default settings and three layers if it has a depth."""
    return ArchitectureSpec(**settings_of(kind))


def patch_size_for(kind: str) -> int:
    """Patch size of images for this kind; 0 if it takes whole images."""
    return 1 if "num_heads" in ARCHITECTURES[kind].settings else 0


def smallest(spec: Spec, keep: tuple[str, ...] = ()) -> dict[str, Any]:
    """Dotted name → value: one small width, one item per list,
    the least allowed value of every count.

    Args:
        keep: settings to leave unchanged.
    """
    values = values_of(spec)
    found: dict[str, Any] = {
        name: 1 for name in type(spec).model_fields if _is_list_of_parts(getattr(spec, name))
    }
    for setting in settings(type(spec)):
        group, _, name = setting.name.rpartition(".")
        if setting.name not in values or group not in ("", "training", "dataset"):
            continue
        value = values[setting.name]
        if setting.counts_neurons:
            found[setting.name] = (WIDTH,) if isinstance(value, tuple) else WIDTH
        elif name == "max_steps":
            found[setting.name] = min(value, NUM_STEPS)
        elif name == "num_samples":
            found[setting.name] = NUM_SAMPLES
        elif name.startswith("num_") and group != "dataset":
            found[setting.name] = max(
                [1, *(int(str(each.ge)) for each in setting.info.metadata if isinstance(each, Ge))]
            )
        elif isinstance(value, tuple) and len(value) > 1 and not group:
            found[setting.name] = value[:1]
    return {name: value for name, value in found.items() if name not in keep}


def _is_list_of_parts(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], SpecPart)
