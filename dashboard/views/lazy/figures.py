"""Two routes to linearity: κ, kernel change and distances against the scale α and against the width m."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from dashboard.charts.style import (
    FONT_SIZE,
    GUIDE_COLOR,
    SEED_OPACITY,
    Style,
    network_style,
    nth_style,
    output_title,
    signed,
    width_label,
)
from dashboard.charts.sweep import finish
from ntk_core.experiments.lazy.result import LazyPoint, LazyRun
from ntk_core.fits import PowerLaw, fit_power_law
from ntk_core.runs import OUTCOME_WORDS, Mean, mean

Road = Literal["scale", "width"]
AXIS_TITLES: dict[Road, str] = {"scale": "scale α", "width": "width m"}
LETTERS: dict[Road, str] = {"scale": "α", "width": "m"}
START_TITLES = {"random": "random f(w₀)", "subtracted": "f(w₀) = 0", "symmetric": "f(w₀) = 0, mirrored"}


@dataclass(frozen=True)
class Measure:
    """One number per run; ``before_training`` where it does not matter how the run ended."""

    title: str
    symbol: str
    of: Callable[[LazyRun], float]
    before_training: bool = False

    def counts(self, run: LazyRun) -> bool:
        """Whether this run is part of means and exponents."""
        return self.of(run) > 0 and (run.outcome == "converged" or self.before_training)


KAPPA = Measure("κ at w₀", "κ", lambda run: run.kappa, before_training=True)
CHANGE = Measure("kernel change ΔK", "ΔK", lambda run: run.sup_change)
DISTANCE = Measure("distance ‖w − w₀‖₂", "‖w − w<sub>0</sub>‖<sub>2</sub>", lambda run: run.distance)
LARGEST = Measure("largest move ‖w − w₀‖_∞", "‖w − w<sub>0</sub>‖<sub>∞</sub>", lambda run: run.largest_distance)
RATIO = Measure(
    "curvature ‖H‖ / ‖∇F‖² at w₀",
    "‖H‖ / ‖∇F‖<sup>2</sup>",
    lambda run: run.hessian / run.squared_gradient,
    before_training=True,
)
MEASURES = {each.title: each for each in (KAPPA, CHANGE, DISTANCE, LARGEST, RATIO)}
BEHIND_F = Measure("", "ΔK of α f", lambda run: run.pre_output_change)


def outputs_of(points: Iterable[LazyPoint]) -> tuple[str, ...]:
    """Outputs that occur, in the order of the runs."""
    return tuple(dict.fromkeys(run.output for point in points for run in point.runs))


def starts_of(points: Iterable[LazyPoint]) -> tuple[str, ...]:
    """Starts that occur, in the order of the runs."""
    return tuple(dict.fromkeys(run.start for point in points for run in point.runs))


def nonlinear(points: Iterable[LazyPoint]) -> str:
    """The first output that is not linear; the first one where all are."""
    outputs = outputs_of(points)
    return next((output for output in outputs if output != "linear"), outputs[0])


def start_title(start: str) -> str:
    """A start as people read it."""
    return START_TITLES[start]


def along(points: Sequence[LazyPoint], road: Road) -> list[tuple[float, LazyPoint]]:
    """(α, point) at the smallest width, or (m, point) at scale 1, ascending."""
    if road == "width":
        return sorted(((float(p.width), p) for p in points if p.scale == 1), key=lambda pair: pair[0])
    narrow = min((point.width for point in points), default=0)
    return sorted(((p.scale, p) for p in points if p.width == narrow), key=lambda pair: pair[0])


def fitted(points: Sequence[LazyPoint], road: Road, output: str, start: str, measure: Measure) -> PowerLaw | None:
    """The power law of a measure along a road, over the runs that count."""
    runs = [(value, run) for value, point in along(points, road) for run in point.of(output, start)]
    return fit_power_law(
        [value for value, _ in runs],
        [measure.of(run) for _, run in runs],
        usable=[measure.counts(run) for _, run in runs],
    )


def against(points: Sequence[LazyPoint], road: Road, output: str, measure: Measure) -> go.Figure:
    """A measure along one road with one output, a line for each start: seeds, means, fitted exponents, log–log."""
    figure = go.Figure()
    for start in starts_of(points):
        style = nth_style(list(START_TITLES).index(start), START_TITLES[start])
        _add_line(figure, points, road, (output, start), measure, style)
    return _finish(figure, points, road, measure.symbol)


def distances(points: Sequence[LazyPoint], output: str, start: str) -> go.Figure:
    """‖w − w₀‖₂ and ‖w − w₀‖_∞ against width at α = 1, with a guide of slope −1/2."""
    figure = go.Figure()
    for index, measure in enumerate((DISTANCE, LARGEST)):
        _add_line(figure, points, "width", (output, start), measure, nth_style(index, measure.symbol))
    line = _means(points, "width", output, start, LARGEST)
    if len(line) > 1:
        (first, average), (last, _) = line[0], line[-1]
        figure.add_scatter(
            x=[first, last],
            y=[average.value, average.value * (last / first) ** -0.5],
            mode="lines+text",
            text=["", " m<sup>−1/2</sup>"],
            textposition="middle right",
            textfont={"color": GUIDE_COLOR, "size": FONT_SIZE},
            line={"color": GUIDE_COLOR, "dash": "dash", "width": 1.3},
            hoverinfo="skip",
            showlegend=False,
            name="slope −1/2",
        )
    return _finish(figure, points, "width", "how far the weights move")


def same_parameters(points: Sequence[LazyPoint], output: str, start: str, kind: str = "fully-connected") -> go.Figure:
    """ΔK against width of α f and of φ(α f) on the same path of weights, at α = 1."""
    figure = go.Figure()
    linear = network_style(kind, title="kernel of α f")
    through = network_style(kind, output, f"kernel of φ(α f), {output_title(output)}")
    _add_line(figure, points, "width", (output, start), BEHIND_F, linear)
    if output != "linear":
        _add_line(figure, points, "width", (output, start), CHANGE, through)
    return _finish(figure, points, "width", "kernel change ΔK")


def takeaways(points: Sequence[LazyPoint], output: str, start: str, measure: str) -> tuple[str, ...]:
    """The four figures in words."""
    return (
        takeaway(points, "scale", output, MEASURES[measure]),
        takeaway(points, "width", output, MEASURES[measure]),
        width_takeaway(points, output, start, (DISTANCE, LARGEST)),
        width_takeaway(points, nonlinear(points), start, (BEHIND_F, CHANGE)),
    )


def captions(points: Sequence[LazyPoint], output: str, measure: str) -> tuple[list[str], ...]:
    """What stands below the four figures."""
    return (
        caption(points, "scale", output, MEASURES[measure]),
        caption(points, "width", output, MEASURES[measure]),
        caption(points, "width", output, DISTANCE),
        caption(points, "width", nonlinear(points), CHANGE),
    )


def takeaway(points: Sequence[LazyPoint], road: Road, output: str, measure: Measure) -> str:
    """What a figure along a road says, for those who do not see it."""
    parts = []
    for start in starts_of(points):
        line = _means(points, road, output, start, measure)
        law = fitted(points, road, output, start, measure)
        if line:
            (low, first), (high, last) = line[0], line[-1]
            exponent = f", fitted exponent {signed(law.exponent)}" if law else ""
            parts.append(
                f"{START_TITLES[start]} {first.value:.2g} at {low:g} to {last.value:.2g} at {high:g}{exponent}"
            )
    shown = "; ".join(parts) or "no usable run"
    return f"{measure.title} against the {road} with {output_title(output)}: {shown}."


def width_takeaway(points: Sequence[LazyPoint], output: str, start: str, measures: Sequence[Measure]) -> str:
    """What a figure of several measures against width says, for those who do not see it."""
    parts = []
    for measure in measures:
        law = fitted(points, "width", output, start, measure)
        ends = [average.value for _, average in _means(points, "width", output, start, measure)]
        if ends:
            exponent = f", fitted exponent {signed(law.exponent)}" if law else ""
            parts.append(f"{_plain(measure.symbol)} from {ends[0]:.2g} to {ends[-1]:.2g}{exponent}")
    return f"Against width with {output_title(output)}, {START_TITLES[start]}: " + "; ".join(parts) + "."


def caption(points: Sequence[LazyPoint], road: Road, output: str, measure: Measure) -> list[str]:
    """At which width or scale, then the runs that did not converge."""
    narrow = min((point.width for point in points), default=0)
    sentences = [f"At width {width_label(narrow)}." if road == "scale" else "At scale α = 1."]
    if not measure.before_training:
        sentences += unconverged(points, road, (output,))
    return sentences


def unconverged(points: Sequence[LazyPoint], road: Road, outputs: Sequence[str]) -> list[str]:
    """One sentence per output and outcome other than converged."""
    sentences = []
    for output in outputs:
        for outcome, words in OUTCOME_WORDS.items():
            found = dict.fromkeys(
                f"{LETTERS[road]} = {value:,g} ({START_TITLES[run.start]}, seed {run.seed})"
                for value, point in along(points, road)
                for run in point.of(output)
                if run.outcome == outcome
            )
            if outcome != "converged" and found:
                sentences.append(f"Open markers, in no mean: {output_title(output)} {words} at {', '.join(found)}.")
    return sentences


def rows(points: Sequence[LazyPoint]) -> list[dict[str, object]]:
    """One row per run."""
    return [
        {
            "width m": point.width,
            "scale α": point.scale,
            "output": output_title(run.output),
            "start": START_TITLES[run.start],
            "seed": run.seed,
            "κ": run.kappa,
            "|F − y|": run.residual,
            "‖H‖": run.hessian,
            "‖∇F‖²": run.squared_gradient,
            "ΔK": run.sup_change,
            "ΔK of α f": run.pre_output_change,
            "‖w − w₀‖₂": run.distance,
            "‖w − w₀‖_∞": run.largest_distance,
            "loss": run.last_loss,
            "steps": run.num_steps,
            "η": run.learning_rate,
            "outcome": OUTCOME_WORDS[run.outcome],
        }
        for point in sorted(points, key=lambda point: (point.width, point.scale))
        for run in point.runs
    ]


def _means(
    points: Sequence[LazyPoint], road: Road, output: str, start: str, measure: Measure
) -> list[tuple[float, Mean]]:
    lines = [
        (value, mean([measure.of(run) for run in point.of(output, start) if measure.counts(run)]))
        for value, point in along(points, road)
    ]
    return [(value, average) for value, average in lines if average.count]


def _add_line(
    figure: go.Figure, points: Sequence[LazyPoint], road: Road, kind: tuple[str, str], measure: Measure, style: Style
) -> None:
    runs = [(value, run) for value, point in along(points, road) for run in point.of(*kind) if measure.of(run) > 0]
    letter, law = LETTERS[road], fitted(points, road, *kind, measure)
    figure.add_scatter(
        x=[value for value, _ in runs],
        y=[measure.of(run) for _, run in runs],
        mode="markers",
        marker={
            "color": style.color,
            "size": 7,
            "opacity": [SEED_OPACITY if measure.counts(run) else 0.9 for _, run in runs],
            "symbol": [style.symbol if measure.counts(run) else style.symbol + "-open" for _, run in runs],
        },
        customdata=[[run.seed, OUTCOME_WORDS[run.outcome]] for _, run in runs],
        hovertemplate=f"{style.title}, seed %{{customdata[0]}}<br>{letter} = %{{x:,}}<br>{measure.symbol} = %{{y:.3g}}"
        "<br>%{customdata[1]}<extra></extra>",
        legendgroup=style.title,
        showlegend=False,
        name=f"{style.title}, single seeds",
    )
    line = _means(points, road, *kind, measure)
    error = [average.standard_error if math.isfinite(average.standard_error) else 0.0 for _, average in line]
    exponent = f" ∝ {letter}<sup>{signed(law.exponent)} ± {law.interval:.2f}</sup>" if law else ""
    figure.add_scatter(
        x=[value for value, _ in line],
        y=[average.value for _, average in line],
        error_y={"type": "data", "array": error, "color": style.color, "thickness": 1.5},
        mode="lines+markers",
        line={"color": style.color, "dash": style.dash, "width": 2.5},
        marker={"color": style.color, "symbol": style.symbol, "size": 9},
        legendgroup=style.title,
        hovertemplate=f"{style.title}<br>{letter} = %{{x:,}}<br>mean {measure.symbol} = %{{y:.3g}}<extra></extra>",
        name=style.title + exponent,
    )


def _finish(figure: go.Figure, points: Sequence[LazyPoint], road: Road, y_title: str) -> go.Figure:
    ticks = [value for value, _ in along(points, road)]
    labels = [width_label(int(value)) if road == "width" else f"{value:g}" for value in ticks]
    margins = [0.06, 0.2]  # the guide's label stands at the right
    span = math.log10(ticks[-1] / ticks[0]) or 1.0 if ticks else 1.0
    limits = [math.log10(ticks[0]) - margins[0] * span, math.log10(ticks[-1]) + margins[1] * span] if ticks else None
    figure.update_xaxes(type="log", title=AXIS_TITLES[road], tickvals=ticks, ticktext=labels, range=limits)
    # Not less than a decade and a half, so that a flat line looks flat.
    values = [value for trace in figure.data for value in trace.y if value is not None and value > 0]
    if values:
        low, high = math.log10(min(values)), math.log10(max(values))
        spare = max(0.0, 1.5 - (high - low)) / 2 + 0.08
        figure.update_yaxes(range=[low - spare, high + spare])
    wide = bool(values) and max(values) / min(values) > 100
    figure.update_yaxes(type="log", title=y_title, dtick=1 if wide else "D2", tickformat=".4~g")
    return finish(figure)


def _plain(symbol: str) -> str:
    return symbol.replace("<sub>", "_").replace("</sub>", "")
