"""Several runs of one experiment in one figure: one color, dash and symbol per run, on any of its measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.charts.chart import Chart
from dashboard.charts.style import RUN_OPACITY, nth_style
from dashboard.charts.sweep import Axis as SweepAxis
from dashboard.charts.sweep import Dot, Line, left_out, mean_rows, sweep, takeaway
from dashboard.charts.training import Curve, Row, along_training
from ntk_core.runs import ResultValue

Values = dict[str, Any]
Runs = Sequence[tuple[str, ResultValue]]


def _every(_row: Values, _result: ResultValue) -> bool:
    return True


def _unscaled(row: Values, _result: ResultValue) -> bool:
    return row["scale"] == 1


def _narrowest(row: Values, result: ResultValue) -> bool:
    return row["width"] == result.spec.widths[0]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Axis:
    """What measures are drawn against.

    Attributes:
        letter: of it, in fitted exponents and sentences.
        keep: the rows that lie on it.
        along_time: whether every seed is a curve of its own.
    """

    column: str
    title: str
    letter: str = "m"
    keep: Callable[[Values, ResultValue], bool] = _every
    along_time: bool = False


@dataclass(frozen=True)
class Comparison:
    """How the runs of one experiment are compared, in the columns of their rows.

    Attributes:
        measures: column → title.
        lines: the columns that together name a line.
    """

    axes: tuple[Axis, ...]
    measures: dict[str, str]
    lines: tuple[str, ...]


_WIDTH = Axis("width", "width m")
_CHANGE = {"sup_kernel_change": "kernel change ΔK"}
_TRAINED = {
    "test_loss": "test loss",
    "linear_test_loss": "test loss of the linear model",
    "train_loss": "training loss",
    "distance": "mean squared difference to the linear model",
}
_KERNELS = {
    "difference": "‖K − K of the linear model‖",
    "naive_difference": "the same without the norm feature",
    "frobenius_difference": "the same in Frobenius norm",
    "kernel": "‖K‖",
}
_KERNEL_CHANGE = {**_CHANGE, "final_loss": "final loss", "steps": "steps"}
_EARLY_LINES = ("activation", "width", "input_dim")
COMPARISONS: dict[str, Comparison] = {
    "kernel_change": Comparison((_WIDTH,), _KERNEL_CHANGE, ("output",)),
    "architectures": Comparison((_WIDTH,), _KERNEL_CHANGE, ("network", "output")),
    "dynamics": Comparison(
        (_WIDTH,),
        {"sup_relative_difference": "difference to the linear model", **_CHANGE, "sup_distance": "sup ‖w − w₀‖"},
        ("output", "method"),
    ),
    "dag": Comparison(
        (_WIDTH, Axis("min_in_degree", "smallest in-degree")),
        {**_CHANGE, "hessian_norm": "Hessian norm ‖H‖", "smallest_eigenvalue": "λ_min of the kernel"},
        ("graph", "output"),
    ),
    "hessian": Comparison(
        (Axis("m", "width m"),),
        {"hessian_norm": "Hessian norm ‖H‖", "kernel": "kernel K(x, x)", "bound": "bound of Theorem 3.1", **_CHANGE},
        ("network",),
    ),
    "optimization": Comparison(
        (_WIDTH,),
        {**_CHANGE, "min_eigenvalue": "smallest λ_min on the path", "pl_constant": "PL* constant", "steps": "steps"},
        ("output", "rate"),
    ),
    "lazy": Comparison(
        (Axis("scale", "scale α", "α", _narrowest), Axis("width", "width m", keep=_unscaled)),
        {"sup_change": "kernel change ΔK", "kappa": "κ", "distance": "‖w − w₀‖₂", "largest_distance": "‖w − w₀‖_∞"},
        ("output", "start"),
    ),
    "early_time": Comparison((Axis("step", "step", "step", along_time=True),), _TRAINED, _EARLY_LINES),
}
_EARLY_KERNELS = {
    swept: Comparison((Axis(swept, title, letter),), _KERNELS, ("activation",))
    for swept, title, letter in (("width", "width m", "m"), ("input_dim", "dimension d", "d"))
}


def comparison_of(result: ResultValue) -> Comparison:
    """How runs like this one are compared."""
    spec: Any = result.spec
    if spec.experiment == "early_time" and spec.training.max_steps == 0:
        return _EARLY_KERNELS[spec.swept]
    return COMPARISONS[spec.experiment]


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


def overlay(runs: Runs, axis: Axis, measure: str, line: tuple[Any, ...]) -> Chart:
    """One measure of each run: means over the converged seeds, or one curve per seed along training."""
    how = comparison_of(runs[0][1])
    found = [
        (
            nth_style(index, label),
            [row for row in _rows_on(result, how, axis, line) if _is_number(row.get(measure))],
        )
        for index, (label, result) in enumerate(runs)
    ]
    title = how.measures[measure]
    values = [row[measure] for _, rows in found for row in rows]
    is_log = bool(values) and min(values) > 0
    lines = [
        Line(
            style,
            [Dot(r[axis.column], r[measure], r["seed"], "" if _counts(r) else "did not converge") for r in rows],
            fit=not axis.along_time,
        )
        for style, rows in found
    ]
    swept = SweepAxis(axis.title, axis.letter, column=axis.column)
    if not axis.along_time:
        return sweep(lines, swept, title, measure, is_log=is_log, of="run", name="compared", is_said=True)
    curves = [
        Curve(style, [r[axis.column] for r in own], [r[measure] for r in own], title, seed, opacity=RUN_OPACITY)
        for style, rows in found
        for seed in dict.fromkeys(row["seed"] for row in rows)
        for own in [[row for row in rows if row["seed"] == seed]]
    ]
    figure = along_training(curves, (Row(title, "log" if is_log else "linear"),), axis.title, log_x=False)
    words = takeaway(lines, swept, title)
    rows = mean_rows(lines, swept, measure, "run")
    return Chart(figure, words, rows, [words, *left_out(lines, swept)], "compared")


def _rows_on(result: ResultValue, how: Comparison, axis: Axis, line: tuple[Any, ...]) -> list[Values]:
    return [
        row
        for row in result.rows()
        if tuple(row[name] for name in how.lines) == line and axis.keep(row, result) and _is_number(row[axis.column])
    ]


def _counts(row: Values) -> bool:
    return row.get("outcome") in (None, "converged") and row.get("converged") in (None, True)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
