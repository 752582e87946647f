"""The page of depth against width: its figures, its gallery against independent numbers, its way through app.py."""

from __future__ import annotations

import pytest

from linearity_lab.components.shown import Shown
from linearity_lab.views.depth_width import figures
from linearity_lab.views.depth_width.page import charts
from ntk_core.experiments.depth_width import DepthRun, DepthWidthPoint
from ntk_core.experiments.depth_width.random_kernels import second_moment
from ntk_core.runs import PRESETS
from tests.dashboard.made_results import filled


def made_point(depth: int, width: int, *, share: float = 0.01, trained: bool = True) -> DepthWidthPoint:
    cv_squared = second_moment(depth, width) - 1
    curvature = {"hessian": depth * width**-0.5, "squared_gradient": depth}
    runs = [
        filled(DepthRun, steps=(0, 5), change=(0.0, depth / width), loss=(1.0, 0.01), seed=seed, **curvature)
        for seed in (0, 1)
    ]
    return filled(
        DepthWidthPoint,
        depth=depth,
        width=width,
        num_kernels=100,
        mean=depth + 1,
        cv_squared=cv_squared,
        low=0.8 * cv_squared,
        high=1.3 * cv_squared,
        largest_share=share,
        runs=tuple(runs) if trained else (),
    )


def made_points() -> tuple[DepthWidthPoint, ...]:
    return tuple(
        made_point(depth, width, share=0.4 if depth == 16 and width == 16 else 0.01, trained=depth < 16)
        for depth in (1, 4, 16)
        for width in (16, 64)
    )


def means(chart) -> dict[str, list[float]]:
    return {trace.name: list(trace.x) for trace in chart.figure.data if trace.mode == "lines+markers"}


def test_every_width_is_a_line_along_the_depth_and_along_beta():
    assert means(figures.against_depth(made_points())) == {"m = 16": [1, 4, 16], "m = 64": [1, 4, 16]}
    assert means(figures.against_beta(made_points())) == {
        "m = 16": [1 / 16, 1 / 4, 1],
        "m = 64": [1 / 64, 1 / 16, 1 / 4],
    }


def test_intervals_are_bars_and_dominated_points_are_ringed():
    drawn = figures.against_depth(made_points())
    bars = next(trace for trace in drawn.figure.data if trace.name == "m = 16, 95% bootstrap interval")
    values = [second_moment(depth, 16) - 1 for depth in (1, 4, 16)]
    assert list(bars.error_y.array) == pytest.approx([0.3 * value for value in values])
    assert list(bars.error_y.arrayminus) == pytest.approx([0.2 * value for value in values])
    ringed = [trace for trace in drawn.figure.data if trace.marker.symbol == "circle-open"]
    (rings,) = [trace for trace in ringed if trace.x[0] is not None]
    assert (list(rings.x), list(rings.y)) == ([16], [values[-1]])
    assert "L = 16 at m = 16" in drawn.caption[1]


def test_trained_networks_have_figures_where_there_are_some():
    shown = Shown(PRESETS["depth-width"].spec, made_points(), None, "job")
    found = charts(shown)
    assert [each.name for each in found] == ["figure1", "figure2", "figure3", "figure4"]
    assert [len(each.rows) for each in found] == [6, 6, 8, 8]
    assert means(found[2])[next(iter(means(found[2])))] == [1 / 16, 1 / 4]
    untrained = Shown(shown.spec, tuple(point for point in made_points() if not point.runs), None, "job")
    assert [each.name for each in charts(untrained)] == ["figure1", "figure2"]
