"""The page Generalization: its figures of results in the gallery."""

from __future__ import annotations

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.generalization import figures
from ntk_core.experiments.generalization import GeneralizationSpec, wilson
from ntk_core.settings.grammar import with_settings

PRICE = gallery_result("price-of-linearity")
LEARNED = gallery_result("learning-curves")


def width_of(point) -> float:
    return point.width


def test_all_richness_shows_extremes_and_one_shows_every_model():
    points = figures.at(PRICE.points, samples=PRICE.spec.counts[-1])
    middle = [point.model_copy(update={"richness": 0.25}) for point in points if point.richness == 0]
    titles = [line.style.title for line in figures.lines([*points, *middle], width_of, "error")]
    assert titles == ["network, ρ = 0", "network, ρ = 0.5", "kernel K₀", "infinite width", "network, ρ = 0.25"]
    drawn = figures.lines(points, width_of, "error", 0.5)
    assert [line.style.title for line in drawn] == [
        "network", "after kernel", "kernel K₀", "infinite width", "linear model", "linear model at the end"
    ]  # fmt: skip
    chart = figures.against(points, PRICE.spec, "error", 0.5)
    assert next(trace for trace in chart.figure.data if trace.legendgroup == "linear model").visible == "legendonly"


def test_bars_are_wilson_intervals_of_all_converged_runs():
    points = figures.at(PRICE.points, richness=0.5)
    lost = points[0].runs[1].model_copy(update={"outcome": "over-budget"})
    points[0] = points[0].model_copy(update={"runs": (points[0].runs[0], lost)})
    chart = figures.against(points, PRICE.spec, "error", 0.5)
    (network,) = [
        trace for trace in chart.figure.data if trace.mode == "lines+markers" and trace.legendgroup == "network"
    ]
    for at, point in enumerate(points):
        kept = [run for run in point.runs if run.outcome == "converged"]
        error = np.mean([run.network[-1].error for run in kept])
        low, high = wilson(error, sum(run.num_test for run in kept))
        assert network.y[at] == pytest.approx(error)
        assert network.error_y.array[at] == pytest.approx(high - error)
        assert network.error_y.arrayminus[at] == pytest.approx(error - low)
    assert "over-budget" in " ".join(trace.name or "" for trace in chart.figure.data)
    assert {"Wilson 95% from", "Wilson 95% to"} < set(chart.rows[0])
    assert figures.against(points, PRICE.spec, "loss", 0.5).figure.data[0].error_y.array is None


def test_level_of_the_noise_is_the_bayes_error():
    spec = with_settings(GeneralizationSpec(), {"dataset.noise": 0.5})
    (level,) = figures.against(PRICE.points, spec, "error", 0.5).figure.layout.shapes
    assert level.y0 == pytest.approx(0.02275, abs=1e-4)  # Φ(−2)


def test_learning_curves_are_against_n_at_one_width():
    chart = figures.against(LEARNED.points, LEARNED.spec, "error", None, 100)
    (line,) = [
        trace
        for trace in chart.figure.data
        if trace.mode == "lines+markers" and trace.legendgroup == "network, ρ = 0.5"
    ]
    assert list(line.x) == list(LEARNED.spec.samples)
    assert chart.name == "learning_curves"


def test_figures_along_training_state_the_numbers_of_their_runs():
    chosen = {"width": 100, "richness": 0.5, "samples": PRICE.spec.counts[-1]}
    (point,) = figures.at(PRICE.points, **chosen)
    chart = figures.along(PRICE.points, "error", *chosen.values())
    first, last = (np.mean([run.alignment[end] for run in point.runs]) for end in (0, -1))
    assert chart.takeaway.startswith(f"Alignment from {first:.2g} to {last:.2g}; test error of regression with the ")
    assert chart.takeaway.endswith(f", means of {len(point.runs)} runs.")
    assert len(chart.rows) == sum(len(run.steps) for run in point.runs)
    shares = figures.eigenspaces(PRICE.points, *chosen.values())
    assert f"{np.mean([run.last_share[-1] for run in point.runs]):.2g}" in shares.takeaway
    turned = figures.angles(PRICE.points, 100, chosen["samples"])
    assert [trace.name for trace in turned.figure.data if trace.mode == "lines+markers"] == ["ρ = 0", "ρ = 0.5"]
    assert figures.along([], "error", *chosen.values()).takeaway == "No run yet."
