"""The dial of the page from lazy to rich: its figures from runs that follow the laws, and what its gallery shows."""

from __future__ import annotations

import pytest

from linearity_lab.components.shown import Shown
from linearity_lab.views.lazy import dial, figures
from linearity_lab.views.lazy.page import charts
from ntk_core.experiments.lazy import LazyPoint, LazyRun
from ntk_core.runs import PRESETS

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
