"""Generalization of network and kernel: the cost of linearity."""

from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.dashboard.chart import Choice, width_choice
from linearity_lab.dashboard.experiment_page import ExperimentPage
from linearity_lab.dashboard.shown import Shown
from linearity_lab.experiments.generalization import figures
from linearity_lab.experiments.generalization.point import (
    GeneralizationPoint,
    GeneralizationSpec,
    measured,
)

Runs = Shown[GeneralizationSpec, GeneralizationPoint]
ALL = -1.0  # not a ρ; None would be an empty selectbox


def charts(shown: Runs, dialed: float, width: int, *chosen: Any) -> tuple[Chart, ...]:
    """Return learning curves if n is swept, the sweep over widths, then details of one network and its kernel."""
    points, spec = shown.points, shown.spec
    samples, what = chosen if len(chosen) > 1 else (points[0].num_samples, *chosen)
    richness = None if dialed == ALL else dialed
    rho = figures.richnesses(points)[-1] if richness is None else richness
    curves = [figures.against(points, spec, what, richness, width)] if len(spec.counts) > 1 else []
    at_n = figures.at(points, samples=samples)
    return (
        *curves,
        figures.against(at_n, spec, what, richness),
        figures.along(points, what, width, rho, samples),
        figures.eigenspaces(points, width, rho, samples),
        figures.angles(points, width, samples),
    )


def choices(shown: Runs) -> list[Choice]:
    """Return the choices of ρ, width and, if it is swept, n."""
    dials = {ALL: "all ρ", **{rho: f"ρ = {rho:g}" for rho in figures.richnesses(shown.points)}}
    counts = sorted({point.num_samples for point in shown.points})
    swept = [Choice("count", "Points n", counts, "n = {:,}".format, begins=-1, axis="n")]
    dial = Choice("dialed", "ρ", list(dials), dials.__getitem__)
    return [
        dial,
        width_choice(sorted(shown.points, key=lambda point: point.width)),
        *swept[: len(counts) - 1],
    ]


def more(shown: Runs) -> list[Choice]:
    """Return the choice of error or loss."""
    measures = ["error", "loss"] if measured(shown.points) == "error" else ["loss"]
    return [Choice("measure", "Measure", measures, figures.MEASURES.__getitem__)]


PAGE = ExperimentPage[GeneralizationSpec, GeneralizationPoint](
    "generalization",
    charts=charts,
    choices=choices,
    more=more,
    controls=("dataset.name", "widths", "dataset.num_samples"),
    groups={
        "Width, richness and points": (
            "widths",
            "richness",
            "samples",
            "num_seeds",
            "seed",
            "draws",
        ),
        "Kernels and test": ("num_test", "ridge", "infinite_width"),
    },
)
show = PAGE.show
