"""The figures of depth against width, from the result in the gallery."""

from __future__ import annotations

from typing import Any

import pytest

from linearity_lab.components.gallery import gallery_result
from linearity_lab.components.shown import Shown
from linearity_lab.views.depth_width import figures
from linearity_lab.views.depth_width.page import charts

RESULT = gallery_result("depth-width")
DEPTHS, WIDTHS = RESULT.spec.depths, RESULT.spec.widths
NARROW: list[Any] = [point for point in RESULT.points if point.width == WIDTHS[0]]


def means(chart) -> dict[str, list[float]]:
    return {trace.name: list(trace.x) for trace in chart.figure.data if trace.mode == "lines+markers"}


def test_every_width_is_a_line_along_the_depth_and_along_beta():
    assert means(figures.against_depth(RESULT.points)) == {f"m = {width:,}": list(DEPTHS) for width in WIDTHS}
    along_beta = means(figures.against_beta(RESULT.points))
    assert along_beta == {f"m = {width:,}": [depth / width for depth in DEPTHS] for width in WIDTHS}


def test_intervals_are_bars_and_dominated_points_are_ringed():
    deepest = NARROW[-1].model_copy(update={"largest_share": 0.4})
    even = [point.model_copy(update={"largest_share": 0.01}) for point in NARROW[:-1]]
    drawn = figures.against_depth([*even, deepest])
    bars = next(trace for trace in drawn.figure.data if trace.name == f"m = {WIDTHS[0]}, 95% bootstrap interval")
    assert list(bars.error_y.array) == pytest.approx([point.high - point.cv_squared for point in NARROW])
    assert list(bars.error_y.arrayminus) == pytest.approx([point.cv_squared - point.low for point in NARROW])
    (rings,) = [trace for trace in drawn.figure.data if trace.marker.symbol == "circle-open" and trace.x[0] is not None]
    assert (list(rings.x), list(rings.y)) == ([deepest.depth], [deepest.cv_squared])
    assert f"L = {deepest.depth} at m = {deepest.width}" in drawn.caption[1]


def test_trained_networks_have_figures_where_there_are_some():
    shown = Shown(RESULT.spec, RESULT.points, None, "job")
    assert [each.name for each in charts(shown)] == ["figure1", "figure2", "figure3", "figure4"]
    trained = sorted(point.beta for point in NARROW if "converged" in {run.outcome for run in point.runs})
    assert next(iter(means(charts(shown)[2]).values())) == trained
    untrained = Shown(shown.spec, tuple(point for point in RESULT.points if not point.runs), None, "job")
    assert [each.name for each in charts(untrained)] == ["figure1", "figure2"]
