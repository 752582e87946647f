"""Convergence without linearity, and linearity by scale or by width: claims of Liu, Zhu & Belkin 2020, §1.1 and §5."""

from __future__ import annotations

from ntk_core.papers._preset import Preset
from ntk_core.specs import LazySpec, OptimizationSpec, Spec

OPTIMIZATION: tuple[Preset[Spec], ...] = (
    Preset(
        "liu-section5",
        "Optimization without linearity",
        "Behind an output whose slope is nowhere below ρ > 0, gradient descent converges exponentially, below "
        "(1 − ημρ²/n)ᵗ L₀, while the kernel keeps moving at every width.",
        "Liu, Zhu & Belkin 2020, §5, Theorem 5.1",
        "The output 0.2 f + 0.8 log(1 + e^f) with ρ = 0.2, data, activation, widths, rates, threshold and number of "
        "runs are our choice; the paper states the theorem without an experiment of its own.",
        OptimizationSpec(),
        OptimizationSpec(widths=(100, 1000, 10_000, 100_000), num_seeds=5),
    ),
    Preset(
        "liu-lazy",
        "Two roads to linearity",
        "A large scale α makes a network lazy only where its output at w₀ is 0, by moving the weights less; width "
        "makes it linear while ‖w − w₀‖ stays Θ(1).",
        "Liu, Zhu & Belkin 2020, §1.1, after Chizat, Oyallon & Bach 2019, §1",
        "Data, activation, output weights ±1 that are not trained, widths, scales, threshold, number of runs and the "
        "inputs at which κ is measured are our choice.",
        LazySpec(),
        LazySpec(widths=(100, 300, 1000, 3000, 10_000, 30_000), scales=(1.0, 3.0, 10.0, 30.0, 100.0), num_seeds=10),
    ),
)
