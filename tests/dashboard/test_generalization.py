"""The page Generalization: its figures from made runs, and what its gallery shows beside a table measured before."""

from __future__ import annotations

import pytest

from linearity_lab.views.generalization import figures
from ntk_core.experiments.generalization import (
    GeneralizationPoint,
    GeneralizationRun,
    GeneralizationSpec,
    Predictor,
    wilson,
)
from ntk_core.settings.grammar import with_settings
from tests.dashboard.made_results import filled

SPEC = with_settings(
    GeneralizationSpec(), {"widths": [10, 100], "samples": [20, 40], "richness": [0, 0.25, 0.5], "dataset.noise": 0.5}
)


def made_run(error: float, seed: int, outcome: str = "converged") -> GeneralizationRun:
    test, kernel = Predictor(error=error, loss=2 * error), Predictor(error=0.3, loss=0.4)
    return filled(
        GeneralizationRun,
        seed=seed,
        outcome=outcome,
        steps=(0, 2, 8),
        loss=(0.5, 0.1, 1e-4),
        change=(0.0, 0.5, 1.0),
        network=(Predictor(error=0.5, loss=0.5), kernel, test),
        after=(kernel, kernel, test),
        onward=(kernel, kernel, test),
        linear=kernel,
        infinite=kernel,
        alignment=(0.04, 0.1, 0.2),
        distance=(0.0, 0.1, 0.3),
        moved=(0.0, 0.1, 0.3),
        condition=(10.0, 20.0, 30.0),
        jitter=(1e-6,) * 3,
        ranks=(1, 2, 3),
        first_share=(0.0, 0.1, 0.2),
        last_share=(0.5, 0.6, 0.7),
        angles=(1.0, 30.0, 80.0),
        num_test=100,
    )


@pytest.fixture(scope="module")
def points() -> list[GeneralizationPoint]:
    found = []
    for key in SPEC.point_keys():
        width, rho, n = SPEC.value_of(key)
        error = 0.1 if rho == 0.5 else 0.2
        runs = tuple(made_run(error, seed, "over-budget" if width == 10 and seed else "converged") for seed in range(3))
        found.append(GeneralizationPoint(width=width, richness=rho, num_samples=n, num_params=9, runs=runs))
    return found


def test_all_richness_shows_extremes_and_one_shows_every_model(points):
    at_n = figures.at(points, samples=40)
    titles = [line.style.title for line in figures.lines(at_n, lambda point: point.width, "error")]
    assert titles == ["network, ρ = 0", "network, ρ = 0.5", "kernel K₀", "infinite width", "network, ρ = 0.25"]
    drawn = figures.lines(at_n, lambda point: point.width, "error", 0.5)
    assert [line.style.title for line in drawn] == [
        "network", "after kernel", "kernel K₀", "infinite width", "linear model", "linear model at the end"
    ]  # fmt: skip
    chart = figures.against(at_n, SPEC, "error", 0.5)
    means = {trace.legendgroup: trace for trace in chart.figure.data if trace.mode == "lines+markers"}
    assert list(means["network"].y) == pytest.approx([0.1, 0.1])
    # One of three runs counts at width 10, all at 100: these test points are behind a bar.
    for at, count in enumerate((100, 300)):
        low, high = wilson(0.1, count)
        assert means["network"].error_y.array[at] == pytest.approx(high - 0.1)
        assert means["network"].error_y.arrayminus[at] == pytest.approx(0.1 - low)
    assert means["linear model"].visible == "legendonly"
    assert "over-budget" in " ".join(trace.name or "" for trace in chart.figure.data)
    (level,) = chart.figure.layout.shapes
    assert level.y0 == pytest.approx(0.02275, abs=1e-4)  # Φ(−2)
    assert {"Wilson 95% from", "Wilson 95% to"} < set(chart.rows[0])
    losses = figures.against(at_n, SPEC, "loss", 0.5)
    assert losses.figure.data[0].error_y.array is None


def test_learning_curves_are_against_n_at_one_width(points):
    chart = figures.against(points, SPEC, "error", None, 100)
    (line,) = [
        trace
        for trace in chart.figure.data
        if trace.mode == "lines+markers" and trace.legendgroup == "network, ρ = 0.5"
    ]
    assert list(line.x) == [20, 40]
    assert chart.name == "learning_curves"


def test_along_training_caption_has_the_numbers(points):
    chart = figures.along(points, "error", 100, 0.5, 40)
    assert chart.takeaway == (
        "Alignment from 0.04 to 0.2; test error of regression with the kernel from 0.3 to 0.1, means of 3 runs."
    )
    assert len(chart.rows) == 9
    assert points[0].runs[0].distance_per_step[1:] == pytest.approx([0.05, 0.05])
    shares = figures.eigenspaces(points, 100, 0.5, 40)
    assert "0.5" in shares.takeaway
    turned = figures.angles(points, 100, 40)
    assert [trace.name for trace in turned.figure.data if trace.mode == "lines+markers"] == [
        "ρ = 0",
        "ρ = 0.25",
        "ρ = 0.5",
    ]
    assert figures.along([], "error", 100, 0.5, 40).takeaway == "No run yet."
