"""Figures of kernel change, and names at the ends of curves."""

import itertools
import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.labels import (
    MOST_CURVES,
    power,
    shifted_apart,
)
from linearity_lab.charts.lines import Dot, Line, fitted, width_axis
from linearity_lab.charts.style import nth_style
from linearity_lab.charts.sweep import MOST_OF_LEGEND, sweep
from linearity_lab.experiments.kernel_change import figures as figures
from linearity_lab.experiments.kernel_change.point import KernelAtStart, KernelChangePoint
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from tests.dashboard.made_results import make_points, make_run


def numbers(values) -> np.ndarray:
    return np.asarray(values, float)


def traces(figure) -> list[dict]:
    return [trace.to_plotly_json() for trace in figure.data]


def one(figure, **wanted) -> dict:
    (found,) = [
        each for each in traces(figure) if all(each.get(name) == wanted[name] for name in wanted)
    ]
    return found


def against_width(*arguments, **named):
    return figures.change_against_width(*arguments, **named).figure


def mean_line(figure, output: str) -> dict:
    return one(figure, legendgroup=f"{output} output", mode="lines+markers")


def seeds(figure, output: str) -> dict:
    return one(figure, legendgroup=f"{output} output", mode="markers")


def test_band_is_one_standard_error_around_the_mean():
    points = make_points()
    figure = against_width(points)
    values = np.array([[run.sup_change for run in point.of("linear")] for point in points])
    mean, error = values.mean(1), values.std(1, ddof=1) / np.sqrt(values.shape[1])
    line, band = (
        mean_line(figure, "linear"),
        one(figure, legendgroup="linear output", fill="toself"),
    )
    np.testing.assert_array_equal(numbers(line["x"]), [30, 100, 1000])
    np.testing.assert_allclose(numbers(line["y"]), mean, rtol=1e-14)
    np.testing.assert_allclose(
        numbers(band["y"]), [*(mean + error), *(mean - error)[::-1]], rtol=1e-12
    )
    assert [
        trace for trace in traces(against_width(make_points(seeds=1))) if trace.get("fill")
    ] == []


def test_end_of_a_line_has_name_exponent_and_interval():
    chart = figures.change_against_width(make_points((30, 100, 300, 1000), spread=0.0))
    line = mean_line(chart.figure, "linear")
    assert (line["name"], line["showlegend"]) == ("linear output ∝ m<sup>−1.00 ± 0.00</sup>", False)
    label = one(chart.figure, name="label of linear output")
    assert label["text"][-1] == "linear output<br>" + power("m", "−1.00 ± 0.00")
    assert (
        "linear output: from 0.033 at m = 30 to 0.001 at 1,000, fitted exponent −1.00 ± 0.00."
        in chart.takeaway
    )


# Runs of two seeds whose means fall while the fit through their logarithms rises.
SCATTERED = {30: (1.2, 0.08), 200: (0.9, 0.4), 1000: (0.7, 0.2)}


def scattered_line(values=SCATTERED):
    dots = [Dot(m, value, seed) for m, pair in values.items() for seed, value in enumerate(pair)]
    return Line(nth_style(0, "scattered"), dots)


def test_exponent_of_few_runs_against_their_means_is_left_out():
    line = scattered_line()
    assert fitted(line.dots).exponent > 0
    assert line.means[0][1].value > line.means[-1][1].value
    assert line.law is None
    steady = {m: (2 / m, 3 / m) for m in SCATTERED}
    chart = sweep([line, replace(scattered_line(steady), group="b")], width_axis(), "K")
    names = [trace.name for trace in chart.figure.data if "±" not in trace.name]
    assert "scattered" in names
    assert "from 0.64 to 0.45" in chart.finding


def test_exponent_of_a_flat_line_stays():
    flat = {30: (1.0, 0.98), 200: (1.0, 1.0), 1000: (0.9, 1.1)}
    assert scattered_line(flat).law is not None


def test_legend_leaves_height_to_the_curves():
    chart = sweep([scattered_line()], width_axis((30, 10_000)), "K", height=400)
    assert chart.figure.layout.legend.maxheight == MOST_OF_LEGEND < 400 / 4


def test_missing_interval_and_last_slope_are_explained():
    few = figures.change_against_width(make_points((30, 100, 1000), seeds=2))
    assert (
        mean_line(few.figure, "linear")["name"] == "linear output ∝ m<sup>−1.00</sup>; no interval"
    )
    bent = [
        KernelChangePoint(
            width=m,
            num_params=m,
            runs=tuple(
                make_run("linear", seed, m**-0.5 / (1 + m / 300) * (1 + 0.02 * seed * (-1) ** at))
                for seed in range(3)
            ),
        )
        for at, m in enumerate((30, 100, 300, 1000, 3000))
    ]
    drawn = figures.change_against_width(bent)
    x, y = np.log(
        [(point.width, run.sup_change) for point in bent[2:] for run in point.of("linear")]
    ).T
    slope = np.polyfit(x, y, 1)[0]
    assert mean_line(drawn.figure, "linear")["name"].endswith(
        f"last decade −{-slope:.2f}; not yet settled"
    )
    slopes = np.array([row["slope from the previous value"] for row in drawn.rows], float)
    assert np.isnan(slopes[0])
    assert np.all(np.diff(slopes[1:]) < 0)


def test_unconverged_runs_are_open_and_excluded_from_means():
    bad = [(50.0, "over-budget"), (60.0, "diverged"), (70.0, "stuck"), (0.0, "dead", math.inf)]
    runs = [make_run("linear", seed, *each) for seed, each in enumerate([(0.5, "converged"), *bad])]
    good = make_points((30, 100), exponents={"linear": -1.0})
    points = (*good, KernelChangePoint(width=1000, num_params=1, runs=tuple(runs)))
    chart = figures.change_against_width(points)
    symbols = seeds(chart.figure, "linear")["marker"]["symbol"]
    # A logarithmic axis has no 0.
    assert symbols[-4:] == [
        "circle",
        "circle-open",
        "x-thin-open",
        "line-ew-open",
    ]
    entries = [trace["name"] for trace in traces(chart.figure) if trace["name"].endswith(": 1 run")]
    assert entries == [
        "kernel 0 at the start: 1 run",
        "diverged: 1 run",
        "stopped at the step limit: 1 run",
        "loss stayed above the threshold: 1 run",
    ]
    assert numbers(mean_line(chart.figure, "linear")["y"])[-1] == 0.5
    assert chart.excluded == "4 of 11 runs excluded"
    assert figures.change_against_width(good).excluded == ""
    *sentences, exponent, _ = chart.caption
    whys = ("did not reach the loss threshold", "diverged:", "stayed on a plateau", "was dead:")
    for seed, (sentence, why) in enumerate(zip(sentences[1:], whys, strict=True), 1):
        assert sentence.startswith(f"Excluded from the means: linear output {why}")
        assert sentence.endswith(f"at m = 1,000 (seed {seed}): 1 of 11 runs.")
    # The second exponent includes the run over its budget; diverged runs are always excluded.
    found = [(point.width, run.sup_change) for point in points for run in point.of("linear")]
    x, y = np.log([pair for pair in found if pair[1] not in (60.0, 0.0)]).T
    slope = np.polyfit(x, y, 1)[0]
    assert (
        exponent
        == f"Linear output: exponent 0.65 over 7 converged runs, {slope:.2f} with the excluded "
        "ones."
    )


def test_figure_of_no_or_one_point_can_be_drawn():
    for points in ((), make_points((30,), seeds=1)):
        chart = figures.change_against_width(points, (30, 100))
        assert chart.figure.layout.xaxis.tickvals == (30, 100)
        assert chart.takeaway.startswith("Kernel change ΔK against width m")


@pytest.mark.parametrize(("axis", "factor"), [("step", 1), ("time", 0.5)])
def test_training_figure_follows_runs_by_step_or_time(axis, factor):
    (point,) = make_points((100,), seeds=2)
    chart = figures.change_against_time(point, axis)
    legend = [trace for trace in traces(chart.figure) if trace.get("showlegend", True)]
    assert [trace["name"] for trace in legend] == ["linear output", "softmax output"]
    change, loss = (
        [each for each in traces(chart.figure) if each["yaxis"] == row and each not in legend]
        for row in ("y", "y2")
    )
    for drawn, lost, run in zip(change, loss, point.runs, strict=True):
        np.testing.assert_allclose(numbers(drawn["x"]), np.array([1, 10, 100]) * factor)
        np.testing.assert_allclose(numbers(drawn["y"]), run.change[1:])
        np.testing.assert_allclose(numbers(lost["y"]), [0.5, 0.1, 0.01])


def test_velocity_ball_and_training_share_one_figure():
    """A velocity of 1/m and a change of 2 m^(-1/2) in a ball."""
    started = []
    for point in make_points(exponents={"linear": -1.0}):
        starts = [(seed, 1 + 0.1 * seed) for seed in range(3)]
        found = tuple(
            KernelAtStart(
                output="linear",
                seed=seed,
                velocity=v / point.width,
                ball_change=2 * v / point.width**0.5,
            )
            for seed, v in starts
        )
        started.append(point.model_copy(update={"at_start": found}))
    chart = figures.start_against_width(started, radius=1.0)
    assert {row["measured"] for row in chart.rows} == {
        "largest ΔK for R = 1",
        "velocity at w₀",
        "ΔK in training",
    }
    lines = [trace for trace in traces(chart.figure) if trace.get("mode") == "lines+markers"]
    assert sorted(trace["name"].partition("m<sup>")[2][:5] for trace in lines) == [
        "−0.50",
        "−1.00",
        "−1.00",
    ]


@given(st.lists(st.tuples(st.floats(0, 400), st.floats(10, 60)), min_size=1, max_size=6))
def test_labels_keep_apart_in_order_within_bounds(labels):
    wanted, heights = [at for at, _ in labels], [height for _, height in labels]
    places = shifted_apart(wanted, heights, 400)
    order = sorted(range(len(labels)), key=lambda index: wanted[index])
    for low, high in itertools.pairwise(order):
        assert places[high] - places[low] >= (heights[low] + heights[high]) / 2 - 1e-9
    assert min(place - height / 2 for place, height in zip(places, heights, strict=True)) >= -1e-9
    assert (
        max(place + height / 2 for place, height in zip(places, heights, strict=True)) <= 400 + 1e-9
    )


def test_more_than_four_curves_start_in_the_legend():
    lines = [
        Line(
            nth_style(at, f"curve {at}"),
            [Dot(m, (at + 1) / m, seed) for m in (10, 1000) for seed in range(3)],
        )
        for at in range(7)
    ]
    figure = sweep(lines, width_axis(), "value").figure
    seen = {
        trace.legendgroup
        for trace in figure.data
        if trace.visible is not False and trace.visible != "legendonly"
    }
    assert seen == {f"curve {index}" for index in range(MOST_CURVES)}
    assert [trace.name for trace in figure.data if trace.showlegend] == [
        "curve 4",
        "curve 5",
        "curve 6",
    ]


def test_charts_have_the_name_of_their_figure():
    one = Chart(go.Figure(), "", [])
    other = replace(one, name="beside")
    figure = Figure("curves", "Curves", draw=lambda shown: [one, other])
    shown: Shown[KernelChangeSpec, KernelChangePoint] = Shown(KernelChangeSpec(), ())
    assert [chart.name for chart in figure.charts(shown)] == ["curves", "beside"]
