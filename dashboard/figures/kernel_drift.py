"""Kernel change ΔK against width, and along training (Liu, Zhu & Belkin 2020, Fig. 1 left and right)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboard.figures.style import (
    FIGURE_HEIGHT,
    FONT_SIZE,
    GUIDE_COLOR,
    RUN_OPACITY,
    SEED_OPACITY,
    output_style,
    signed,
    width_label,
)
from ntk_core.fits import PowerLaw, fit_power_law
from ntk_core.results import OUTCOME_WORDS, DriftPoint, DriftRun, Mean, mean

GUIDE_SLOPES = {-0.5: "m<sup>−1/2</sup>", -1.0: "m<sup>−1</sup>"}
SWEPT_TITLES = {"width": "width m", "bottleneck_width": "bottleneck width m<sub>b</sub>"}
TimeAxis = Literal["step", "time"]
AXIS_TITLES: dict[TimeAxis, str] = {"step": "step", "time": "time = learning rate × step"}


def outputs_of(points: Sequence[DriftPoint]) -> tuple[str, ...]:
    """Outputs that occur, in the order of the runs."""
    return tuple(dict.fromkeys(run.output for point in points for run in point.runs))


def mean_change(point: DriftPoint, output: str) -> Mean:
    """Mean over the seeds of ΔK = sup over t of ΔK(t), of the converged runs only."""
    return mean([run.sup_change for run in point.of(output) if run.outcome == "converged" and run.sup_change > 0])


def fitted(points: Sequence[DriftPoint], output: str) -> PowerLaw | None:
    """The power law ΔK ∝ m^exponent through every converged run of this output."""
    runs = [(point.width, run) for point in points for run in point.of(output)]
    return fit_power_law(
        [width for width, _ in runs],
        [run.sup_change for _, run in runs],
        usable=[run.outcome == "converged" for _, run in runs],
    )


def change_against_width(points: Sequence[DriftPoint], widths: Sequence[int] = (), swept: str = "width") -> go.Figure:
    """ΔK = sup over t of ‖K(t) − K(0)‖ / ‖K(0)‖ against width, log–log.

    Seeds are faint, those that did not converge open; the line is the mean of the converged ones, with a band of one
    standard error. ``widths`` are those of the whole sweep, so that the axis stays while points arrive; ``swept`` says
    what they are.
    """
    points = sorted(points, key=lambda point: point.width)
    figure = go.Figure()
    for output in outputs_of(points):
        _add_output(figure, points, output)
    shown = sorted({*widths, *(point.width for point in points)})
    _add_guides(figure, points, shown)
    ticks = _spaced(shown)
    figure.update_xaxes(
        type="log",
        title=SWEPT_TITLES[swept],
        tickvals=ticks,
        ticktext=[width_label(width) for width in ticks],
        range=_log_range(shown),
    )
    values = [run.sup_change for point in points for run in point.runs if run.sup_change > 0]
    # One tick a decade, more where the values span less than a decade and a half.
    dtick = 1 if values and max(values) / min(values) > 30 else "D2"
    figure.update_yaxes(type="log", title="kernel change ΔK", dtick=dtick, tickformat=".4~g")
    return _finish(figure)


def change_against_time(point: DriftPoint, axis: TimeAxis = "step", loss_threshold: float | None = None) -> go.Figure:
    """ΔK(t) of every run of one width, above its training loss; ends are filled where the run converged, else open.

    Step 0, where ΔK = 0, has no place on the logarithmic axis.
    """
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.62, 0.38])
    for output in outputs_of([point]):
        style = output_style(output)
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
    return _finish(figure)


def width_rows(points: Sequence[DriftPoint]) -> list[dict[str, object]]:
    """One row a width and output: what the mean line shows."""
    return [
        {
            "width m": point.width,
            "output": output_style(output).title,
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


def time_rows(point: DriftPoint) -> list[dict[str, object]]:
    """One row a run and recorded step of one width."""
    return [
        {
            "output": output_style(run.output).title,
            "seed": run.seed,
            "step": step,
            "time": run.learning_rate * step,
            "ΔK(t)": change,
            "loss": loss,
        }
        for run in point.runs
        for step, change, loss in _records(run)
    ]


def takeaway(points: Sequence[DriftPoint]) -> str:
    """What the figure against width says, in one sentence an output, for those who do not see it."""
    if not points:
        return "Kernel change against width: no point yet."
    low, high = min(point.width for point in points), max(point.width for point in points)
    sentences = []
    for output in outputs_of(points):
        law, title = fitted(points, output), output_style(output).title
        ends = [mean_change(point, output).value for point in points if point.width in (low, high)]
        if law is None or not all(map(math.isfinite, ends)):
            sentences.append(f"{title}: too few converged runs for a trend.")
        else:
            sentences.append(f"{title}: from {ends[0]:.2g} to {ends[-1]:.2g}, fitted exponent {signed(law.exponent)}.")
    return f"Kernel change against width from {low:,} to {high:,}. " + " ".join(sentences)


def time_takeaway(point: DriftPoint) -> str:
    """What the figure along training says, for those who do not see it."""
    ends = [
        f"{output_style(output).title} {sum(changes) / len(changes):.2g}"
        for output in outputs_of([point])
        if (changes := [run.change[-1] for run in point.of(output) if math.isfinite(run.change[-1])])
    ]
    return (
        f"Kernel change and loss along training at width {point.width:,}. Mean kernel change at the end: "
        + ", ".join(ends)
        + "."
    )


def caption(points: Sequence[DriftPoint]) -> list[str]:
    """The learning rates used, then which runs did not converge, and why."""
    sharing: dict[str, list[str]] = {}
    for output in outputs_of(points):
        rates = rate_words(run for point in points for run in point.of(output))
        sharing.setdefault(rates, []).append(output_style(output).title)
    listed = "; ".join(f"{' and '.join(titles)} {rates}" for rates, titles in sharing.items())
    return [f"Learning rate η used: {listed}.", *unconverged_sentences(points)]


def unconverged_sentences(points: Sequence[DriftPoint]) -> list[str]:
    """One sentence an output and outcome other than converged: at which widths, which seeds."""
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
                sentences.append(f"Open markers: {output_style(output).title} {words} at {', '.join(listed)}.")
    return sentences


def rate_words(runs: Iterable[DriftRun]) -> str:
    """The learning rates used, as one number or a range: ``0.51–0.63``."""
    rates = [run.learning_rate for run in runs]
    low, high = f"{min(rates):.3g}", f"{max(rates):.3g}"
    return low if low == high else f"{low}–{high}"


def _add_output(figure: go.Figure, points: Sequence[DriftPoint], output: str) -> None:
    style = output_style(output)
    line = [(point.width, average) for point in points if (average := mean_change(point, output)).count]
    lower = [(m, max(a.value - a.standard_error, a.value * 1e-3)) for m, a in line if math.isfinite(a.standard_error)]
    upper = [(m, a.value + a.standard_error) for m, a in line if math.isfinite(a.standard_error)]
    if lower:
        around = upper + lower[::-1]
        figure.add_scatter(
            x=[m for m, _ in around],
            y=[value for _, value in around],
            fill="toself",
            fillcolor=style.band,
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            legendgroup=output,
            showlegend=False,
            name=f"{style.title}, ± standard error",
        )
    runs = [(point.width, run) for point in points for run in point.of(output) if run.sup_change > 0]
    figure.add_scatter(
        x=[width for width, _ in runs],
        y=[run.sup_change for _, run in runs],
        mode="markers",
        marker={
            "color": style.color,
            "size": 7,
            "opacity": [SEED_OPACITY if run.outcome == "converged" else 0.9 for _, run in runs],
            "symbol": [_symbol(style.symbol, run) for _, run in runs],
        },
        customdata=[[run.seed, OUTCOME_WORDS[run.outcome], run.learning_rate] for _, run in runs],
        hovertemplate=f"{style.title}, seed %{{customdata[0]}}<br>m = %{{x:,}}<br>ΔK = %{{y:.3g}}<br>"
        "η = %{customdata[2]:.3g}<br>%{customdata[1]}<extra></extra>",
        legendgroup=output,
        showlegend=not line,
        name=f"{style.title}, single seeds",
    )
    if line:
        figure.add_scatter(
            x=[width for width, _ in line],
            y=[average.value for _, average in line],
            mode="lines+markers",
            line={"color": style.color, "dash": style.dash, "width": 2.5},
            marker={"color": style.color, "symbol": style.symbol, "size": 9},
            customdata=[[_plus_minus(average), average.count] for _, average in line],
            hovertemplate=f"{style.title}<br>m = %{{x:,}}<br>ΔK = %{{y:.3g}}%{{customdata[0]}}<br>"
            "mean of %{customdata[1]} converged seeds<extra></extra>",
            legendgroup=output,
            name=_legend(style.title, fitted(points, output)),
        )


def _add_run(figure: go.Figure, run: DriftRun, axis: TimeAxis, whole: dict[str, Any]) -> None:
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


def _add_guides(figure: go.Figure, points: Sequence[DriftPoint], shown: Sequence[int]) -> None:
    """Dashed lines of slope −1/2 and −1 from the first mean of the output whose kernel change falls fastest."""
    laws = {output: law for output in outputs_of(points) if (law := fitted(points, output)) is not None}
    if not laws:
        return
    steepest = min(laws, key=lambda output: laws[output].exponent)
    line = [(point.width, average.value) for point in points if (average := mean_change(point, steepest)).count]
    (first, start), last = line[0], shown[-1]
    for slope, label in GUIDE_SLOPES.items():
        end = start * (last / first) ** slope
        figure.add_scatter(
            x=[first, last],
            y=[start, end],
            mode="lines+text",
            text=["", "\u2002" + label],
            textposition="middle right",
            textfont={"color": GUIDE_COLOR, "size": FONT_SIZE},
            line={"color": GUIDE_COLOR, "dash": "dash", "width": 1.3},
            hoverinfo="skip",
            showlegend=False,
            name=f"slope {signed(slope, 1)}",
        )


def _legend(title: str, law: PowerLaw | None) -> str:
    return title if law is None else f"{title} ∝ m<sup>{signed(law.exponent)} ± {law.interval:.2f}</sup>"


def _plus_minus(average: Mean) -> str:
    return f" ± {average.standard_error:.2g}" if math.isfinite(average.standard_error) else ""


def _symbol(symbol: str, run: DriftRun) -> str:
    return symbol if run.outcome == "converged" else symbol + "-open"


def _records(run: DriftRun) -> Iterable[tuple[int, float, float]]:
    return zip(run.steps, run.change, run.loss, strict=True)


def _spaced(widths: Sequence[int], most: int = 9) -> list[int]:
    """The widths, thinned where their labels would overlap on a logarithmic axis."""
    if not widths:
        return []
    gap = math.log(widths[-1] / widths[0]) / most
    kept: list[int] = []
    for width in widths:
        if not kept or math.log(width / kept[-1]) >= gap:
            kept.append(width)
    return kept


def _log_range(widths: Sequence[int]) -> list[float] | None:
    if not widths:
        return None
    low, high = math.log10(widths[0]), math.log10(widths[-1])
    margin = 0.06 * (high - low) or 0.3
    return [low - margin, high + 3 * margin]  # the guides' labels stand at the right


def _finish(figure: go.Figure) -> go.Figure:
    # uirevision keeps a zoom while points arrive; the legend below leaves the width to the data, also on a phone.
    font = {"size": FONT_SIZE}
    figure.update_xaxes(tickfont=font, title_font=font)
    figure.update_yaxes(tickfont=font, title_font=font)
    return figure.update_layout(
        height=FIGURE_HEIGHT,
        uirevision="keep",
        hovermode="closest",
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        legend={
            "orientation": "h",
            "yanchor": "top",
            "y": -0.16,
            "x": 0,
            "xanchor": "left",
            "font": font,
        },
    )
