"""Figures of *Learning rate*.

Maps of outcomes over width and rate, peaks, one run, the plane of one sample, and the edge of
stability.
"""

import math
from collections import Counter
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from linearity_lab.charts.axes import (
    GUIDE_LINE,
    add_level,
    beginning,
    drawn_values,
    finish,
    log_ticks,
    swept_ticks,
)
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.choices import Choice, width_choice
from linearity_lab.charts.departures import departure_steps
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.charts.lines import Dot, Line, width_axis
from linearity_lab.charts.style import GUIDE_COLOR, Style, model_style, nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.charts.training import Quantity, Row, along_runs
from linearity_lab.experiments.learning_rate.point import (
    BORDER,
    COLUMNS,
    EDGE,
    MODEL_TITLES,
    RATE_OUTCOMES,
    LearningRateSpec,
    RatePoint,
    RateRun,
)
from linearity_lab.runs import PRESETS, finite_sup
from linearity_lab.runs.columns import table_rows
from ntk_core.dynamics import one_sample_catapult
from ntk_core.numbers import num_runs, number, width_label

Runs = Shown[LearningRateSpec, RatePoint]
# Presets: the map, and the departure steps beside it.
GALLERY_MAP = "catapult-map"
DEPARTURES = "horizon-rate"
UNSEEN = "rgba(0, 0, 0, 0)"
# From stable to catapulted to diverged; the letter in a cell repeats the color.
OUTCOME_LOOKS = {
    "monotone": ("#8DB4D2", "–"),
    "catapult": ("#E69F00", "↷"),
    "dead": (GUIDE_COLOR, "0"),
    "diverged": ("#A23B00", "×"),
}
# Whether a run meets c = 2 → color and symbol.
EDGE_LOOKS = {True: ("#A23B00", "circle"), False: ("#8DB4D2", "circle-open")}
SEED_SPACING = 1.07  # between neighboring seeds at one width, as a factor; our choice
MAX_PATHS = 4  # in the plane of one sample
# A rate has one look in all results, and the rates of all presets have different ones.
LOOKS_PER_UNIT = 19
_FIRST = 1e-3  # squared residual there, in the units of the recursion


def style(model: str) -> Style:
    """Return the style of a model."""
    return model_style("linearized" if model == "linear" else model)


def outcome_map(
    points: Sequence[RatePoint], models: Sequence[str], cell: tuple[int, float] | None = None
) -> Chart:
    """Draw the most frequent outcome in every cell of width × c, one panel per model.

    One ``cell`` (m, c) is framed.

    Every cell has an invisible marker with its (m, c), because points of heatmaps cannot be
    selected.
    """
    panels = make_subplots(
        1, len(models), shared_yaxes=True, horizontal_spacing=0.02, subplot_titles=list(models)
    )
    rates = sorted({run.rate for point in points for run in point.runs})
    for column, model in enumerate(models, start=1):
        _add_cells(panels, points, model, rates, column)
        if cell is not None:
            _add_frame(panels, points, rates, cell, column)
    panels.update_yaxes(type="category", range=[-0.5, len(rates) - 0.5])
    panels.update_yaxes(title="rate c", row=1, col=1)
    _add_outcome_legend(panels, points)
    summary = []
    for model in models:
        counts = Counter(run.outcome for point in points for run in point.of(model))
        listed = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        summary.append(f"{MODEL_TITLES[model]}: {listed}")
    caption = [f"{beginning(name)}: {words}." for name, words in RATE_OUTCOMES.items()]
    caption.append("A cell shows the most frequent outcome of its seeds.")
    # The toolbar is above the panel titles; the nearest marker to any click is that of its cell.
    figure = finish(panels).update_layout(margin_t=60, hoverdistance=-1)
    outcomes = beginning("; ".join(summary)) + "."
    finding = _stable_rates(points, models)
    return Chart(
        figure,
        outcomes,
        table_rows(COLUMNS, points),
        [" ".join(caption)],
        finding=finding,
        clicks="A click on a cell shows its run.",
        label="Outcomes by width and rate",
    )


def _add_cells(
    figure: go.Figure,
    points: Sequence[RatePoint],
    model: str,
    rates: Sequence[float],
    column: int,
) -> None:
    """Draw the cells of one model: a row for each rate, a column for each width."""
    order = list(RATE_OUTCOMES)
    widths = [width_label(point.width) for point in points]
    rate_labels = [f"{rate:g}" for rate in rates]
    z = []
    letters = []
    notes = []
    for rate in rates:
        cells = [_most(point.of(model, rate)) for point in points]
        z.append([order.index(outcome) if outcome else None for outcome, _ in cells])
        letters.append([OUTCOME_LOOKS[outcome][1] if outcome else "" for outcome, _ in cells])
        for point, (_, words) in zip(points, cells, strict=True):
            notes.append([point.width, rate, words])
    figure.add_heatmap(
        x=widths,
        y=rate_labels,
        z=z,
        text=letters,
        texttemplate="%{text}",
        hoverinfo="skip",
        colorscale=_colors(order),
        zmin=-0.5,
        zmax=len(order) - 0.5,
        showscale=False,
        xgap=1,
        ygap=1,
        row=1,
        col=column,
    )
    figure.add_scatter(
        x=widths * len(rates),
        y=[label for label in rate_labels for _ in widths],
        customdata=notes,
        mode="markers",
        marker={"size": 20, "symbol": "square", "color": UNSEEN},
        unselected={"marker": {"opacity": 1}},
        hovertemplate="m = %{customdata[0]:,}, c = "
        "%{customdata[1]:g}<br>%{customdata[2]}<extra></extra>",
        showlegend=False,
        name=model,
        row=1,
        col=column,
    )
    # Markers would add a margin. More than four labels would touch; the last one stays.
    labels = widths if len(widths) < 5 else widths[(len(widths) - 1) % 2 :: 2]
    ends = [-0.5, len(widths) - 0.5]
    figure.update_xaxes(
        type="category", title="width m", range=ends, tickvals=labels, row=1, col=column
    )


def _colors(outcomes: Sequence[str]) -> list[tuple[float, str]]:
    """Return a scale in which each outcome has one color from end to end."""
    count = len(outcomes)
    colors = []
    for index, outcome in enumerate(outcomes):
        color, _ = OUTCOME_LOOKS[outcome]
        colors += [(index / count, color), ((index + 1) / count, color)]
    return colors


def _add_frame(
    figure: go.Figure,
    points: Sequence[RatePoint],
    rates: Sequence[float],
    cell: tuple[int, float],
    column: int,
) -> None:
    """Frame a cell (m, c), if it is drawn.

    White around black is seen on every cell, in both themes.
    """
    width, rate = cell
    widths = [point.width for point in points]
    if width not in widths or rate not in rates:
        return
    x = widths.index(width)
    y = rates.index(rate)
    for color, thickness in (("#FFFFFF", 5), ("#000000", 2)):
        figure.add_shape(
            type="rect",
            x0=x - 0.5,
            x1=x + 0.5,
            y0=y - 0.5,
            y1=y + 0.5,
            line={"color": color, "width": thickness},
            row=1,
            col=column,
        )


def _add_outcome_legend(figure: go.Figure, points: Sequence[RatePoint]) -> None:
    """Explain the colors and letters of the outcomes that occur."""
    occurring_outcomes = {run.outcome for point in points for run in point.runs}
    for outcome in RATE_OUTCOMES:
        if outcome not in occurring_outcomes:
            continue
        color, letter = OUTCOME_LOOKS[outcome]
        marker = {"color": color, "symbol": "square", "size": 12}
        name = f"{letter} {outcome}"
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=name)


def _stable_rates(points: Sequence[RatePoint], models: Sequence[str]) -> str:
    found = []
    for model in models:
        runs = sorted(
            (run for point in points for run in point.of(model)), key=lambda run: run.rate
        )
        if not runs:  # not yet
            continue
        least = min((run.rate for run in runs if run.outcome == "diverged"), default=math.inf)
        stable = [run.rate for run in runs if run.rate < least]
        found.append(f"{MODEL_TITLES[model]} {f'{stable[-1]:g}' if stable else 'none'}")
    return f"Largest c up to which no run diverged: {'; '.join(found)}." if found else ""


def _most(runs: Sequence[RateRun]) -> tuple[str, str]:
    counted = Counter(run.outcome for run in runs).most_common()
    return (
        (counted[0][0], ", ".join(f"{n} of {len(runs)} {name}" for name, n in counted))
        if counted
        else ("", "")
    )


def peaks(
    points: Sequence[RatePoint], widths: Sequence[int], models: Sequence[str], rate: float
) -> Chart:
    """Draw the largest loss over its start against width at one rate; diverged runs are open."""
    lines = []
    for model in models:
        dots = []
        for point in points:
            finite = [run for run in point.of(model, rate) if run.outcome != "diverged"]
            dots += [Dot(point.width, run.peak, run.seed) for run in finite]
        if dots:
            lines.append(Line(style(model), dots))
    return sweep(
        lines,
        width_axis(widths),
        "largest loss / loss at w₀",
        "peak",
        heading=f"How high the loss rises at c = {rate:g}",
        caption=["Models that diverged in every run are not drawn."],
        rows=table_rows(COLUMNS, points),
    )


def along_run(point: RatePoint, rate: float, *, ended: bool = True) -> Chart:
    """Draw loss, curvature, distance and kernel change of the models for the first seed.

    Outcomes if ``ended``.
    """
    shown = [run for run in point.of_rate(rate) if run.path is not None]
    highest = 1e6 * max(run.first_loss for run in shown)
    # Diverging models leave the figure; the others set its range.
    farthest = max(
        (finite_sup(run.path.distance) for run in shown if run.path and run.outcome != "diverged"),
        default=math.inf,
    )
    quantities = (
        Quantity[RateRun]("loss", "path.loss", Row("loss L", ceiling=highest)),
        Quantity[RateRun]("c", "path.curvature", Row("ηλ/n", "from 0")),
        Quantity[RateRun](
            "distance", "path.distance", Row("‖w − w₀‖₂", ceiling=3 * farthest), "‖w − w₀‖₂"
        ),
        Quantity[RateRun]("ΔK", "path.change", Row("ΔK", "from 0")),
    )
    ends = [
        f"{MODEL_TITLES[run.model]}: {run.outcome}"
        + (
            ""
            if run.outcome == "diverged"
            else f", peak {number(run.peak, 3)} × start, c = {run.curvature:.2f} at the end"
        )
        for run in shown
    ]
    summary = beginning("; ".join(ends)) + "." if ended else "The run continues."
    chart = along_runs(
        shown,
        "path.steps",
        quantities,
        lambda run: style(run.model),
        lambda run: {"model": MODEL_TITLES[run.model]},
        log_x=False,
        num_strong=len(shown),
        takeaway=summary,
        caption=[summary],
        name="along_run",  # also drawn below the map
        heading=f"Width {point.width:,} at c = {rate:g}, step by step",
    )
    add_level(chart.figure, 2, "2: the linear model's edge", row=2, at_end=True)
    return chart


def one_sample(rates: Sequence[float]) -> Chart:
    """Draw paths of the one-sample recursion in the plane of ηλ and squared residual."""
    inside = [rate for rate in rates if 1 < rate < 4]
    starts = inside[:: -(-len(inside) // MAX_PATHS) or 1]
    figure = go.Figure()
    rows = []
    ends = []
    for start in starts:
        found = one_sample_catapult(_FIRST, start, 0.0, 400)
        kept = [(v, u) for v, u in zip(found.v, found.u, strict=True) if u > 1e-12]
        look = nth_style(round(LOOKS_PER_UNIT * (start - 1)), f"from ηλ = {start:g}", "curve")
        figure.add_scatter(
            x=[v for v, _ in kept],
            y=[u for _, u in kept],
            mode="lines+markers",
            line={"color": look.color, "dash": look.dash, "width": 2},
            marker={"symbol": look.symbol, "size": 5},
            name=look.title,
            text=[number(u, 3) for _, u in kept],
            hovertemplate="ηλ = %{x:.3f}<br>u = %{text}<extra></extra>",
        )
        rise = max(u for _, u in kept) / _FIRST
        rises = f"rises {number(rise, 3)}-fold" if rise > 1 else "only decreases"
        ends.append(f"from ηλ = {start:g}, u {rises}, ηλ ends at {kept[-1][0]:.2f}")
        rows += [
            {"from ηλ": start, "step": step, "ηλ": v, "u": u} for step, (v, u) in enumerate(kept)
        ]
    figure.update_xaxes(title="curvature ηλ")
    figure.update_yaxes(title="squared residual u", **log_ticks(drawn_values(figure)))
    figure.add_vline(2, line=GUIDE_LINE)
    summary = f"One sample: {'; '.join(ends) or 'no rate from 1 to 4'}."
    return Chart(finish(figure), summary, rows, [summary], heading="One sample: a map of the plane")


def growth(shown: Runs) -> Chart:
    """Draw the growth S of the curvature at the smallest rate against width, log–log."""
    slowest = min(shown.spec.rates)
    lines = []
    for model in shown.spec.models:
        dots = []
        for point in shown.points:
            for run in point.of(model, slowest):
                if run.growth is not None:
                    why = "" if run.converged else "did not converge"
                    dots.append(Dot(point.width, run.growth, run.seed, why))
        if any(dot.value > 0 for dot in dots):
            lines.append(Line(style(model), dots))
    return sweep(
        lines,
        width_axis(shown.spec.widths),
        "growth of the curvature S",
        "S",
        slopes=(-1.0,),
        of="model",
        name="growth",
        heading="How far the curvature grows",
        caption=[f"At the smallest rate, c = {slowest:g}."],
    )


def _edge_finding(runs: Sequence[RateRun], slowest: float) -> str:
    """Count the runs on the predicted side, near the border, and without a border."""
    if not runs:
        return f"No rate is between the smallest one, c = {slowest:g}, and 2."
    predicted = [run for run in runs if run.predicted_peak is not None]
    judged = [run for run in predicted if run.as_predicted is not None]
    words = []
    if predicted:
        right = sum(run.as_predicted == 1 for run in judged)
        words.append(
            f"{right} of {num_runs(len(judged))} are on the predicted side of the border; "
            f"{len(predicted) - len(judged)} within {BORDER:.0%} of it are not judged."
        )
    if without := len(runs) - len(predicted):
        words.append(
            f"No border for {num_runs(without)}: at c = {slowest:g} their seed did not converge."
        )
    return " ".join(words)


def edge(shown: Runs) -> Chart:
    """Draw the runs that meet c = 2, and the predicted border.

    They are runs of the network, over width and rate.
    """
    spec = shown.spec
    model = spec.models[-1]  # the network, unless it was not chosen
    slowest = min(spec.rates)
    runs = [
        (point.width, run)
        for point in shown.points
        for run in point.of(model)
        if slowest < run.rate < EDGE
    ]
    figure = go.Figure()
    _add_border(figure, shown.points, model, slowest)
    for meets in (True, False):
        _add_edge_runs(figure, spec, [pair for pair in runs if pair[1].meets_edge == meets], meets)
    places = list(spec.widths)
    figure.update_xaxes(title="width m", **swept_ticks(places, places))
    reach = SEED_SPACING ** (spec.num_seeds / 2)  # of the outermost seeds
    ends = [math.log10(places[0] / reach) - 0.05, math.log10(places[-1] * reach) + 0.05]
    figure.update_xaxes(range=ends)
    figure.update_yaxes(title="rate c at w<sub>0</sub>")
    finding = _edge_finding([run for _, run in runs], slowest)
    rows: list[dict[str, object]] = [
        {
            "width m": width,
            "c": run.rate,
            "seed": run.seed,
            "largest c": run.peak_curvature,
            "predicted largest c": run.predicted_peak,
        }
        for width, run in runs
    ]
    return Chart(
        finish(figure),
        f"Runs that meet the edge of stability. {finding}",
        rows,
        [f"{beginning(MODEL_TITLES[model])}; border from the runs at c = {slowest:g}."],
        "edge",
        "Which runs meet the edge of stability",
        finding=finding,
        clicks="A click on a mark shows the run of the first seed.",
        label="Edge of stability by width and rate",
    )


def _add_border(figure: go.Figure, points: Sequence[RatePoint], model: str, slowest: float) -> None:
    """Draw the rates c = 2/(1 + S): their mean over seeds, and their range."""
    borders: dict[int, list[float]] = {}
    for point in points:
        found = [
            EDGE / (1 + run.growth)
            for run in point.of(model, slowest)
            if run.converged and run.growth is not None
        ]
        if found:
            borders[point.width] = found
    widths = list(borders)
    look = nth_style(0, "border", "curve")
    figure.add_scatter(
        x=widths + widths[::-1],
        y=[max(borders[m]) for m in widths] + [min(borders[m]) for m in widths[::-1]],
        fill="toself",
        fillcolor=look.band,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        name="range over seeds",
    )
    figure.add_scatter(
        x=widths,
        y=[sum(borders[m]) / len(borders[m]) for m in widths],
        mode="lines",
        line={"color": look.color, "width": 3},
        name="predicted border 2/(1 + S)",
        hovertemplate="m = %{x:,}<br>border c = %{y:.3f}<extra></extra>",
    )


def _add_edge_runs(
    figure: go.Figure, spec: LearningRateSpec, runs: Sequence[tuple[int, RateRun]], meets: bool
) -> None:
    """Draw runs, seeds side by side at their width."""
    middle = spec.seed + (spec.num_seeds - 1) / 2
    color, symbol = EDGE_LOOKS[meets]
    figure.add_scatter(
        x=[width * SEED_SPACING ** (run.seed - middle) for width, run in runs],
        y=[run.rate for _, run in runs],
        mode="markers",
        marker={"color": color, "symbol": symbol, "size": 9, "line": {"width": 1.5}},
        unselected={"marker": {"opacity": 1}},
        customdata=[
            [
                width,
                run.rate,
                run.seed,
                "unknown" if run.peak_curvature is None else f"{run.peak_curvature:.3f}",
                "unknown" if run.predicted_peak is None else f"{run.predicted_peak:.3f}",
            ]
            for width, run in runs
        ],
        hovertemplate="m = %{customdata[0]:,}, c = %{customdata[1]:g}, seed %{customdata[2]}"
        "<br>largest c = %{customdata[3]}<br>predicted %{customdata[4]}<extra></extra>",
        name="meets c = 2" if meets else "stays below 2",
    )


def _choices(shown: Runs) -> list[Choice]:
    """Return the choices of width and rate.

    The first rate is the one nearest 3, where networks catapult.
    """
    rates = list(shown.spec.rates)
    catapulted = min(range(len(rates)), key=lambda at: abs(rates[at] - 3))
    return [
        width_choice(shown.points),
        Choice("rate", "Rate c", rates, "c = {:g}".format, begins=catapulted),
    ]


def _map(shown: Runs, width: int, rate: float) -> Chart:
    return outcome_map(shown.points, shown.spec.models, (width, rate))


def _peaks(shown: Runs, width: int, rate: float) -> Chart:
    return peaks(shown.points, shown.spec.widths, shown.spec.models, rate)


def _along_run(shown: Runs, width: int, rate: float) -> list[Chart]:
    point = shown.point(width)
    if not point.of_rate(rate):  # not yet
        return []
    return [along_run(point, rate, ended=not shown.grown)]


FIGURES = (
    Figure("map", "Outcomes", choices=[_choices], draw=_map),
    Figure("peaks", "Peak against width", choices=[_choices], draw=_peaks, is_main=True),
    Figure(
        "edge",
        "Edge of stability",
        choices=[_choices],
        draw=lambda shown, width, rate: edge(shown),
        has_data=lambda shown: shown.spec.keep_curvature,
    ),
    Figure(
        "growth",
        "Growth of the curvature",
        draw=growth,
        has_data=lambda shown: shown.spec.keep_curvature,
    ),
    Figure("one_sample", "One sample", draw=lambda shown: one_sample(shown.spec.rates)),
    Figure(
        "along_run",
        "One run",
        choices=[_choices],
        draw=_along_run,
        has_data=lambda shown: shown.spec.keep_paths,
    ),
    # Beside the map of other settings it would mislead.
    Figure(
        "departure_steps",
        "Departure above the stable rate",
        draw=lambda shown: departure_steps(shown.points, shown.spec.widths),
        has_data=lambda shown: shown.spec == PRESETS[GALLERY_MAP].spec,
        preset=DEPARTURES,
    ),
)
