"""Kernel change ΔK against width, and along training (Liu, Zhu & Belkin 2020, Fig. 1 left and right)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.charts.style import FONT_SIZE, GUIDE_COLOR, RUN_OPACITY, network_style, output_title, signed, width_label
from dashboard.charts.sweep import add_guides, add_sweep, finish, finish_sweep, fitted, mean_change, mean_line
from ntk_core.experiments.dynamics.result import DynamicsRun
from ntk_core.experiments.kernel_change.result import KernelChangePoint, KernelChangeRun, KernelChanges
from ntk_core.runs import OUTCOME_WORDS

SWEPT_TITLES = {"width": "width m", "bottleneck_width": "bottleneck width m<sub>b</sub>"}
TimeAxis = Literal["step", "time"]
AXIS_TITLES: dict[TimeAxis, str] = {"step": "step", "time": "time = learning rate × step"}


def outputs_of(points: Sequence[KernelChanges]) -> tuple[str, ...]:
    """Outputs that occur, in the order of the runs."""
    return tuple(dict.fromkeys(run.output for point in points for run in point.runs))


def change_against_width(
    points: Sequence[KernelChangePoint], widths: Sequence[int] = (), swept: str = "width", kind: str = "fully-connected"
) -> go.Figure:
    """ΔK = sup over t of ‖K(t) − K(0)‖ / ‖K(0)‖ against width, log–log.

    Seeds are faint, those that did not converge open; the line is the mean of the converged ones, with a band of one
    standard error. ``widths`` are those of the whole sweep, so that the axis stays while points arrive; ``swept`` says
    what they are, ``kind`` of which architecture the network is.
    """
    points = sorted(points, key=lambda point: point.width)
    figure = go.Figure()
    for output in outputs_of(points):
        add_sweep(figure, points, output, network_style(kind, output))
    shown = sorted({*widths, *(point.width for point in points)})
    laws = {output: law for output in outputs_of(points) if (law := fitted(points, output)) is not None}
    if laws:  # from the first mean of the output whose kernel change falls fastest
        add_guides(figure, mean_line(points, min(laws, key=lambda output: laws[output].exponent)), shown[-1])
    values = [run.sup_change for point in points for run in point.runs if run.sup_change > 0]
    return finish_sweep(figure, shown, SWEPT_TITLES[swept], "kernel change ΔK", values)


def change_against_time(
    point: KernelChangePoint,
    axis: TimeAxis = "step",
    loss_threshold: float | None = None,
    kind: str = "fully-connected",
) -> go.Figure:
    """ΔK(t) of every run of one width, above its training loss; ends are filled where the run converged, else open.

    Step 0, where ΔK = 0, has no place on the logarithmic axis.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.62, 0.38])
    for output in outputs_of([point]):
        style = network_style(kind, output)
        line = {"color": style.color, "dash": style.dash, "width": 2}
        # The entry in the legend, whole, since a run has its marker only where it ends.
        marker = {"color": style.color, "symbol": style.symbol, "size": 9}
        whole = {"mode": "lines+markers", "line": line, "marker": marker, "legendgroup": output, "name": style.title}
        figure.add_scatter(x=[None], y=[None], **whole)
        for run in point.of(output):
            _add_run(figure, run, axis, {**whole, "showlegend": False, "opacity": RUN_OPACITY})
    if loss_threshold is not None:
        label = {"text": "threshold", "font": {"color": GUIDE_COLOR, "size": FONT_SIZE}, "textposition": "start"}
        line = {"color": GUIDE_COLOR, "dash": "dash", "width": 1.3}
        figure.add_shape(
            type="line",
            xref="x2 domain",
            yref="y2",
            x0=0,
            x1=1,
            y0=loss_threshold,
            y1=loss_threshold,
            line=line,
            label=label,
        )
    figure.update_xaxes(type="log", dtick=1, tickformat=",~g")
    figure.update_xaxes(title=AXIS_TITLES[axis], row=2, col=1)
    figure.update_yaxes(title="kernel change ΔK(t)", rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title="loss", type="log", dtick=1, tickformat=".4~g", row=2, col=1)
    return finish(figure)


def width_rows(points: Sequence[KernelChangePoint]) -> list[dict[str, object]]:
    """One row per width and output: what the mean line shows."""
    return [
        {
            "width m": point.width,
            "output": output_title(output),
            "mean ΔK": average.value,
            "standard error": average.standard_error,
            "converged runs": average.count,
            "all runs": len(point.of(output)),
            "learning rate η": rate_words(point.of(output)),
        }
        for point in sorted(points, key=lambda point: point.width)
        for output in outputs_of([point])
        for average in [mean_change(point, output)]
    ]


def time_rows(point: KernelChangePoint) -> list[dict[str, object]]:
    """One row per run and recorded step of one width."""
    return [
        {
            "output": output_title(run.output),
            "seed": run.seed,
            "step": step,
            "time": run.learning_rate * step,
            "ΔK(t)": change,
            "loss": loss,
        }
        for run in point.runs
        for step, change, loss in _records(run)
    ]


def takeaway(points: Sequence[KernelChangePoint]) -> str:
    """What the figure against width says, in one sentence per output, for those who do not see it."""
    if not points:
        return "Kernel change against width: no point yet."
    low, high = min(point.width for point in points), max(point.width for point in points)
    sentences = []
    for output in outputs_of(points):
        law, title = fitted(points, output), output_title(output)
        ends = [mean_change(point, output).value for point in points if point.width in (low, high)]
        if law is None or not all(map(math.isfinite, ends)):
            sentences.append(f"{title}: too few converged runs for a trend.")
        else:
            sentences.append(f"{title}: from {ends[0]:.2g} to {ends[-1]:.2g}, fitted exponent {signed(law.exponent)}.")
    return f"Kernel change against width from {low:,} to {high:,}. " + " ".join(sentences)


def time_takeaway(point: KernelChangePoint) -> str:
    """What the figure along training says, for those who do not see it."""
    ends = [
        f"{output_title(output)} {sum(changes) / len(changes):.2g}"
        for output in outputs_of([point])
        if (changes := [run.change[-1] for run in point.of(output) if math.isfinite(run.change[-1])])
    ]
    return (
        f"Kernel change and loss along training at width {point.width:,}. Mean kernel change at the end: "
        + ", ".join(ends)
        + "."
    )


def caption(points: Sequence[KernelChangePoint]) -> list[str]:
    """The learning rates used, then which runs did not converge, and why."""
    sharing: dict[str, list[str]] = {}
    for output in outputs_of(points):
        rates = rate_words(run for point in points for run in point.of(output))
        sharing.setdefault(rates, []).append(output_title(output))
    listed = "; ".join(f"{' and '.join(titles)} {rates}" for rates, titles in sharing.items())
    return [f"Learning rate η used: {listed}.", *unconverged_sentences(points)]


def unconverged_sentences(points: Sequence[KernelChanges]) -> list[str]:
    """One sentence per output and outcome other than converged: at which widths, which seeds."""
    sentences = []
    for output in outputs_of(points):
        for outcome, words in OUTCOME_WORDS.items():
            seeds = {
                point.width: [run.seed for run in point.of(output) if run.outcome == outcome]
                for point in sorted(points, key=lambda point: point.width)
            }
            listed = [
                f"m = {width_label(m)} (seed {', '.join(map(str, found))})" for m, found in seeds.items() if found
            ]
            if outcome != "converged" and listed:
                sentences.append(f"Open markers: {output_title(output)} {words} at {', '.join(listed)}.")
    return sentences


def rate_words(runs: Iterable[KernelChangeRun | DynamicsRun]) -> str:
    """The learning rates used, as one number or a range: ``0.51–0.63``."""
    rates = [run.learning_rate for run in runs]
    low, high = f"{min(rates):.3g}", f"{max(rates):.3g}"
    return low if low == high else f"{low}–{high}"


def _add_run(figure: go.Figure, run: KernelChangeRun, axis: TimeAxis, whole: dict[str, Any]) -> None:
    """One run in both rows, with a marker at its end."""
    factor = run.learning_rate if axis == "time" else 1
    later = [record for record in _records(run) if record[0] > 0]
    marker = {
        **whole["marker"],
        "size": [0] * (len(later) - 1) + [9],
        "symbol": _symbol(whole["marker"]["symbol"], run),
    }
    for row, words in ((1, "ΔK(t)"), (2, "loss")):
        figure.add_scatter(
            **{**whole, "marker": marker},
            x=[step * factor for step, *_ in later],
            y=[record[row] for record in later],
            hovertemplate=f"{whole['name']}, seed {run.seed}<br>{axis} %{{x:.3g}}<br>{words} %{{y:.3g}}<extra></extra>",
            row=row,
            col=1,
        )


def _symbol(symbol: str, run: KernelChangeRun) -> str:
    return symbol if run.outcome == "converged" else symbol + "-open"


def _records(run: KernelChangeRun) -> Iterable[tuple[int, float, float]]:
    return zip(run.steps, run.change, run.loss, strict=True)
