"""Convergence without linearity, and linearity by scale or by width: claims of Liu, Zhu & Belkin 2020, §1.1 and §5."""

from __future__ import annotations

from ntk_core.experiments.optimization.spec import OptimizationSpec
from ntk_core.runs import Preset, Spec

PRESETS: tuple[Preset[Spec], ...] = (
    Preset(
        "liu-section5",
        "Optimization without linearity",
        "With an output whose slope is nowhere below ρ > 0, gradient descent converges exponentially, below "
        "(1 − ημρ²/n)ᵗ L₀, while the kernel keeps moving at every width.",
        "Liu, Zhu & Belkin 2020, §5, Theorem 5.1",
        "The output 0.2 f + 0.8 log(1 + e^f) with ρ = 0.2, data, activation, widths, rates, threshold and number of "
        "runs are our choice; the paper states the theorem without an experiment of its own.",
        OptimizationSpec(),
        OptimizationSpec(widths=(100, 1000, 10_000, 100_000), num_seeds=5),
    ),
)
