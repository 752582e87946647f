"""The dial of the page from lazy to rich: its figures from runs that follow the laws, and what its gallery shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.components.run_panel import Shown
from linearity_lab.views.lazy import dial, figures
from linearity_lab.views.lazy.page import charts
from ntk_core.experiments.lazy import LazyPoint, LazyRun
from ntk_core.runs import PRESETS
from tests.dashboard.open_pages import open_page, words

DIAL = (0.0, 0.125, 0.25, 0.5)


def made_run(width: int, rho: float, seed: int) -> LazyRun:
    """A run that follows the laws exactly, but for a factor of its seed; of two hidden layers."""
    features = (1 + 0.1 * seed) * width ** (rho - 0.5)
    values = {
        "learning_rate": width ** (2 * rho),
        "last_finite_step": 5,
        "num_steps": 5,
        "kappa": features,
        "residual": 1.0,
        "hessian": width ** (-rho - 0.5),
        "squared_gradient": width ** (-2 * rho),
        "hessian_converged": True,
        "first_loss": 1.0,
        "last_loss": 1e-4,
        "sup_change": (1 + 0.1 * seed) * width ** (2 * rho - 1),
        "pre_output_change": 1.0,
        "distance": width**rho,
        "largest_distance": features,
        "hidden_change": (features, 2 * features),
    }
    return LazyRun(output="linear", start="subtracted", seed=seed, outcome="converged", **values)


@pytest.fixture(scope="module")
def points() -> tuple[LazyPoint, ...]:
    return tuple(
        LazyPoint(
            width=width,
            scale=1.0,
            richness=rho,
            num_params=9,
            runs=tuple(made_run(width, rho, seed) for seed in range(3)),
            runtime_s=1.0,
        )
        for width in (100, 300, 1000, 3000)
        for rho in DIAL
    )


def test_each_richness_has_a_line_and_other_sweeps_omit_it(points):
    drawn = dial.against_width(points, "linear", "subtracted", figures.CHANGE)
    lines = [trace for trace in drawn.figure.data if trace.mode == "lines+markers"]
    assert [line.name.partition(" ∝")[0] for line in lines] == ["ρ = 0", "ρ = 0.125", "ρ = 0.25", "ρ = 0.5"]
    assert list(lines[0].y) == pytest.approx([1.1 / 100, 1.1 / 300, 1.1 / 1000, 1.1 / 3000])
    assert len(drawn.rows) == 4 * 4 * 3
    strong = dial.against_width(points, "linear", "subtracted", figures.CHANGE, 0.25).figure.data
    curves = {trace.legendgroup: (trace.line.width, trace.opacity) for trace in strong if trace.mode == "lines+markers"}
    assert curves == {f"ρ = {rho:g}": (4 if rho == 0.25 else 1.5, None) for rho in DIAL}, "no curve is pale"
    assert {trace.legendgroup: trace.opacity for trace in strong if trace.mode == "markers"} == {
        f"ρ = {rho:g}": None if rho == 0.25 else dial.FAINT for rho in DIAL
    }
    assert [value for value, _ in figures.along(points, "width")] == [100, 300, 1000, 3000]
    assert [value for value, _ in figures.along(points, "scale")] == [1.0]


def test_exponents_follow_the_expected_lines(points):
    drawn = dial.exponents(points, "linear", "subtracted")
    assert len(drawn.rows) == 3 * len(DIAL)
    for row in drawn.rows:
        assert row["exponent in m"] == pytest.approx(row["expected"], abs=1e-9)
    change, curvature, features, *guides = drawn.figure.data
    assert list(change.y) == pytest.approx([2 * rho - 1 for rho in DIAL], abs=1e-9)
    assert list(curvature.y) == pytest.approx([rho - 0.5 for rho in DIAL], abs=1e-9)
    assert list(features.y) == pytest.approx([rho - 0.5 for rho in DIAL], abs=1e-9)
    assert [guide.name for guide in guides] == ["expected 2ρ − 1", "expected ρ − 1/2"]
    assert "expected ρ − 1/2" in drawn.takeaway


def test_coordinate_check_has_a_line_for_every_layer(points):
    drawn = dial.coordinates(points, "linear", "subtracted", 0.5)
    lines = [trace for trace in drawn.figure.data if trace.mode == "lines+markers"]
    assert [list(line.y) for line in lines] == [pytest.approx([1.1] * 4), pytest.approx([2.2] * 4)]
    assert "ρ = 0.5; expected exponent 0.00." in drawn.caption[0]


def test_dial_adds_three_figures_of_swept_settings_only(points):
    shown = Shown(PRESETS["richness-deep"].spec, points, None, "job")
    found = charts(shown, figures.CHANGE.title, "linear", "subtracted", 0.5)
    assert [each.name for each in found] == ["dial", "exponents", "coordinates", "figure3"]


@pytest.fixture(scope="module")
def measured():
    return gallery_result("richness-dial").points


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (figures.CHANGE, lambda rho: 2 * rho - 1),
        (figures.HIDDEN, lambda rho: rho - 0.5),
        (figures.CURVATURE, lambda rho: rho - 0.5),  # but for √log m
        (figures.DISTANCE, lambda rho: rho),
    ],
)
def test_the_gallery_has_the_exponents_of_the_laws(measured, measure, expected):
    for rho in DIAL:
        law = dial.law(measured, "linear", "subtracted", measure, rho)
        assert math.isfinite(law.interval)
        assert law.exponent == pytest.approx(expected(rho), abs=0.1)


def test_the_gallery_has_the_table_of_an_independent_script():
    """ΔK at the end and exponents of |Δh|, n = 20, d = 10, one hidden layer; theirs are means over 3 to 5 seeds.

    Given as ± 10%, exponents as ± 0.1. Neither their targets nor their number of draws is stated; the spread of
    such means is taken to be that of four draws of ours.
    """
    table = {0.0: (0.152, 0.055, 0.013), 0.25: (0.85, 0.62, 0.40), 0.5: (3.07, 3.02, 3.01)}
    exponents = {0.0: -0.44, 0.25: -0.14, 0.5: 0.0}
    points = {(point.width, point.richness): point for point in gallery_result("richness-anew").points}
    for rho, row in table.items():
        for width, expected in zip((256, 1024, 4096), row, strict=True):
            runs = points[width, rho].runs
            assert {run.outcome for run in runs} == {"converged"}
            found = np.array([run.last_change for run in runs])
            error = found.std(ddof=1) * math.sqrt(1 / len(runs) + 1 / 4)
            assert abs(found.mean() - expected) < 0.1 * expected + 2 * error
            assert error < 0.25 * expected, "otherwise the check is empty"
        moved = [np.mean([run.mean_hidden_change for run in points[width, rho].runs]) for width in (256, 4096)]
        assert math.log(moved[1] / moved[0]) / math.log(16) == pytest.approx(exponents[rho], abs=0.1)


@pytest.mark.parametrize("name", ["richness-dial", "richness-deep"])
def test_gallery_layers_are_flat_at_one_half_only(name):
    points = gallery_result(name).points
    for rho, expected in ((0.0, -0.5), (0.5, 0.0)):
        for line in dial.coordinates(points, "linear", "subtracted", rho).rows:
            assert line["runs in the mean"] == line["all runs"]
        depth = len(points[0].runs[0].hidden_change)
        for index in range(depth):
            law = dial.law(points, "linear", "subtracted", dial.of_layer(index), rho)
            assert law.exponent == pytest.approx(expected, abs=0.1)


@pytest.mark.usefixtures("jobs", "through_the_menu")
def test_the_page_opens_with_the_dial():
    app = open_page("lazy")
    assert len(app.get("plotly_chart")) == 5
    assert "At ρ = 0.5: kernel change ΔK −0.01" in words(app)
    app.select_slider(key="lazy.dialed").set_value(0.25)
    app.run()
    assert "ρ = 0.25; expected exponent −0.25." in words(app)
    assert "At ρ = 0.25: kernel change ΔK −0.43" in words(app)
    assert [each.value for each in app.exception] == []
