"""Linearity by scale or by width: a claim of Liu, Zhu & Belkin 2020, §1.1."""

from __future__ import annotations

from ntk_core.experiments.lazy.spec import LazySpec
from ntk_core.runs import Preset, Spec

PRESETS: tuple[Preset[Spec], ...] = (
    Preset(
        "liu-lazy",
        "Two routes to linearity",
        "A large scale α makes a network lazy only where its output at w₀ is 0, by moving the weights less; width "
        "makes it linear while ‖w − w₀‖ stays Θ(1).",
        "Liu, Zhu & Belkin 2020, §1.1, after Chizat, Oyallon & Bach 2019, §1",
        "Data, activation, output weights ±1 that are not trained, widths, scales, threshold, number of runs and the "
        "inputs at which κ is measured are our choice.",
        LazySpec(),
        LazySpec(widths=(100, 300, 1000, 3000, 10_000, 30_000), scales=(1.0, 3.0, 10.0, 30.0, 100.0), num_seeds=10),
    ),
)
