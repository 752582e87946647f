"""Names at the ends of curves: apart, in order, in sight, and in the legend where there are too many."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from linearity_lab.charts.labels import (
    MOST_CURVES,
    MOST_LETTERS,
    End,
    _turned,
    rows_of,
    shifted_apart,
)
from linearity_lab.charts.lines import Dot, Line, width_axis
from linearity_lab.charts.style import nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.charts.training import Curve, Row, along_training

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
