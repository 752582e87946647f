"""Several runs of one experiment in one figure: one color, dash and symbol per run, on any of its measures."""

import math
from collections.abc import Sequence
from typing import Any

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import ComparedAxis, Comparison, Values, comparison_of
from linearity_lab.charts.lines import Axis as SweepAxis
from linearity_lab.charts.lines import Dot, Line
from linearity_lab.charts.style import Style, network_style, nth_style
from linearity_lab.charts.sweep import left_out, mean_rows, sweep, takeaway
from linearity_lab.charts.training import Curve, Row, along_training
from ntk_core.runs import ResultValue

Runs = Sequence[tuple[str, ResultValue]]
MOST_LINES = 8


def lines_of(runs: Runs, how: Comparison) -> list[tuple[Any, ...]]:
    """The lines that the most runs have come first."""
    found: dict[tuple[Any, ...], int] = {}
    for _, result in runs:
        for line in dict.fromkeys(tuple(row[name] for name in how.lines) for row in result.rows()):
            found[line] = found.get(line, 0) + 1
    return sorted(found, key=lambda line: -found[line])


def measures_of(runs: Runs, how: Comparison) -> list[str]:
    """The measures that some run has."""
    rows = [row for _, result in runs for row in result.rows()]
    return [name for name in how.measures if any(_is_number(row.get(name)) for row in rows)]


def every_line(runs: Runs, how: Comparison, axis: ComparedAxis) -> list[tuple[str, ResultValue, tuple[Any, ...]]]:
    """(title, result, line) of each line of each run, at most ``MOST_LINES``; runs of one line keep their labels."""
    found = []
    for label, result in runs:
        own = [line for line in lines_of([(label, result)], how) if _rows_on(result, how, axis, line)]
        found += [(f"{label}, {how.line_words(line)}" if len(own) > 1 else label, result, line) for line in own]
    return found[:MOST_LINES]


def overlay(runs: Runs, axis: ComparedAxis, measure: str, line: tuple[Any, ...] | None) -> Chart:
    """One measure of each run: means over the converged seeds, or one curve per seed along training.

    Without a ``line`` those of every run, each with its name.
    """
    how = comparison_of(runs[0][1].spec)
    drawn = every_line(runs, how, axis) if line is None else [(label, result, line) for label, result in runs]
    styles = _styles(drawn, how)
    found = [
        (
            style,
            [row for row in _rows_on(result, how, axis, own) if _is_number(row.get(measure))],
        )
        for style, (_, result, own) in zip(styles, drawn, strict=True)
    ]
    title = how.measures[measure]
    values = [row[measure] for _, rows in found for row in rows]
    is_log = bool(values) and min(values) > 0
    lines = [
        Line(
            style,
            [_dot(row, axis.column, measure) for row in rows],
            fit=not axis.along_time,
        )
        for style, rows in found
    ]
    swept = SweepAxis(axis.title, axis.letter, column=axis.column)
    if not axis.along_time:
        return sweep(lines, swept, title, measure, is_log=is_log, of="run", name="compared", with_takeaway=True)
    curves = [
        Curve(style, [r[axis.column] for r in own], [r[measure] for r in own], title, seed)
        for style, rows in found
        for seed in dict.fromkeys(row["seed"] for row in rows)
        for own in [[row for row in rows if row["seed"] == seed]]
    ]
    figure = along_training(curves, (Row(title, "log" if is_log else "linear"),), axis.title, log_x=False)
    words = takeaway(lines, swept, title)
    rows = mean_rows(lines, swept, measure, "run")
    return Chart(figure, words, rows, [words, *left_out(lines, swept)], "compared")


def _styles(drawn: Sequence[tuple[str, ResultValue, tuple[Any, ...]]], how: Comparison) -> list[Style]:
    """Style different networks as everywhere; runs of one network get the styles of runs."""
    networks = [
        (
            getattr(getattr(result.spec, "architecture", None), "kind", ""),
            dict(zip(how.lines, own, strict=False)).get("output", "linear"),
        )
        for _, result, own in drawn
    ]
    if len(set(networks)) < 2 or ("", "linear") in networks:
        return [nth_style(index, label, "run") for index, (label, *_) in enumerate(drawn)]
    return [
        network_style(*network, label, networks[:index].count(network))
        for index, (network, (label, *_)) in enumerate(zip(networks, drawn, strict=True))
    ]


def _rows_on(result: ResultValue, how: Comparison, axis: ComparedAxis, line: tuple[Any, ...]) -> list[Values]:
    return [
        row
        for row in result.rows()
        if tuple(row[name] for name in how.lines) == line and axis.keep(row, result) and _is_number(row[axis.column])
    ]


def _dot(row: Values, column: str, measure: str) -> Dot:
    why = "" if _counts(row) else "did not converge"
    outcome = row.get("outcome") if why and row.get("outcome") != "converged" else ""
    return Dot(row[column], row[measure], row.get("seed", 0), why, outcome=outcome or "")


def _counts(row: Values) -> bool:
    return row.get("outcome") in (None, "converged") and row.get("converged") in (None, True)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
