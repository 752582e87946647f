"""Early time against width or dimension: discrepancy, departure, kernels (Hu et al. 2020, Fig. 1c and 5); constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import plotly.graph_objects as go

from dashboard.charts.style import FONT_SIZE, GUIDE_COLOR, SEED_OPACITY, Style, activation_style, signed, width_label
from dashboard.charts.sweep import finish
from ntk_core.experiments.early_time.result import EarlyPoint, EarlyRun, KernelComparison
from ntk_core.fits import PowerLaw, fit_power_law
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.runs import mean

Quantity = Literal["discrepancy", "departure time"]
QUANTITIES: tuple[Quantity, ...] = ("discrepancy", "departure time")
SWEPT_TITLES = {"width": "width m", "input_dim": "input dimension d"}
_SYMBOLS = {"width": "m", "input_dim": "d"}
_NORMS: dict[str, Callable[[KernelComparison], float]] = {
    "spectral norm": lambda each: each.difference,
    "Frobenius norm": lambda each: each.frobenius_difference,
}
Values = Sequence[tuple[int, float]]


def against_swept(points: Sequence[EarlyPoint], quantity: Quantity) -> go.Figure:
    """Discrepancy over the linear phase, or departure time η·step, of every activation against what is swept."""
    points = sorted(points, key=lambda point: point.value)
    figure = go.Figure()
    for activation in _activations(points):
        style = activation_style(activation)
        _add_law(figure, measured(points, activation, quantity), style, _symbol(points), legend=style.title)
    title = {"discrepancy": "sup mean (f − f_lin)² / mean y²", "departure time": "departure time η · step"}[quantity]
    return _log_axes(figure, points, title)


def kernel_distance(points: Sequence[EarlyPoint]) -> go.Figure:
    """‖K − ψψᵀ‖ in both norms against what is swept, each as 1 at the first point, with a 1/d guide."""
    points = sorted(points, key=lambda point: point.value)
    figure = go.Figure()
    activations = dict.fromkeys(each.activation for point in points for each in point.kernels)
    for activation in activations:
        for variant, (words, norm) in enumerate(_NORMS.items()):
            style = activation_style(activation, f"{ACTIVATIONS[activation].title}, {words}", variant)
            rows = [(p.value, norm(each)) for p in points for each in p.kernels if each.activation == activation]
            start = mean([value for at, value in rows if at == rows[0][0]]).value
            _add_law(figure, [(at, value / start) for at, value in rows], style, _symbol(points), legend=style.title)
    if len(points) > 1 and points[0].swept == "input_dim":
        first, last = points[0].value, points[-1].value
        figure.add_scatter(
            x=[first, last],
            y=[1, first / last],
            mode="lines+text",
            text=["", "\u20021/d"],
            textposition="middle right",
            textfont={"color": GUIDE_COLOR, "size": FONT_SIZE},
            line={"color": GUIDE_COLOR, "dash": "dash", "width": 1.3},
            hoverinfo="skip",
            showlegend=False,
            name="1/d",
        )
    return _log_axes(figure, points, "‖K − ψψᵀ‖, 1 at the first point")


def measured(points: Sequence[EarlyPoint], activation: str, quantity: Quantity) -> list[tuple[int, float]]:
    """(value swept, quantity) of every run that has one; a network that never departs has no departure time."""
    of: dict[str, Callable[[EarlyRun], float]] = {
        "discrepancy": lambda run: run.discrepancy,
        "departure time": lambda run: run.learning_rate * (run.departure_step or math.nan),
    }
    runs = [(point.value, run) for point in points for run in point.of(activation) if run.outcome == "completed"]
    return [(value, found) for value, run in runs if math.isfinite(found := of[quantity](run)) and found > 0]


def sweep_rows(points: Sequence[EarlyPoint]) -> list[dict[str, object]]:
    """One row per point, activation and seed."""
    return [
        {
            SWEPT_TITLES[point.swept]: point.value,
            "m": point.width,
            "d": point.input_dim,
            "activation": ACTIVATIONS[run.activation].title,
            "seed": run.seed,
            "η": run.learning_rate,
            "discrepancy": run.discrepancy,
            "linear phase ends at step": run.steps[run.linear_phase],
            "departs at step": run.departure_step,
            "largest gap of losses before": run.loss_gap,
            "best linear test loss": run.optimal_test_loss,
        }
        for point in sorted(points, key=lambda point: point.value)
        for run in point.runs
    ]


def comparison_rows(points: Sequence[EarlyPoint]) -> list[dict[str, object]]:
    """One row per compared kernel."""
    return [
        {
            "m": point.width,
            "d": point.input_dim,
            "activation": ACTIVATIONS[each.activation].title,
            "seed": each.seed,
            "n": each.num_samples,
            "‖K‖": each.kernel,
            "‖ψψᵀ‖": each.linear,
            "‖K − ψψᵀ‖": each.difference,
            "without norm feature": each.naive_difference,
            "‖K − ψψᵀ‖, Frobenius": each.frobenius_difference,
        }
        for point in sorted(points, key=lambda point: point.value)
        for each in point.kernels
    ]


def constant_rows(point: EarlyPoint) -> list[dict[str, object]]:
    """One row per activation: its moments, then the weights of x/√d and of the constant feature at rate 1."""
    return [
        {
            "activation": ACTIVATIONS[name].title,
            "ζ": round(each.zeta, 4),
            "ν": round(each.nu, 4),
            "ϑ₀": round(each.theta[0], 4),
            "ϑ₁": round(each.theta[1], 4),
            "ϑ₂": round(each.theta[2], 4),
            "× x/√d": round(each.inputs, 4),
            "const.": round(each.constant, 4),
        }
        for name, each in point.constants.items()
    ]


def sweep_takeaway(points: Sequence[EarlyPoint], quantity: Quantity) -> str:
    """The fitted exponents, one sentence per activation."""
    if not points:
        return "No point yet."
    sentences = []
    for activation in _activations(points):
        found = sorted(measured(points, activation, quantity))
        law, title = _fit(found), ACTIVATIONS[activation].title
        ends = [f"{value:.2g} at {_symbol(points)} = {at:,}" for at, value in (found[0], found[-1])] if found else []
        if law is not None:
            sentences.append(f"{title}: {quantity} like {_symbol(points)} to the power {signed(law.exponent)}.")
        elif ends:
            sentences.append(f"{title}: {quantity} {' and '.join(dict.fromkeys(ends))}, too few values for a trend.")
        else:
            runs = sum(len(point.of(activation)) for point in points)
            sentences.append(f"{title}: no {quantity} in {runs} runs.")
    return " ".join(sentences)


def kernel_takeaway(points: Sequence[EarlyPoint]) -> str:
    """The exponents of both norms, in words."""
    sentences = []
    for activation in dict.fromkeys(each.activation for point in points for each in point.kernels):
        for words, norm in _NORMS.items():
            rows = [(p.value, norm(each)) for p in points for each in p.kernels if each.activation == activation]
            law = _fit(rows)
            title = f"{ACTIVATIONS[activation].title}, {words} of K − ψψᵀ"
            sentences.append(
                f"{title}: {rows[-1][1]:.3g}."
                if law is None
                else f"{title}: like {_symbol(points)} to the power {signed(law.exponent)}."
            )
    return " ".join(sentences)


def _activations(points: Sequence[EarlyPoint]) -> list[str]:
    return list(dict.fromkeys(run.activation for point in points for run in point.runs))


def _symbol(points: Sequence[EarlyPoint]) -> str:
    return _SYMBOLS[points[0].swept] if points else "m"


def _fit(rows: Values) -> PowerLaw | None:
    """The power law through at least four values: with three its interval says nothing."""
    return fit_power_law([at for at, _ in rows], [value for _, value in rows]) if len(rows) > 3 else None


def _add_law(figure: go.Figure, rows: Values, style: Style, symbol: str, legend: str) -> None:
    """Single runs faint, their means as a line, the fitted exponent in the legend."""
    if not rows:
        return
    law = _fit(rows)
    if law is not None:
        interval = f" ± {law.interval:.2f}" if math.isfinite(law.interval) else ""
        legend = f"{legend} ∝ {symbol}<sup>{signed(law.exponent)}{interval}</sup>"
    figure.add_scatter(
        x=[at for at, _ in rows],
        y=[value for _, value in rows],
        mode="markers",
        marker={"color": style.color, "symbol": style.symbol, "size": 7, "opacity": SEED_OPACITY},
        hovertemplate=f"{style.title}<br>{symbol} = %{{x:,}}<br>%{{y:.3g}}<extra></extra>",
        legendgroup=style.title,
        showlegend=False,
        name=f"{style.title}, single runs",
    )
    means = [
        (at, mean([value for where, value in rows if where == at]).value) for at in dict.fromkeys(a for a, _ in rows)
    ]
    figure.add_scatter(
        x=[at for at, _ in means],
        y=[value for _, value in means],
        mode="lines+markers",
        line={"color": style.color, "dash": style.dash, "width": 2.5},
        marker={"color": style.color, "symbol": style.symbol, "size": 9},
        hovertemplate=f"{style.title}, mean<br>{symbol} = %{{x:,}}<br>%{{y:.3g}}<extra></extra>",
        legendgroup=style.title,
        name=legend,
    )


def _log_axes(figure: go.Figure, points: Sequence[EarlyPoint], y_title: str) -> go.Figure:
    ticks = [point.value for point in points]
    figure.update_xaxes(
        type="log",
        title=SWEPT_TITLES[points[0].swept] if points else "",
        tickvals=ticks,
        ticktext=[width_label(value) for value in ticks],
    )
    values = [value for trace in figure.data if trace.mode == "markers" for value in trace.y]
    # Ticks at every digit where the values span less than a factor of four.
    dtick = "D1" if values and max(values) < 4 * min(values) else "D2"
    figure.update_yaxes(type="log", title=y_title, dtick=dtick, tickformat=".3~g")
    return finish(figure)
