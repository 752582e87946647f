"""One number per run against width, log–log: seeds, means, bands, fitted exponents and guide slopes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import plotly.graph_objects as go

from dashboard.charts.style import FIGURE_HEIGHT, FONT_SIZE, GUIDE_COLOR, SEED_OPACITY, Style, signed, width_label
from ntk_core.experiments.kernel_change.result import KernelChangeRun
from ntk_core.fits import PowerLaw, fit_power_law
from ntk_core.runs import OUTCOME_WORDS, Mean, mean


def _change_note(run: KernelChangeRun) -> str:
    return f"η = {run.learning_rate:.3g}<br>{OUTCOME_WORDS[run.outcome]}"


GUIDE_SLOPES = {-0.5: "m<sup>−1/2</sup>", -1.0: "m<sup>−1</sup>"}


@dataclass(frozen=True)
class Measure:
    """One number per run, drawn against width.

    Attributes:
        name: for keys and files.
        of: the number; NaN where a run has none.
        converged_only: whether runs that did not converge are left out of means and exponents.
        note: what the hover of a run says beside the number.
        converged: whether a run converged.
    """

    name: str
    symbol: str
    of: Callable[[Any], float]
    converged_only: bool = True
    note: Callable[[Any], str] = _change_note
    converged: Callable[[Any], bool] = lambda run: run.outcome == "converged"

    def counts(self, run: Any) -> bool:
        """Whether this run is part of means and exponents."""
        return self.of(run) > 0 and (self.converged(run) or not self.converged_only)


class SweepPoint(Protocol):
    """A point of one width, and its runs with one output (or of one line of another kind)."""

    @property
    def width(self) -> int: ...

    def of(self, output: str) -> Sequence[Any]: ...


CHANGE = Measure("change", "ΔK", lambda run: run.sup_change)


def mean_change(point: SweepPoint, output: str, measure: Measure = CHANGE) -> Mean:
    """Mean over the seeds of ΔK = sup over t of ΔK(t), of the converged runs only, or of another measure."""
    return mean([measure.of(run) for run in point.of(output) if measure.counts(run)])


def fitted(points: Sequence[SweepPoint], output: str, measure: Measure = CHANGE) -> PowerLaw | None:
    """The power law ΔK ∝ m^exponent through every run of this output that counts."""
    runs = [(point.width, run) for point in points for run in point.of(output)]
    return fit_power_law(
        [width for width, _ in runs],
        [measure.of(run) for _, run in runs],
        usable=[measure.counts(run) for _, run in runs],
    )


def mean_line(points: Sequence[SweepPoint], output: str, measure: Measure = CHANGE) -> list[tuple[int, Mean]]:
    """(width, mean) of every point with runs that count."""
    return [(point.width, average) for point in points if (average := mean_change(point, output, measure)).count]


def add_sweep(
    figure: go.Figure,
    points: Sequence[SweepPoint],
    output: str,
    style: Style,
    measure: Measure = CHANGE,
    group: str = "",
) -> None:
    """Seeds, mean, band of one standard error and fitted exponent of one output, in this style.

    ``group`` ties them together in the legend; the output when empty.
    """
    line = mean_line(points, output, measure)
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
            legendgroup=group or output,
            showlegend=False,
            name=f"{style.title}, ± standard error",
        )
    runs = [(point.width, run) for point in points for run in point.of(output) if measure.of(run) > 0]
    figure.add_scatter(
        x=[width for width, _ in runs],
        y=[measure.of(run) for _, run in runs],
        mode="markers",
        marker={
            "color": style.color,
            "size": 7,
            "opacity": [SEED_OPACITY if measure.counts(run) else 0.9 for _, run in runs],
            "symbol": [style.symbol if measure.counts(run) else style.symbol + "-open" for _, run in runs],
        },
        customdata=[[run.seed, measure.note(run)] for _, run in runs],
        hovertemplate=f"{style.title}, seed %{{customdata[0]}}<br>m = %{{x:,}}<br>{measure.symbol} = %{{y:.3g}}<br>"
        "%{customdata[1]}<extra></extra>",
        legendgroup=group or output,
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
            hovertemplate=f"{style.title}<br>m = %{{x:,}}<br>{measure.symbol} = %{{y:.3g}}%{{customdata[0]}}<br>"
            f"mean of %{{customdata[1]}} {'converged ' * measure.converged_only}seeds<extra></extra>",
            legendgroup=group or output,
            name=_legend(style.title, fitted(points, output, measure)),
        )


def add_guides(
    figure: go.Figure, line: Sequence[tuple[int, Mean]], last: int, slopes: Sequence[float] = tuple(GUIDE_SLOPES)
) -> None:
    """Dashed lines of these slopes from the first mean of a line to the width ``last``."""
    first, start = line[0][0], line[0][1].value
    for slope in slopes:
        end = start * (last / first) ** slope
        figure.add_scatter(
            x=[first, last],
            y=[start, end],
            mode="lines+text",
            text=["", "\u2002" + GUIDE_SLOPES[slope]],
            textposition="middle right",
            textfont={"color": GUIDE_COLOR, "size": FONT_SIZE},
            line={"color": GUIDE_COLOR, "dash": "dash", "width": 1.3},
            hoverinfo="skip",
            showlegend=False,
            name=f"slope {signed(slope, 1)}",
        )


def finish_sweep(
    figure: go.Figure, widths: Sequence[int], x_title: str, y_title: str, values: Sequence[float]
) -> go.Figure:
    """Log–log axes with ticks at the widths, for ``values``."""
    ticks = _spaced(widths)
    figure.update_xaxes(
        type="log",
        title=x_title,
        tickvals=ticks,
        ticktext=[width_label(width) for width in ticks],
        range=_log_range(widths),
    )
    # One tick per decade, more where the values span less than a decade and a half.
    dtick = 1 if values and max(values) / min(values) > 30 else "D2"
    figure.update_yaxes(type="log", title=y_title, dtick=dtick, tickformat=".4~g")
    return finish(figure)


def finish(figure: go.Figure) -> go.Figure:
    """Fonts, legend and height that all figures share."""
    # uirevision keeps a zoom while points arrive; the legend below leaves the width to the data, also on a phone.
    font = {"size": FONT_SIZE}
    figure.update_xaxes(tickfont=font, title_font=font)
    figure.update_yaxes(tickfont=font, title_font=font)
    return figure.update_layout(
        height=FIGURE_HEIGHT,
        uirevision="keep",
        hovermode="closest",
        modebar={"color": GUIDE_COLOR},  # what is drawn by default is too pale to be seen on a projector
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        legend={
            "orientation": "h",
            # At the foot of the figure, however many rows it has: the axis and its title keep clear of it.
            "yref": "container",
            "yanchor": "bottom",
            "y": 0,
            "maxheight": 0.6,  # beyond, it scrolls
            "x": 0,
            "xanchor": "left",
            "font": font,
        },
    )


def _legend(title: str, law: PowerLaw | None) -> str:
    return title if law is None else f"{title} ∝ m<sup>{signed(law.exponent)} ± {law.interval:.2f}</sup>"


def _plus_minus(average: Mean) -> str:
    return f" ± {average.standard_error:.2g}" if math.isfinite(average.standard_error) else ""


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
