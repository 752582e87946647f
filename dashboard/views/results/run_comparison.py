"""Several runs of one experiment in one figure: one color, dash and symbol a run, on any of its measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from dashboard.charts.style import RUN_OPACITY, nth_style
from dashboard.charts.sweep import finish, finish_sweep
from ntk_core.runs import Mean, ResultValue, mean

Row = dict[str, Any]
Runs = Sequence[tuple[str, ResultValue]]


def _every(_row: Row, _result: ResultValue) -> bool:
    return True


def _unscaled(row: Row, _result: ResultValue) -> bool:
    return row["scale"] == 1


def _narrowest(row: Row, result: ResultValue) -> bool:
    return row["width"] == result.spec.widths[0]  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Axis:
    """What measures are drawn against.

    Attributes:
        keep: the rows that lie on it.
        along_time: whether every seed is a curve of its own.
    """

    column: str
    title: str
    keep: Callable[[Row, ResultValue], bool] = _every
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
        ("network", "parameterization"),
    ),
    "optimization": Comparison(
        (_WIDTH,),
        {**_CHANGE, "min_eigenvalue": "smallest λ_min on the path", "pl_constant": "PL* constant", "steps": "steps"},
        ("output", "rate"),
    ),
    "lazy": Comparison(
        (Axis("scale", "scale α", _narrowest), Axis("width", "width m", _unscaled)),
        {"sup_change": "kernel change ΔK", "kappa": "κ", "distance": "‖w − w₀‖₂", "largest_distance": "‖w − w₀‖_∞"},
        ("output", "start"),
    ),
    "early_time": Comparison((Axis("step", "step", along_time=True),), _TRAINED, _EARLY_LINES),
}
_EARLY_KERNELS = {
    swept: Comparison((Axis(swept, title),), _KERNELS, ("activation",))
    for swept, title in (("width", "width m"), ("input_dim", "dimension d"))
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


def overlay(runs: Runs, axis: Axis, measure: str, line: tuple[Any, ...]) -> go.Figure:
    """The mean of one measure over the converged seeds of each run, its standard error, and the seeds left out."""
    how, figure = comparison_of(runs[0][1]), go.Figure()
    values: list[float] = []
    for index, (label, result) in enumerate(runs):
        rows = [row for row in _rows_on(result, how, axis, line) if _is_number(row.get(measure))]
        values += [row[measure] for row in rows]
        style = nth_style(index, label)
        shared: dict[str, Any] = {
            "legendgroup": label,
            "line": {"color": style.color, "dash": style.dash, "width": 2.5},
        }
        if axis.along_time:
            for number, seed in enumerate(dict.fromkeys(row["seed"] for row in rows)):
                of_seed = [row for row in rows if row["seed"] == seed]
                figure.add_scatter(
                    x=[row[axis.column] for row in of_seed], y=[row[measure] for row in of_seed], mode="lines",
                    opacity=RUN_OPACITY, name=label, showlegend=number == 0, hovertext=f"{label}, seed {seed}",
                    **shared,
                )  # fmt: skip
            continue
        means = _means(rows, axis, measure)
        figure.add_scatter(
            x=list(means), y=[each.value for each in means.values()], mode="lines+markers", name=label,
            marker={"color": style.color, "symbol": style.symbol, "size": 9},
            error_y={"array": [each.standard_error if each.count > 1 else 0 for each in means.values()], "width": 3},
            hovertemplate=f"{label}<br>{axis.title} = %{{x:,}}<br>%{{y:.3g}}<extra></extra>", **shared,
        )  # fmt: skip
        left_out = [row for row in rows if not _counts(row)]
        figure.add_scatter(
            x=[row[axis.column] for row in left_out], y=[row[measure] for row in left_out], mode="markers",
            marker={"color": style.color, "symbol": style.symbol + "-open", "size": 8}, showlegend=not means,
            legendgroup=label, name=label, hovertemplate=f"{label}, did not converge<br>%{{y:.3g}}<extra></extra>",
        )  # fmt: skip
    positions = sorted({row[axis.column] for _, result in runs for row in _rows_on(result, how, axis, line)})
    title = how.measures[measure]
    if axis.along_time or not values or min(values) <= 0 or (positions and positions[0] <= 0):
        figure.update_xaxes(title=axis.title)
        figure.update_yaxes(title=title, type="log" if values and min(values) > 0 else "linear")
        return finish(figure)
    return finish_sweep(figure, positions, axis.title, title, values)


def table(runs: Runs, axis: Axis, measure: str, line: tuple[Any, ...]) -> list[dict[str, object]]:
    """The numbers of :func:`overlay`, one row per run and position."""
    how = comparison_of(runs[0][1])
    found: list[dict[str, object]] = []
    for label, result in runs:
        rows = [row for row in _rows_on(result, how, axis, line) if _is_number(row.get(measure))]
        means = _means(rows, axis, measure)
        for position in dict.fromkeys(row[axis.column] for row in rows):
            average = means.get(position)
            here = [row for row in rows if row[axis.column] == position]
            found.append(
                {
                    "run": label,
                    axis.column: position,
                    measure: average.value if average else None,
                    "standard_error": average.standard_error if average else None,
                    "seeds": average.count if average else 0,
                    "did not converge": sum(not _counts(row) for row in here),
                }
            )
    return found


def takeaway(runs: Runs, axis: Axis, measure: str, line: tuple[Any, ...]) -> str:
    """What the figure shows, as a sentence for those who do not see it."""
    how = comparison_of(runs[0][1])
    parts = []
    for label, result in runs:
        means = _means(_rows_on(result, how, axis, line), axis, measure)
        if means:
            (first, at_first), *_, (last, at_last) = [*means.items(), *list(means.items())[-1:]]
            parts.append(f"{label}: {at_first.value:.3g} at {first:g}, {at_last.value:.3g} at {last:g}")
        else:
            parts.append(f"{label}: no converged run")
    title = how.measures[measure]
    return f"{title[0].upper()}{title[1:]} against {axis.title}. {'; '.join(parts)}."


def _rows_on(result: ResultValue, how: Comparison, axis: Axis, line: tuple[Any, ...]) -> list[Row]:
    return [
        row
        for row in result.rows()
        if tuple(row[name] for name in how.lines) == line and axis.keep(row, result) and _is_number(row[axis.column])
    ]


def _means(rows: Sequence[Row], axis: Axis, measure: str) -> dict[float, Mean]:
    """Position → mean over the seeds that count."""
    at: dict[float, list[float]] = {}
    for row in rows:
        if _counts(row) and _is_number(row.get(measure)):
            at.setdefault(row[axis.column], []).append(float(row[measure]))
    return {position: mean(at[position]) for position in sorted(at)}


def _counts(row: Row) -> bool:
    return row.get("outcome") in (None, "converged") and row.get("converged") in (None, True)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
