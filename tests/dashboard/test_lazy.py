"""Figures of the two routes to linearity and of the dial from lazy to rich, from the gallery."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linearity_lab.charts.chart import Chart
from linearity_lab.components.gallery import gallery_result
from linearity_lab.components.shown import Shown
from linearity_lab.views.lazy import dial, figures
from linearity_lab.views.lazy.page import charts

LAZY = gallery_result("liu-lazy").points
DIALED = gallery_result("richness-deep")
DIAL = (0.0, *DIALED.spec.richness)
MEASURES = (figures.KAPPA, figures.CURVATURE, figures.CHANGE, figures.DISTANCE, figures.LARGEST)


def means(chart: Chart) -> list:
    return [trace for trace in chart.figure.data if trace.mode == "lines+markers"]


def mean_of(of, point, start="subtracted", output="linear") -> float:
    return np.mean([of(run) for run in point.runs if (run.start, run.output) == (start, output)])


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.symbol)
@pytest.mark.parametrize(("swept", "fixed"), [("scale", ("width", 100)), ("width", ("scale", 1.0))])
def test_each_sweep_has_its_own_points_and_a_line_per_start(swept, fixed, measure):
    points = [point for point in LAZY if getattr(point, fixed[0]) == fixed[1]]
    chart = figures.against(LAZY, swept, "linear", measure)
    lines = means(chart)
    assert [line.legendgroup for line in lines] == ["random f(w₀)", "f(w₀) = 0"]
    for line, start in zip(lines, ("random", "subtracted"), strict=True):
        assert list(line.x) == [getattr(point, swept) for point in points]
        assert list(line.y) == pytest.approx([mean_of(measure.of, point, start) for point in points])
    assert chart.caption[0] == f"Linear output, at {'width 100' if swept == 'scale' else 'scale α = 1'}."


def test_unconverged_runs_count_before_training_alone():
    first = LAZY[0]
    lost = first.runs[0].model_copy(update={"outcome": "over-budget"})
    points = [first.model_copy(update={"runs": (lost, *first.runs[1:])}), *LAZY[1:]]
    excluded = figures.against(points, "width", "linear", figures.CHANGE).caption
    assert any(each.startswith("Excluded from the means: random f(w₀) did not reach") for each in excluded)
    before = figures.against(points, "width", "linear", figures.KAPPA).caption
    assert not any("Excluded" in each for each in before)


def test_same_weights_show_the_kernels_of_f_and_of_its_output():
    own, through = means(figures.same_parameters(LAZY, "swish", "random"))
    points = [point for point in LAZY if point.scale == 1]
    assert list(own.y) == pytest.approx([mean_of(figures.BEHIND_F.of, each, "random", "swish") for each in points])
    assert list(through.y) == pytest.approx([mean_of(figures.CHANGE.of, each, "random", "swish") for each in points])
    assert own.name.startswith("kernel of α f")


def test_the_least_distance_is_drawn_where_it_was_computed():
    points = gallery_result("liu-distance").points
    bare = [
        point.model_copy(update={"runs": tuple(run.model_copy(update={"least_distance": ()}) for run in point.runs)})
        for point in points
    ]
    before, after = (figures.distances(each, "linear", "subtracted") for each in (bare, points))
    assert [line.legendgroup for line in means(after)] == [
        *(line.legendgroup for line in means(before)), "least distance, all inputs", "least distance, one input",
    ]  # fmt: skip
    one, every = points[0].runs[0].least_distance
    assert after.rows[0]["least ‖w − w₀‖₂, one input"] == one
    assert after.rows[0]["least ‖w − w₀‖₂, all inputs"] == every
    assert any(trace.name == "slope −0.5" for trace in after.figure.data)


def test_each_richness_has_a_line_and_the_shown_one_is_thick():
    chart = dial.against_width(DIALED.points, "linear", "subtracted", figures.CHANGE, 0.25)
    for line, rho in zip(means(chart), DIAL, strict=True):
        points = [point for point in DIALED.points if point.richness == rho]
        assert line.name.startswith(f"ρ = {rho:g} ∝")
        assert list(line.y) == pytest.approx([mean_of(figures.CHANGE.of, point) for point in points])
        assert (line.line.width, line.opacity) == (4 if rho == 0.25 else 1.5, None), "no curve is pale"
    assert {trace.legendgroup: trace.opacity for trace in chart.figure.data if trace.mode == "markers"} == {
        f"ρ = {rho:g}": None if rho == 0.25 else dial.FAINT for rho in DIAL
    }


def test_exponents_have_their_expected_lines():
    chart = dial.exponents(DIALED.points, "linear", "subtracted")
    assert len(chart.rows) == 3 * len(DIAL)
    for row in chart.rows:
        rho: Any = row["richness ρ"]
        assert row["expected"] == (2 * rho - 1 if row["of"] == "kernel change ΔK" else rho - 0.5)
        assert row["exponent in m"] == pytest.approx(row["expected"], abs=0.15)
    *drawn, first, second = chart.figure.data
    assert [y for trace in drawn for y in trace.y] == [row["exponent in m"] for row in chart.rows]
    assert [(each.name, tuple(each.y)) for each in (first, second)] == [
        ("expected 2ρ − 1", (-1.0, 0.0)),
        ("expected ρ − 1/2", (-0.5, 0.0)),
    ]


def test_coordinate_check_has_a_line_for_every_layer():
    chart = dial.coordinates(DIALED.points, "linear", "subtracted", 0.5)
    points = [point for point in DIALED.points if point.richness == 0.5]
    for index, line in enumerate(means(chart)):
        of = dial.of_layer(index).of
        assert list(line.y) == pytest.approx([mean_of(of, point) for point in points])
    assert len(means(chart)) == len(points[0].runs[0].hidden_change) == 3
    assert "ρ = 0.5; expected exponent 0.00." in chart.caption[0]


def test_dial_adds_three_figures_of_swept_settings_only():
    found = charts(Shown(DIALED.spec, DIALED.points, None, "job"), figures.CHANGE.title, "linear", "subtracted", 0.5)
    assert [each.name for each in found] == ["dial", "exponents", "coordinates", "figure3"]
