"""Horizons against width, runs along their clock, and departure steps above the stable rate."""

import math
from collections.abc import Sequence
from dataclasses import replace

from linearity_lab.charts.axes import GUIDE_LINE, add_level, beginning
from linearity_lab.charts.chart import Chart, occurring
from linearity_lab.charts.lines import Dot, Line, width_axis
from linearity_lab.charts.style import Style, nth_style
from linearity_lab.charts.sweep import sketch, sweep
from linearity_lab.charts.training import Curve, Row, along_training, record_rows
from ntk_core.experiments.horizon.result import (
    CLOCKS,
    COLUMNS,
    DEPARTURE_WORDS,
    REGIME_TITLES,
    HorizonPoint,
    HorizonResult,
    HorizonRun,
    rate_law,
)
from ntk_core.experiments.horizon.spec import HorizonSpec
from ntk_core.fits import exponent_words
from ntk_core.numbers import number, percent, signed
from ntk_core.runs import mean
from ntk_core.runs.columns import table_rows

ROOM = 1.7  # between the highest horizon and the marks of runs that never depart
POWERS = ("cross-entropy", "weight-decay")  # whose horizon is a power of the width


def style(regime: str, rate: float) -> Style:
    """A regime, and each of its rates above the stable one."""
    place = list(REGIME_TITLES).index(regime) + 4 * (rate > 2.75)  # a color for each regime
    return nth_style(place, REGIME_TITLES[regime] + f", c = {rate:g}" * (rate > 2), "curve")


def regimes(points: Sequence[HorizonPoint]) -> list[tuple[str, float]]:
    """(regime, rate) of every line, in the order of their titles."""
    order = list(REGIME_TITLES)
    return sorted(occurring(points, "regime", "rate"), key=lambda each: (order.index(each[0]), each[1]))


def line(points: Sequence[HorizonPoint], regime: str, rate: float, of: str, *, relative: bool = True) -> Line:
    """The horizon of one regime, or its ratio to the mean at the least width where it is seen."""
    runs = [(point.width, run) for point in points for run in point.of(regime, rate)]
    seen = [(width, run) for width, run in runs if getattr(run, of).outcome == "departed"]
    first = [getattr(run, of).at for width, run in seen if width == min(each for each, _ in seen)]
    base = mean(first).value if relative else 1.0
    return Line(style(regime, rate), [_dot(width, run, of, base) for width, run in runs], fit=regime in POWERS)


def _dot(width: int, run: HorizonRun, of: str, base: float) -> Dot:
    ended = getattr(run, of)
    words = DEPARTURE_WORDS[ended.outcome]
    note = f"{CLOCKS[run.regime]} = {number(ended.at, 3)}: {words}"
    if ended.outcome == "departed":
        return Dot(width, ended.at / base, run.seed, note=note)
    if ended.outcome == "never":  # no number, and no failure: it has an arrow
        return Dot(width, math.nan, run.seed, note=note)
    bound = ended.at / base if ended.outcome == "beyond" else math.nan
    return Dot(width, bound, run.seed, words, note, outcome=ended.outcome)


def against_width(points: Sequence[HorizonPoint], spec: HorizonSpec, of: str) -> Chart:
    """Every horizon over its value at the least width; arrows at the top for runs that never depart."""
    lines = [line(points, *each, of) for each in regimes(points)]
    shown = [each for each in lines if any(math.isfinite(dot.value) or dot.why for dot in each.dots)]
    chart = sweep(
        shown, width_axis(spec.widths), "horizon / at the least width", "horizon", name="horizons",
        caption=[f"Clocks: {', '.join(f'{REGIME_TITLES[name]} {clock}' for name, clock in CLOCKS.items())}.",
                 "Percentages: difference of outputs at convergence, where the horizon is never reached."],
        rows=table_rows(COLUMNS, points),
    )  # fmt: skip
    never = [(point.width, run) for point in points for run in point.runs if getattr(run, of).outcome == "never"]
    if never:
        drawn = [dot.value for each in lines for dot in each.dots if math.isfinite(dot.value)]
        widths, look = sorted({width for width, _ in never}), style("square", 1.0)
        left = [mean([run.last_difference for width, run in never if width == each]).value for each in widths]
        top = ROOM * max(drawn, default=1.0)
        chart.figure.add_scatter(
            x=widths, y=[top] * len(widths), mode="markers+text", text=[percent(each) for each in left],
            textposition="top center", marker={"symbol": "arrow-up", "size": 14, "color": look.color},
            hovertemplate="square loss, m = %{x:,}<br>never; outputs differ by %{text} at convergence<extra></extra>",
            name="square loss: never", cliponaxis=False,
        )  # fmt: skip
        low = min(chart.figure.layout.yaxis.range[0], 0.0) if drawn else -0.3
        chart.figure.update_yaxes(range=[low, math.log10(top) + 0.25])
    finding = _finding(points, of)
    return replace(chart, finding=finding, takeaway=f"{finding} {chart.takeaway}")


def _finding(points: Sequence[HorizonPoint], of: str) -> str:
    """Every regime in one clause, from its runs."""
    parts = []
    for regime, rate in regimes(points):
        drawn, runs = line(points, regime, rate, of, relative=False), [r for p in points for r in p.of(regime, rate)]
        title, ends = REGIME_TITLES[regime], [average.value for _, average in drawn.means]
        never = sum(getattr(run, of).outcome == "never" for run in runs)
        if regime == "square":
            parts.append(f"{title}: {never} of {len(runs)} runs never depart")
        elif regime == "large-rate" and (law := rate_law(points, rate, of)) is not None:
            steps = f"{law.exponent:.2f}" + f" ± {law.interval:.2f}" * math.isfinite(law.interval)
            parts.append(f"c = {rate:g}: {steps} steps per unit of ln m")
        elif regime == "cross-entropy" and drawn.law:
            parts.append(f"{title}: log(1/L*) ∝ m^({exponent_words(drawn.law)})")
        elif ends:
            parts.append(f"{title}: {CLOCKS[regime]} = {number(ends[0])} to {number(ends[-1])}")
        else:
            parts.append(f"{title}: no run departs within its budget")
    return f"{beginning('; '.join(parts))}." if parts else "No run has departed yet."


def along(points: Sequence[HorizonPoint], spec: HorizonSpec, regime: str, width: int) -> Chart:
    """ΔK and the difference of outputs along the clock of one regime and width, the first seed strong."""
    runs = [
        run for point in points if (point.regime, point.width) == (regime, width) for run in point.runs if run.clock
    ]
    curves = [
        Curve(style(regime, run.rate), run.clock, values, what, run.seed, row, in_legend=row == 1, is_first=not place)
        for place, run in enumerate(runs)
        for row, (what, values) in enumerate((("ΔK", run.change), ("difference", run.difference)), start=1)
    ]
    rows = (Row("ΔK"), Row("outputs"))
    figure = along_training(curves, rows, CLOCKS[regime], log_x=False)
    for row, level in enumerate((spec.kernel_threshold, spec.output_threshold), start=1):
        add_level(figure, level, f"threshold {level:g}", row=row)
    ends = [f"seed {run.seed}: ΔK {number(run.change[-1])}, outputs {percent(run.last_difference)}" for run in runs]
    caption = f"{beginning(REGIME_TITLES[regime])} at width {width:,}, at the end: {'; '.join(ends)}."
    columns = {CLOCKS[regime]: "clock", "ΔK": "change", "‖f − f_lin‖/‖f_lin‖": "difference"}
    table = record_rows(runs, lambda run: {"c": run.rate, "seed": run.seed}, columns)
    return Chart(figure, caption, table, name="along", heading="Along the runs of one width")


def departure_steps(points: Sequence[HorizonPoint], widths: Sequence[int]) -> Chart:
    """The step at which outputs depart above the stable rate against ln m, with the predicted slope."""
    own = [each for each in regimes(points) if each[0] == "large-rate"]
    lines = [line(points, *each, "outputs", relative=False) for each in own]
    chart = sweep(
        lines, width_axis(widths), "step at which outputs depart", "step", is_log=False, name="departure_steps",
        heading="Departure above the stable rate",
        rows=table_rows(COLUMNS, [point for point in points if point.regime == "large-rate"]),
    )  # fmt: skip
    slopes = []
    for (_, rate), drawn in zip(own, lines, strict=True):
        predicted, law = 1 / (2 * math.log(rate - 1)), rate_law(points, rate, "outputs")
        if not drawn.means or law is None:
            continue
        (last, end), first = drawn.means[-1], drawn.means[0][0]
        heights = [end.value - predicted * math.log(last / at) for at in (first, last)]
        name = f"slope {signed(predicted)} predicted"
        chart.figure.add_scatter(x=[first, last], y=heights, mode="lines", line=GUIDE_LINE, name=name, showlegend=False)
        steps = f"{law.exponent:.2f}" + f" ± {law.interval:.2f}" * math.isfinite(law.interval)
        slopes.append(f"c = {rate:g}: {steps} steps per unit of ln m, predicted {predicted:.2f}")
    found = [f"{beginning('; '.join(slopes))}."] if slopes else []
    words = " ".join([*found, chart.takeaway])
    return replace(chart, finding="".join(found), takeaway=words, caption=[*found, *chart.caption])


CARD = "horizon"


def card(result: HorizonResult) -> str:
    """Every horizon against width."""
    return sketch(line(result.points, *each, "kernel") for each in regimes(result.points))


def first_chart(result: HorizonResult) -> Chart:
    """The horizons of the kernel, or of the outputs where all runs are above the stable rate."""
    return against_width(result.points, result.spec, "outputs" if result.spec.regimes == ("large-rate",) else "kernel")
