"""Render the committed results as docs/benchmarks.md and its pictures: ``python -m benchmarks.table``."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import (
    coverage_section,
    generalization_section,
    large_n_section,
    live_section,
    maps_section,
    pictures,
    sections,
    site_section,
    traced_section,
    transformer_section,
)
from benchmarks.drill_sections import DRILLS
from benchmarks.measure import RESULTS
from benchmarks.words import Data

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
IMAGES = PAGE.parent / "images"
SECTIONS = {
    "kernel": sections.kernel,
    "transformer": transformer_section.transformer,
    "traced": traced_section.traced,
    "large_n": large_n_section.large_n,
    "hessian": sections.hessian,
    "trajectories": sections.trajectories,
    "training": sections.training,
    "sweep": sections.sweep,
    "start": sections.start,
    "dashboard": sections.dashboard,
    "pages": sections.pages,
    "live": live_section.live,
    "site": site_section.site,
    "growth": sections.growth,
    "ceilings": sections.ceilings,
    "gpu": sections.gpu,
    "estimates": sections.estimates,
    "maps": maps_section.maps,
    "generalization": generalization_section.generalization,
    "masked_layer": sections.masked_layer,
    "coverage": coverage_section.coverage,
    **DRILLS,
}
PICTURES = {
    "kernel": pictures.kernel,
    "hessian": pictures.hessian,
    "sweep": pictures.sweep,
    "growth": pictures.growth,
    "estimates": pictures.estimates,
}
HEAD = """# Benchmarks

`make bench` measures all of this in one session and writes `benchmarks/results/`; `python -m benchmarks.table` renders
this page from there; a drill (`python -m benchmarks.drills.NAME`) writes there too. Competitors take turns; times are
medians, in brackets the quartiles. Ratios, not seconds, travel between machines. ▼ marks where a
peer is faster, with a link to what we do about it."""


def results() -> dict[str, Data]:
    """Every result that has been committed, by its name, in the order of the page."""
    paths = {name: RESULTS / f"{name}.json" for name in SECTIONS}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def page(found: dict[str, Data]) -> str:
    return "\n\n".join([HEAD, *(SECTIONS[name](data) for name, data in found.items())]) + "\n"


def images(found: dict[str, Data]) -> dict[Path, str]:
    """The pictures that the page shows."""
    return {IMAGES / f"benchmarks-{name}.svg": draw(found[name]) for name, draw in PICTURES.items() if name in found}


if __name__ == "__main__":
    committed = results()
    PAGE.write_text(page(committed))
    for path, drawn in images(committed).items():
        path.write_text(drawn)
