"""Figures of kernel change as sent to the browser, and names at the ends of curves."""

from __future__ import annotations

import base64
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearity_lab.charts.axes import log_ticks, plain_symbols, swept_ticks
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.labels import (
    MOST_CURVES,
    MOST_LETTERS,
    End,
    _turned,
    power,
    rows_of,
    shifted_apart,
)
from linearity_lab.charts.lines import Dot, Line, width_axis
from linearity_lab.charts.style import nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.charts.training import Curve, Row, along_training
from linearity_lab.views.kernel_change import figures as figures
from ntk_core.experiments.kernel_change import KernelAtStart, KernelChangePoint
from tests.dashboard.made_results import make_points, make_run


def numbers(values) -> np.ndarray:
    """A trace's numbers, decoded from base64 if necessary."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), np.dtype(values["dtype"]))
    return np.asarray(values, float)


def traces(figure) -> list[dict]:
    return json.loads(figure.to_json())["data"]


def one(figure, **wanted) -> dict:
    found = [t for t in traces(figure) if all(t.get(name) == value for name, value in wanted.items())]
    assert len(found) == 1
    return found[0]


def against_width(*arguments, **named):
    return figures.change_against_width(*arguments, **named).figure


def against_time(*arguments):
    return figures.change_against_time(*arguments).figure


def mean_line(figure, output: str) -> dict:
    return one(figure, legendgroup=f"{output} output", mode="lines+markers")


def seeds(figure, output: str) -> dict:
    return one(figure, legendgroup=f"{output} output", mode="markers")


def test_band_is_one_standard_error_around_the_mean():
    points = make_points()
    figure = against_width(points)
    values = np.array([[run.sup_change for run in point.of("linear")] for point in points])
    mean, error = values.mean(1), values.std(1, ddof=1) / np.sqrt(values.shape[1])
    line, band = mean_line(figure, "linear"), one(figure, legendgroup="linear output", fill="toself")
    np.testing.assert_array_equal(numbers(line["x"]), [30, 100, 1000])
    np.testing.assert_allclose(numbers(line["y"]), mean, rtol=1e-14)
    np.testing.assert_allclose(numbers(band["y"]), [*(mean + error), *(mean - error)[::-1]], rtol=1e-12)
    assert [trace for trace in traces(against_width(make_points(seeds=1))) if trace.get("fill")] == []


def test_end_of_a_line_has_name_exponent_and_interval():
    figure = against_width(make_points((30, 100, 300, 1000), spread=0.0))
    line = mean_line(figure, "linear")
    assert (line["name"], line["showlegend"]) == ("linear output ∝ m<sup>−1.00 ± 0.00</sup>", False)
    label = one(figure, name="label of linear output")
    assert label["text"][-1] == "linear output<br>" + power("m", "−1.00 ± 0.00")


def test_missing_interval_and_last_slope_are_explained():
    few = figures.change_against_width(make_points((30, 100, 1000), seeds=2))
    assert mean_line(few.figure, "linear")["name"] == "linear output ∝ m<sup>−1.00</sup>; no interval"
    assert "fitted exponent −1.00; no interval (needs 3 seeds and 4 widths)." in few.takeaway
    widths = (30, 100, 300, 1000, 3000)
    bent = [
        KernelChangePoint(width=m, num_params=m, runs=tuple(make_run("linear", seed, change) for seed, change in runs))
        for at, m in enumerate(widths)
        for runs in [[(seed, m**-0.5 / (1 + m / 300) * (1 + 0.02 * seed * (-1) ** at)) for seed in range(3)]]
    ]
    drawn = figures.change_against_width(bent)
    x, y = np.log([(point.width, run.sup_change) for point in bent[2:] for run in point.of("linear")]).T
    slope = np.polyfit(x, y, 1)[0]
    assert mean_line(drawn.figure, "linear")["name"].endswith(f"last decade −{-slope:.2f}; not yet settled")
    slopes = np.array([row["slope from the previous value"] for row in drawn.rows], float)
    assert np.isnan(slopes[0])
    assert np.all(np.diff(slopes[1:]) < 0)


def test_guides_have_slopes_one_half_and_one():
    figure = against_width(make_points())
    first = numbers(mean_line(figure, "linear")["y"])[0]
    for guide, slope in zip(
        [each for each in traces(figure) if each["name"].startswith("slope")], (-0.5, -1), strict=True
    ):
        x, y = numbers(guide["x"]), numbers(guide["y"])
        assert np.log(y[1] / y[0]) / np.log(x[1] / x[0]) == pytest.approx(slope, rel=1e-12)
        assert guide["line"]["dash"] == "dash"
        assert y[0] == pytest.approx(first)
    words = [trace["text"][-1] for trace in traces(figure) if trace["name"].startswith("label of m")]
    assert words == [power("m", "−1/2"), power("m", "−1")]


def test_unconverged_runs_are_open_and_excluded_from_means():
    bad = (
        make_run("linear", 0, 0.5),
        make_run("linear", 1, 50.0, "over-budget"),
        make_run("linear", 2, 60.0, "diverged"),
        make_run("linear", 3, 70.0, "stuck"),
        make_run("linear", 4, 0.0, "dead", math.inf),
    )
    good, last = (
        make_points((30, 100), exponents={"linear": -1.0}),
        KernelChangePoint(width=1000, num_params=1, runs=bad),
    )
    points = (*good, last)
    chart = figures.change_against_width(points)
    symbols = seeds(chart.figure, "linear")["marker"]["symbol"]
    assert symbols[-4:] == ["circle", "circle-open", "x-thin-open", "line-ew-open"]  # a logarithmic axis has no 0
    entries = [trace["name"] for trace in traces(chart.figure) if trace["name"][:4] in ("dead", "over", "dive", "stuc")]
    assert entries == ["dead: 1 run", "diverged: 1 run", "over-budget: 1 run", "stuck: 1 run"]
    assert numbers(mean_line(chart.figure, "linear")["y"])[-1] == 0.5
    assert chart.excluded == "4 of 11 runs excluded"
    assert figures.change_against_width(good).excluded == ""
    rates, over_budget, diverged, stuck, dead, exponent, _ = chart.caption
    assert rates.startswith("Learning rate η used: linear output 0.5")
    assert over_budget.startswith("Excluded from the means: linear output did not reach the loss threshold")
    assert over_budget.endswith("at m = 1,000 (seed 1): 1 of 11 runs.")
    assert "linear output diverged: " in diverged
    assert "at m = 1,000 (seed 2): 1 of" in diverged
    assert "linear output got stuck on a plateau above the loss threshold at m = 1,000 (seed 3): 1 of" in stuck
    assert "linear output was dead: K(w₀) = 0 at m = 1,000 (seed 4): 1 of" in dead
    # The second exponent includes the run over its budget; diverged runs are always excluded.
    found = [(point.width, run.sup_change) for point in points for run in point.of("linear")]
    x, y = np.log([pair for pair in found if pair[1] not in (60.0, 0.0)]).T
    slope = np.polyfit(x, y, 1)[0]
    assert exponent == f"Linear output: exponent 0.65 over 7 converged runs, {slope:.2f} with the excluded ones."
    lost = against_width((*good, last.model_copy(update={"runs": bad[1:2]})))
    assert 1000 not in numbers(mean_line(lost, "linear")["x"])
    assert 1000 in numbers(seeds(lost, "linear")["x"])


def test_axes_are_logarithmic_with_ticks_of_the_whole_sweep():
    figure = against_width(make_points((30, 100)), widths=(30, 100, 3000, 10_000))
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    assert figure.layout.xaxis.title.text == "width m"
    assert figure.layout.xaxis.tickvals == (30, 100, 3000, 10_000)
    assert figure.layout.xaxis.ticktext == ("30", "100", "3,000", "10,000")
    low, high = 10 ** np.array(figure.layout.xaxis.range)
    assert low < 30
    assert high > 10_000
    swept = against_width(make_points((3, 10)), swept="bottleneck_width")
    assert swept.layout.xaxis.title.text == "bottleneck width m<sub>b</sub>"


def test_ticks_of_many_values_keep_their_distance_and_both_ends():
    widths = tuple(range(100, 124))
    ticks = against_width(make_points((100, 123)), widths=widths).layout.xaxis.tickvals
    assert 5 <= len(ticks) <= 10
    assert set(ticks) <= set(widths)
    close = [100, 200, 400, 800, 1600, 3200, 6400, 10_000]
    for first in ((), close):
        ends = swept_ticks(close, first)["tickvals"]
        assert (ends[0], ends[-1]) == (100, 10_000)
        assert 6400 not in ends


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((0.013, 30), ("0.01", "0.1", "1", "10", "100")),
        ((0.3, 0.9), ("0.1", "0.2", "0.5", "1", "2", "5")),
        ((0.8, 1.1), ("0.15", "0.2", "0.3", "0.4", "0.5", "0.6", "0.8", "1", "1.5", "2", "3", "4", "5", "6")),
        ((1e-7, 20), ("10⁻⁷", "10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹", "10²")),
        ((10, 3e6), ("10¹", "10²", "10³", "10⁴", "10⁵", "10⁶", "10⁷")),
    ],
)
def test_the_labels_of_a_logarithmic_axis_are_all_of_one_kind(values, labels):
    found = log_ticks(values)
    assert set(found["ticktext"]) <= set(labels)
    assert len({any(sign in "⁰¹²³⁴⁵⁶⁷⁸⁹" for sign in text) for text in found["ticktext"]}) == 1
    assert sum(values[0] / 10 <= at <= values[1] * 10 for at in found["tickvals"]) >= 2


def test_the_title_of_an_axis_in_words_keeps_its_subscripts():
    assert plain_symbols("‖K(w<sub>0</sub>) − K<sub>∞</sub>‖ / m<sup>1/2</sup>") == "‖K(w₀) − K_∞‖ / m^1/2"


def test_figure_of_no_or_one_point_can_be_drawn():
    for points in ((), make_points((30,), seeds=1)):
        chart = figures.change_against_width(points, (30, 100))
        assert chart.figure.layout.xaxis.tickvals == (30, 100)
        assert chart.takeaway.startswith("Kernel change ΔK against width m")


@pytest.mark.parametrize(("axis", "factor"), [("step", 1), ("time", 0.5)])
def test_training_figure_follows_runs_by_step_or_time(axis, factor):
    (point,) = make_points((100,), seeds=2)
    every = traces(against_time(point, axis))
    legend = [trace for trace in every if trace.get("showlegend", True)]
    assert [trace["name"] for trace in legend] == ["linear output", "softmax output"]
    change, loss = ([each for each in every if each["yaxis"] == row and each not in legend] for row in ("y", "y2"))
    for drawn, lost, run in zip(change, loss, point.runs, strict=True):
        np.testing.assert_allclose(numbers(drawn["x"]), np.array([1, 10, 100]) * factor)
        np.testing.assert_allclose(numbers(drawn["y"]), run.change[1:])
        np.testing.assert_allclose(numbers(lost["y"]), [0.5, 0.1, 0.01])


def test_tables_hold_what_the_figures_show():
    points = make_points()
    chart = figures.change_against_width(points)
    assert len(chart.rows) == 3 * 2
    assert chart.rows[0]["width m"] == 30
    assert chart.rows[0]["mean ΔK"] == pytest.approx(30**-1.0)
    assert chart.rows[0]["runs in the mean"] == chart.rows[0]["all runs"] == 3
    assert chart.rows[0]["learning rate η"] == "0.5"
    assert chart.caption[0] == "Learning rate η used: linear output and softmax output 0.5."
    assert not any("rate" in each for each in figures.change_against_width(points, with_rates=False).caption)
    assert len(figures.change_against_time(points[0]).rows) == len(points[0].runs) * 4


def with_starts(points, **changes) -> list[KernelChangePoint]:
    """Points with a velocity of 1/m and a change of 2 m^(-1/2) in a ball; three seeds."""
    found = []
    for point in points:
        starts = tuple(
            KernelAtStart(
                output="linear",
                seed=seed,
                velocity=(1 + 0.1 * seed) / point.width,
                ball_change=2.0 * (1 + 0.1 * seed) / point.width**0.5,
            )
            for seed in range(3)
        )
        found.append(point.model_copy(update={"at_start": starts, **changes}))
    return found


def test_velocity_ball_and_training_share_one_figure():
    points = make_points(exponents={"linear": -1.0})
    chart = figures.start_against_width(with_starts(points), radius=1.0)
    assert {row["measured"] for row in chart.rows} == {"largest ΔK for R = 1", "velocity at w₀", "ΔK in training"}
    lines = [trace for trace in traces(chart.figure) if trace.get("mode") == "lines+markers"]
    assert sorted(trace["name"].partition("m<sup>")[2][:5] for trace in lines) == ["−0.50", "−1.00", "−1.00"]
    assert len({(trace["line"]["dash"], trace["marker"]["symbol"]) for trace in lines}) == 3
    bare = figures.start_against_width(with_starts(points, runs=()))
    assert "velocity at w₀" in {row["measured"] for row in bare.rows}
    assert "ΔK in training" not in {row["measured"] for row in bare.rows}
    assert "from 0.037 at m = 30" in bare.takeaway


def test_the_finding_states_each_exponent_with_its_interval():
    chart = figures.change_against_width(make_points((30, 100, 300, 1000), spread=0.0))
    assert "linear output: from 0.033 at m = 30 to 0.001 at 1,000, fitted exponent −1.00 ± 0.00." in chart.takeaway
    assert "Linear output: ΔK ∝ m^(−1.00 ± 0.00)" in chart.finding
    assert chart.sentence == chart.finding
    assert figures.change_against_width(make_points()).finding.endswith("No interval yet: too few seeds or values.")


def test_a_sentence_states_a_result_rather_than_the_axes():
    words = "Kernel change against width m. Linear output: from 1 at m = 30 to 0.1 at 300. Swish output: no usable run."
    chart = Chart(go.Figure(), words, [])
    assert chart.sentence == "Linear output: from 1 at m = 30 to 0.1 at 300. Swish output: no usable run."


LABELS = st.lists(st.tuples(st.floats(0, 400), st.floats(10, 60)), min_size=1, max_size=6)


@given(LABELS)
def test_labels_keep_apart_in_order_within_bounds(labels):
    wanted, heights = [at for at, _ in labels], [height for _, height in labels]
    places = shifted_apart(wanted, heights, 400)
    order = sorted(range(len(labels)), key=lambda index: wanted[index])
    for low, high in itertools.pairwise(order):
        assert places[high] - places[low] >= (heights[low] + heights[high]) / 2 - 1e-9
    assert min(place - height / 2 for place, height in zip(places, heights, strict=True)) >= -1e-9
    assert max(place + height / 2 for place, height in zip(places, heights, strict=True)) <= 400 + 1e-9


def test_labels_move_only_where_they_overlap_and_by_equal_shifts():
    assert shifted_apart([300, 50, 120], [20, 20, 30], 400) == [300, 50, 120]
    assert shifted_apart([100, 100], [20, 40], 400) == [85, 115]


def test_long_titles_are_broken_and_tags_are_no_letters():
    rows = rows_of("‖∂f/∂α‖<sub>∞</sub>, scales the Hessian", "−0.5")
    assert rows == ("‖∂f/∂α‖<sub>∞</sub>,", "scales the", "Hessian", "−0.5")
    assert rows_of("largest ΔK for R = 1") == ("largest ΔK for", "R\u00a0=\u00a01")
    assert max(map(len, rows_of("DenseNet, swish output"))) <= MOST_LETTERS


def made_lines(count: int, last: float = 1000) -> list[Line]:
    return [
        Line(nth_style(at, f"curve {at}"), [Dot(m, (at + 1) / m, seed) for m in (10, last) for seed in range(3)])
        for at in range(count)
    ]


def test_more_than_four_curves_start_in_the_legend():
    figure = sweep(made_lines(7), width_axis(), "value").figure
    seen = {trace.legendgroup for trace in figure.data if trace.visible is not False and trace.visible != "legendonly"}
    assert seen == {f"curve {index}" for index in range(MOST_CURVES)}
    assert [trace.name for trace in figure.data if trace.showlegend] == ["curve 4", "curve 5", "curve 6"]
    assert figure.layout.legend.title.text == "3 more, hidden for clarity: click to show"
    labels = [trace.text[-1] for trace in figure.data if "text" in trace.mode]
    assert [label.partition("<br>")[0][-7:] for label in labels] == [f"curve {index}" for index in range(MOST_CURVES)]


def test_label_has_the_mark_of_its_curve():
    lines = made_lines(4)
    figure = sweep(lines, width_axis(), "value").figure
    labels = {trace.legendgroup: trace.marker for trace in figure.data if "text" in trace.mode}
    for line in lines:
        mark = labels[line.in_legend]
        symbol = _turned(line.style.symbol)
        assert (mark.symbol, mark.angle, mark.color[1]) == (symbol, -90, line.style.color)
    assert _turned("x") == _turned("x-open") == "x-thin-open"
    curve = Curve(nth_style(0, "loss"), (1, 10, 100), (3.0, 2.0, 1.0), "loss")
    unmarked, marked = (along_training([each], (Row("loss"),)) for each in (curve, replace(curve, marks=6)))
    assert unmarked.data[-1].marker.symbol == "line-ns-open", "no marks on the curve"
    assert marked.data[-1].marker.symbol == _turned(curve.style.symbol)


def test_axis_fits_visible_curves_and_prefers_their_ticks():
    lines = [*made_lines(4), *(replace(line, dots=[Dot(8, 1.0, 0), Dot(1000, 1.0, 0)]) for line in made_lines(5)[4:])]
    axis = sweep(lines, width_axis(), "value").figure.layout.xaxis
    assert (axis.autorange, axis.range) == (True, None)
    assert list(axis.tickvals) == [10, 1000], "8 would touch 10"
    assert axis.autorangeoptions.clipmax > 1000, "names at the ends stay where they are"
    figure = sweep(made_lines(2), width_axis(), "value").figure
    assert figure.layout.xaxis.range is not None
    widest = max(End(1, 1, rows_of(f"curve {index}"), nth_style(index, "")).width for index in range(2))
    assert figure.layout.margin.r >= widest, "the widest label fits"
    short = sweep([*made_lines(1), *made_lines(2, last=100)[1:]], width_axis(), "value").figure
    assert [trace.legendgroup for trace in short.data if trace.showlegend] == ["curve 1"], "a short curve has no label"
