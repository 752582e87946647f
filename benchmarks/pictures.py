"""Pictures of docs/benchmarks.md: small log–log figures as SVG."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import jinja2

from benchmarks.words import Data, amount, exponent, names_of
from linearity_lab.charts.vector import Scale
from ntk_core.markup import JSON
from ntk_core.numbers import power_of_ten

TEMPLATE = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
    Path(__file__).with_name("figure.svg.jinja").read_text(encoding="utf-8")
)
PANEL_W, PANEL_H = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 64, PANEL_W - 16, 34, PANEL_H - 50
LEGEND_H, HEAD_H = 20, 30
# Okabe & Ito's colors, distinguishable with any color vision, each with a separate dash and symbol.
STYLES: tuple[tuple[str, str, str], ...] = (
    ("#0072B2", "", "circle"),
    ("#D55E00", "7 4", "square"),
    ("#009E73", "2 4", "triangle"),
    ("#CC79A7", "9 3 2 3", "diamond"),
    ("#8C6D00", "4 3", "circle"),
    ("#56B4E9", "1 3", "square"),
    ("#444444", "12 4", "triangle"),
)
WORKS = {"kernel": "kernel", "hessian_product": "Hessian product", "training_step": "training step"}
AXES = {"m": "width m", "n": "inputs n", "C": "outputs C", "depth": "hidden layers"}


class Mark(NamedTuple):
    """One measured value: the median, and the range that its bar spans."""

    x: float
    y: float
    low: float
    high: float


class Line(NamedTuple):
    """Marks of one name; ``style`` is an index into ``STYLES``."""

    name: str
    marks: tuple[Mark, ...]
    style: int


class Panel(NamedTuple):
    """One pair of logarithmic axes; ``note`` is in its corner."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    unit: str = "s"
    note: tuple[str, ...] = ()


def figure(title: str, description: str, panels: Sequence[Panel], columns: int = 2) -> str:
    """Return an SVG with the panels in rows and one legend."""
    names = {line.name: line.style for panel in panels for line in panel.lines}
    in_a_row = max(1, columns * PANEL_W // (52 + 7 * max(map(len, names))))
    step = columns * PANEL_W // in_a_row
    head = HEAD_H + LEGEND_H * math.ceil(len(names) / in_a_row)
    places = [(16 + step * (at % in_a_row), HEAD_H + LEGEND_H * (at // in_a_row) + 6) for at in range(len(names))]
    legend = [(name, STYLES[style % len(STYLES)], *at) for (name, style), at in zip(names.items(), places, strict=True)]
    offsets = [(PANEL_W * (at % columns), head + PANEL_H * (at // columns)) for at in range(len(panels))]
    drawn = [{**_drawn(panel), "offset": at} for panel, at in zip(panels, offsets, strict=True)]
    size = {"width": columns * PANEL_W, "height": head + math.ceil(len(panels) / columns) * PANEL_H}
    axes = {"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM, "panel_height": PANEL_H}
    return TEMPLATE.render(title=title, description=description, legend=legend, panels=drawn, **size, **axes)


def _drawn(panel: Panel) -> JSON:
    """Return a panel in coordinates of the picture, for the template."""
    marks = [mark for line in panel.lines for mark in line.marks]
    at_x = Scale(*_limits([mark.x for mark in marks], 0.06, 0.06), LEFT, RIGHT, log=True)
    below = 0.08 + 0.09 * len(panel.note)  # a note is below the lines
    limits = _limits([value for mark in marks for value in (mark.low, mark.high)], below, 0.08)
    at_y = Scale(*limits, BOTTOM, TOP, log=True)
    sizes: list[float] = []  # without overlapping labels
    for x in sorted({mark.x for mark in marks}):
        if not sizes or at_x(x) - at_x(sizes[-1]) > 40:
            sizes.append(x)
    lines = []
    for line in panel.lines:
        points = [(at_x(mark.x), at_y(mark.y)) for mark in line.marks]
        bars = [(at_x(mark.x), at_y(mark.low), at_y(mark.high)) for mark in line.marks if mark.high > mark.low]
        lines.append({"style": STYLES[line.style % len(STYLES)], "points": points, "bars": bars})
    x_ticks = [(at_x(x), _count(x)) for x in sizes]
    y_ticks = [(at_y(y), amount(y, panel.unit)) for y in ticks(*limits)]
    return {"panel": panel, "x_ticks": x_ticks, "y_ticks": y_ticks, "lines": lines}


def ticks(low: float, high: float) -> list[float]:
    """Return at most eight round values in a range."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [factor * 10.0**k for k in exponents for factor in factors]
        inside = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if 0 < len(inside) <= 8:
            return inside
    return [low, high]


def _limits(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    """Return both ends with margins as shares of their distance; never equal."""
    low, high = math.log(min(values)), math.log(max(values))
    distance = high - low if high > low else 1.0
    return math.exp(low - below * distance), math.exp(high + above * distance)


def _count(value: float) -> str:
    """Write large sizes as powers of ten: 3·10⁵."""
    if value < 10_000:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"
    power = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10**power)
    return power_of_ten(power) if factor == 1 else f"{factor}·{power_of_ten(power)}"


def _mark(x: float, row: Data, units: int = 1) -> Mark:
    return Mark(x, *(row.get(name, row["median_s"]) / units for name in ("median_s", "q1_s", "q3_s")))


def _lines(cases: Iterable[Data], axis: str, names: list[str], field: str = "") -> tuple[Line, ...]:
    """Return one line per competitor of times or another field."""
    rows, lines = list(cases), []
    for style, name in enumerate(names):
        timed = [(row[axis], row["times"][name]) for row in rows if name in row["times"]]
        marks = [Mark(x, *[each[field]] * 3) if field else _mark(x, each) for x, each in timed if each.get(field, 1)]
        if marks:
            lines.append(Line(name, tuple(marks), style))
    return tuple(lines)


def kernel(data: Data) -> str:
    names, panels = names_of(data["cases"]), []
    for depth, title in ((1, "one hidden layer"), (3, "three hidden layers")):
        cases = [row for row in data["cases"] if row["kind"] == "dense" and row["hidden_layers"] == depth]
        if cases:
            panels.append(Panel(title, "width m", "time of a kernel", _lines(cases, "width", names)))
    words = "Medians with quartiles over the width, log–log; lower is better. The numbers are in the table below."
    return figure(f"A kernel, n = {data['num_samples']}, C = {data['num_outputs']}", words, panels)


def hessian(data: Data) -> str:
    cases, names, axis = data["cases"], names_of(data["cases"]), "number of parameters"
    panels = [Panel("time", axis, "time of a norm", _lines(cases, "num_params", names))]
    if memory := _lines(cases, "num_params", names, "added_bytes"):
        panels.append(Panel("memory added to the weights", axis, "peak", memory, "B"))
    words = f"Medians with quartiles over the {axis}, log–log; lower is better. Numbers in the table below."
    return figure("A Hessian norm, relative tolerance 1e-2", words, panels)


def sweep(data: Data) -> str:
    runs = {"ours, cold": "ours_cold", "plain JAX script": "plain_script", "ours, warm": "ours_warm"}
    lines = tuple(
        Line(words, tuple(Mark(int(m), at, at, at) for m, at in data[name]["point_s"].items()), style)
        for style, (words, name) in enumerate(runs.items())
    )
    words = "Seconds since the start at which each width was done; lower is better."
    panel = Panel("", "width m", "done after", lines)
    return figure(f"The default sweep, {data['num_seeds']} seeds", words, [panel], columns=1)


def growth(data: Data) -> str:
    panels = []
    for axis, title in AXES.items():
        lines, notes = [], []
        for style, (name, words) in enumerate(WORKS.items()):
            found = data["works"].get(name, {}).get(axis)
            if found is not None:
                marks = tuple(_mark(row[axis], row, row["units"]) for row in found["rows"])
                lines.append(Line(words, marks, style))
                notes.append(f"{words}: {exponent(found['time'])}")
        if lines:
            panels.append(Panel(f"against {title}", title, "time", tuple(lines), note=("exponents", *notes)))
    words = "Time against one size at a time, log–log, with fitted exponents; the numbers are in the table below."
    return figure("How time grows", words, panels)


def estimates(data: Data) -> str:
    names = sorted({row["experiment"] for row in data["rows"]})

    def panel(title: str, foreseen: str, actual: str, unit: str, words: str, scale: float) -> Panel:
        pairs = [(row["experiment"], row[foreseen] / scale, row[actual]) for row in data["rows"]]
        drawn = [Line(name.replace("_", " "), (Mark(x, y, y, y),), names.index(name)) for name, x, y in pairs]
        ends = [extreme(x for _, x, _ in pairs) for extreme in (min, max)]
        equal = Line("as estimated", tuple(Mark(x, *[x * scale] * 3) for x in ends), len(names))
        return Panel(title, f"estimated, in {words}", "actual", (equal, *drawn), unit=unit)

    panels = [
        panel("Time of a spec", "estimated_s", "seconds", "s", "seconds", 1.0),
        panel("Memory of a spec", "estimated_bytes", "added_bytes", "B", "MiB", 2.0**20),
    ]
    return figure("Actual against estimated", "One mark per spec, log–log; the line is where both are equal.", panels)
