"""The figures of the lecture: from the gallery, and two exact formulas."""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from linearity_lab.charts.axes import (
    GUIDE_FONT,
    GUIDE_LINE,
    drawn_values,
    finish,
    log_ticks,
    tick_labels,
)
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.lines import Dot, Line, width_axis
from linearity_lab.charts.style import (
    FONT_SIZE,
    GUIDE_COLOR,
    method_style,
    network_style,
    width_style,
)
from linearity_lab.charts.sweep import sweep
from linearity_lab.charts.training import Curve, Row, along_training
from linearity_lab.charts.vector import Stroke, thumbnail
from linearity_lab.experiments.dag import figures as dag
from linearity_lab.experiments.dag.point import DRAWN, DAGPoint
from linearity_lab.experiments.dynamics.frames import OUTSIDE, ball_radius, end_curves
from linearity_lab.experiments.dynamics.point import DynamicsPoint, DynamicsRun
from linearity_lab.experiments.hessian.part_figures import QUANTITIES
from linearity_lab.experiments.optimization.figures import bound_curves, slow_runs
from linearity_lab.experiments.optimization.point import OptimizationPoint
from linearity_lab.runs import OUTCOME_WORDS
from ntk_core.numbers import number, width_label

Law = Literal["signs", "normal"]
LAW_TITLES: dict[Law, str] = {"signs": "v = ±1", "normal": "v normal"}
INPUT = 1.0  # the scalar x
# max |σ''| of tanh: σ'' = −2 tanh(z) (1 − tanh² z) is largest where tanh² z = 1/3.
TANH_SMOOTHNESS = 4 / (3 * math.sqrt(3))
MOST_DRAWN = 2000
NARROWEST = 30
NORM_WIDTHS = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
NORM_SEEDS = 5


def diagonal_entries(width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return (w, H_ii) of f = Σ v_i tanh(w_i x)/√m with v = ±1 and x = 1.

    H_ii = v_i σ''(w_i x) x²/√m.

    Source: Liu, Zhu & Belkin 2020, §3.1.
    """
    draw = np.random.default_rng(seed)
    weights = draw.standard_normal(width)
    signs = draw.choice((-1.0, 1.0), width)
    slope = np.tanh(weights * INPUT)
    return weights, signs * (-2 * slope * (1 - slope**2)) * INPUT**2 / math.sqrt(width)


def kernel_entry(width: int, seed: int = 0) -> float:
    """Return K(x, x) = (x²/m) Σ σ'(w_i x)² of the same network."""
    weights, _ = diagonal_entries(width, seed)
    return float(np.mean((1 - np.tanh(weights * INPUT) ** 2) ** 2) * INPUT**2)


def diagonal(width: int) -> Chart:
    """Every diagonal entry of the Hessian over its weight, between the bounds ±β x²/√m.

    The vertical axis is that of the smallest width to be shown, so that entries are seen to shrink.
    """
    weights, entries = diagonal_entries(width)
    bound = TANH_SMOOTHNESS * INPUT**2 / math.sqrt(width)
    kernel = kernel_entry(width)
    norm = float(abs(entries).max())
    style = network_style("fully-connected")
    figure = go.Figure()
    figure.add_scatter(
        x=weights[:MOST_DRAWN],
        y=entries[:MOST_DRAWN],
        mode="markers",
        marker={"color": style.color, "size": 7 if width <= 300 else 4, "opacity": 0.7},
        text=[number(value, 3) for value in entries[:MOST_DRAWN]],
        name=f"H<sub>ii</sub> of {min(width, MOST_DRAWN):,} neurons",
        hovertemplate="w = %{x:.2f}<br>H_ii = %{text}<extra></extra>",
    )
    figure.add_scatter(
        x=[-4, 4, None, -4, 4],
        y=[bound, bound, None, -bound, -bound],
        mode="lines",
        line={"color": GUIDE_COLOR, "dash": "dash", "width": 2},
        name="± β x²/√m",
        hoverinfo="skip",
    )
    top = TANH_SMOOTHNESS * INPUT**2 / math.sqrt(NARROWEST) * 1.4  # the words are above the dots
    figure.update_xaxes(title="weight w<sub>i</sub> of a neuron", range=[-4, 4])
    figure.update_yaxes(title="its entry H<sub>ii</sub>", range=[-top, top])
    words = f"‖H‖ = {number(norm, 3)},  K(x, x) = {kernel:.2f}"
    font = {"size": FONT_SIZE + 4}
    figure.add_annotation(
        text=words, xref="paper", yref="paper", x=0.5, y=0.99, showarrow=False, font=font
    )
    rows: list[dict[str, object]] = [
        {"width m": width, "‖H‖ = max |H_ii|": norm, "β x²/√m": bound, "K(x, x)": kernel}
    ]
    alt = (
        f"Diagonal entries of the Hessian of {width:,} neurons: the largest is {number(norm, 3)}, "
        f"below {number(bound, 3)}; the kernel K(x, x) is {kernel:.2f}."
    )
    drawn = (
        [f"The first {MOST_DRAWN:,} of {width:,} neurons are drawn."] if width > MOST_DRAWN else []
    )
    return Chart(
        finish(figure), alt, rows, ["Computed on this page: σ = tanh, x = 1, one seed.", *drawn]
    )


@functools.lru_cache(maxsize=4)
def norm_dots(law: Law) -> dict[str, list[Dot]]:
    """Return ‖b‖_∞ and ‖b‖₂ by width and seed.

    Here b = ∂f/∂α = v/√m, with output weights v of this distribution.
    """
    found: dict[str, list[Dot]] = {"b_max": [], "b_norm": []}
    for width, seed in itertools.product(NORM_WIDTHS, range(NORM_SEEDS)):
        draw = np.random.default_rng(seed)
        v = draw.choice((-1.0, 1.0), width) if law == "signs" else draw.standard_normal(width)
        b = v / math.sqrt(width)
        for name, norm in (("b_max", abs(b).max()), ("b_norm", np.linalg.norm(b))):
            found[name].append(Dot(width, float(norm), seed, note="drawn on this page"))
    return found


def drawn_norms(dots: dict[str, list[Dot]], origin: str) -> Chart:
    """Fit both norms: ‖b‖_∞ scales as m^(-1/2), up to a logarithm for normal v; ‖b‖₂ stays at 1."""
    lines = [Line(QUANTITIES[name].style, found) for name, found in dots.items()]
    return sweep(lines, width_axis(), "‖∂f/∂α‖", slopes=(-0.5,), of="norm", caption=[f"{origin}."])


GRAPH_TITLES = {
    DRAWN: "two neurons of in-degree 1",
    "bottleneck-layer": "a layer of in-degree 2",
    "bottleneck-repaired": "that layer, with edges added",
}
METHOD_MARK = 14
DISTANCE_TICKS = (1, 2, 5, 10, 20, 50, 100)


def curve_and_change(
    points: Sequence[DynamicsPoint], width: int, *, with_change: bool = True
) -> Chart:
    """Draw a trained network and its linear model at one width.

    Below, ΔK(t) of every width, this one strong.
    """
    ordered = sorted(points, key=lambda point: point.width)
    point = next(each for each in ordered if each.width == width)
    run = point.runs[0]
    rows_shown = 2 if with_change else 1
    figure = make_subplots(rows=rows_shown, cols=1, vertical_spacing=0.17)
    for trace in end_curves(point, run, ("network", "linearized")):
        figure.add_trace(trace, row=1, col=1)
    figure.update_yaxes(title="f(x) at the end", row=1, col=1)
    figure.update_xaxes(title="input x", title_standoff=4, row=1, col=1)
    if with_change:
        steps = [step for each in ordered for step in each.runs[0].steps[1:]]
        for index, each in enumerate(ordered):
            title = f"ΔK(t), m = {width_label(each.width)}"
            path = each.runs[0]
            style = width_style(index, len(ordered), title)
            figure.add_scatter(
                x=path.steps[1:],
                y=path.change[1:],
                text=[number(change, 3) for change in path.change[1:]],
                mode="lines+markers",
                line={
                    "color": style.color,
                    "dash": style.dash,
                    "width": 4 if each.width == width else 1.5,
                },
                marker={"symbol": style.symbol, "size": 7 if each.width == width else 4},
                name=style.title,
                hovertemplate=f"{style.title}<br>step %{{x:,}}<br>%{{text}}<extra></extra>",
                row=2,
                col=1,
            )
        figure.update_xaxes(title="step", **log_ticks(steps, 0), row=2, col=1)
        figure.update_yaxes(title="ΔK(t)", **log_ticks(drawn_values(figure, 2)), row=2, col=1)
    changes = ", ".join(
        f"{number(each.runs[0].sup_change)} at width {each.width:,}" for each in ordered
    )
    alt = f"Network and linear model after training at width {width:,}." + (
        f" Largest kernel change: {changes}." if with_change else ""
    )
    rows: list[dict[str, object]] = [
        {
            "width m": each.width,
            "ΔK": each.runs[0].sup_change,
            "relative mean-squared difference": each.runs[0].sup_difference,
            "seed": each.runs[0].seed,
        }
        for each in ordered
    ]
    return Chart(finish(figure), alt, rows, ["One seed per width, square loss, gradient descent."])


def loss_and_change(point: OptimizationPoint, output: str, *, with_loss: bool = True) -> Chart:
    """Draw ΔK(t) of φ(f) and, below it, the loss.

    The loss has the bound of the theorem. The rate is the smallest one.
    """
    runs = slow_runs(point, output)
    style = network_style("fully-connected", output)
    curves = [
        Curve(style, run.steps, values, what, run.seed, row, width=3, is_first=index == 0)
        for index, run in enumerate(runs)
        for row, what, values in ((1, "ΔK(t)", run.change), (2, "loss", run.loss))[: 1 + with_loss]
    ]
    rows = (Row("ΔK(t)", "from 0"), Row("loss L"))[: 1 + with_loss]
    bounds = bound_curves(point, output, row=2)
    figure = along_training([*curves, *(bounds if with_loss else ())], rows, log_x=False)
    changes = ", ".join(number(run.sup_change) for run in runs)
    alt = f"Kernel change with {style.title} at width {point.width:,}: {changes}."
    if with_loss:
        ends = [
            f"{number(run.loss[0])} to {number(run.loss[-1], 1)} in {run.num_steps:,} steps"
            for run in runs
        ]
        alt += f" Loss from {', '.join(ends)}."
    table: list[dict[str, object]] = [
        {
            "seed": run.seed,
            "ΔK": run.sup_change,
            "first loss": run.loss[0],
            "last loss": run.loss[-1],
            "steps": run.num_steps,
            "μ": run.min_eigenvalue,
            "outcome": OUTCOME_WORDS[run.outcome],
        }
        for run in runs
    ]
    notes = [] if bounds else ["No ρ > 0 here: no bound is guaranteed."]
    caption = [
        f"Width {width_label(point.width)}, the smallest of three rates, {len(runs)} seeds.",
        *notes,
    ]
    return Chart(figure, alt, table, caption)


def graphs_against_width(points: Sequence[DAGPoint], graphs: Sequence[str], measure: str) -> Chart:
    """Draw ΔK (``"change"``) or ‖H‖ (``"hessian"``) of some of three graphs against width."""
    lines = dag.change_lines(points) if measure == "change" else dag.hessian_lines(points)
    shown = [
        replace(line, style=replace(line.style, title=GRAPH_TITLES[graph]))
        for (graph, _), line in lines.items()
        if graph in graphs
    ]
    title = "kernel change ΔK" if measure == "change" else "Hessian norm ‖H‖"
    return dag.against(shown, [point.width for point in points], "width", title)


def methods_in_the_plane(point: DynamicsPoint, output: str) -> Chart:
    """Draw every method as one mark: distance of its weights against its kernel change, log–log."""
    figure = go.Figure()
    listed = []
    rows: list[dict[str, object]] = []
    for method in dict.fromkeys(run.method for run in point.of(output)):
        style = method_style(method)
        runs = point.of(output, method)
        rows += [_row_of_method(style.title, run) for run in runs]
        first = runs[0]
        listed.append(f"{style.title} {number(first.sup_distance)} and {number(first.sup_change)}")
        figure.add_scatter(
            x=[run.sup_distance for run in runs],
            y=[run.sup_change for run in runs],
            text=[number(run.sup_change, 3) for run in runs],
            mode="markers",
            marker={"color": style.color, "symbol": style.symbol, "size": METHOD_MARK},
            name=style.title,
            hovertemplate=f"{style.title}<br>‖w − w₀‖₂ = %{{x:,.3~r}}<br>ΔK = "
            f"%{{text}}<extra></extra>",
        )
    radius = ball_radius(point, output)
    if radius is not None:
        words = f"{OUTSIDE:g} × as far as gradient descent"
        place = {"textposition": "end", "xanchor": "left", "yanchor": "top", "textangle": 0}
        label = {"text": words, "font": GUIDE_FONT, **place}
        at = OUTSIDE * radius
        figure.add_shape(
            type="line", yref="y domain", x0=at, x1=at, y0=0, y1=1, line=GUIDE_LINE, label=label
        )
    distances = [run.sup_distance for run in point.of(output)]
    changes = [run.sup_change for run in point.of(output)]
    ticks = {"tickvals": DISTANCE_TICKS, "ticktext": tick_labels(DISTANCE_TICKS)}
    title = "farthest ‖w − w<sub>0</sub>‖<sub>2</sub>"
    figure.update_xaxes(type="log", title=title, **ticks, range=_margins(distances))
    figure.update_yaxes(title="kernel change ΔK", **log_ticks(changes), range=_margins(changes))
    alt = (
        f"Distance of the weights and kernel change at width {point.width:,}: {'; '.join(listed)}."
    )
    return Chart(
        finish(figure),
        alt,
        rows,
        [f"Width {width_label(point.width)}, linear output, one seed per method."],
    )


def _row_of_method(title: str, run: DynamicsRun) -> dict[str, object]:
    return {
        "method": title,
        "seed": run.seed,
        "sup ‖w − w₀‖₂": run.sup_distance,
        "ΔK": run.sup_change,
        "network": OUTCOME_WORDS[run.outcome],
        "linear model": OUTCOME_WORDS[run.linearized.outcome],
    }


def _margins(values: Sequence[float]) -> list[float]:
    return [math.log10(min(values) / 1.6), math.log10(max(values) * 1.6)]


DOTS = 120


def card() -> str:
    """Draw the entries of a diagonal Hessian."""
    weights, entries = diagonal_entries(DOTS)
    dots = list(zip(weights.tolist(), entries.tolist(), strict=True))
    return thumbnail([Stroke(dots, network_style("fully-connected").color, dots=True)])
