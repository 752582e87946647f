"""Figures of the Horizon page: what they state about runs that depart, never depart, or may depart later."""

from __future__ import annotations

import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.horizon import figures
from ntk_core.runs import run_summary


@pytest.mark.parametrize(
    ("preset", "of", "has_exponent"),
    [("horizon-cross-entropy", "kernel", True), ("horizon-cross-entropy", "outputs", False)],
)
def test_exponents_need_departures_of_all_runs(preset, of, has_exponent):
    result = gallery_result(preset)
    departed = [getattr(run, of).is_seen for point in result.points for run in point.runs]
    assert all(departed) == has_exponent
    chart = figures.against_width(result.points, result.spec, of)
    assert ("∝ m^" in chart.finding) == has_exponent
    assert any("∝" in (trace.name or "") for trace in chart.figure.data) == has_exponent
    assert has_exponent or f"{sum(departed)} of {len(departed)} runs depart" in chart.finding
    assert (f"horizon of the {of} ∝" in run_summary(result.spec, result.points)) == has_exponent


def test_square_loss_never_departs_and_has_arrows():
    result = gallery_result("horizon")
    chart = figures.first_chart(result)
    assert "square loss: 12 of 12 runs never depart" in chart.finding
    (arrows,) = [trace for trace in chart.figure.data if trace.name == "square loss: never"]
    assert list(arrows.x) == list(result.spec.widths)
    assert all(text.endswith("%") for text in arrows.text)


def test_steps_have_the_predicted_slope():
    result = gallery_result("horizon-rate")
    chart = figures.departure_steps(result.points, result.spec.widths)
    guides = [trace for trace in chart.figure.data if (trace.name or "").endswith("predicted")]
    assert [trace.name for trace in guides] == ["slope 1.23 predicted", "slope 0.72 predicted"]
    assert chart.finding.count("predicted") == 2


def test_charts_state_where_each_quantity_ends():
    result = gallery_result("horizon")
    for points, begin in ((result.points, "At the end: ΔK "), ([], "No run yet.")):
        assert figures.along_clock(points, result.spec, "cross-entropy", 64).takeaway.startswith(begin)
