"""Saved results that pages show before a run, one file per preset."""

import inspect
from pathlib import Path

from linearity_lab.installation import TOP
from linearity_lab.runs._table import PRESETS, packages_outside

GALLERY = TOP / "gallery"


def gallery_beside(name: str) -> Path | None:
    """Return ``gallery/`` beside the spec of a preset from another distribution.

    None for any other name.
    """
    spec = PRESETS[name].spec if name in PRESETS else None
    if spec is None or spec.experiment not in packages_outside():
        return None
    return Path(inspect.getfile(type(spec))).with_name("gallery")
