"""Small log–log figures as SVG, from numbers alone; they are committed, so equal numbers must give equal bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

TEMPLATE = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined).from_string(
    Path(__file__).with_name("figure.svg.jinja").read_text(encoding="utf-8")
)
PANEL_W, PANEL_H = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 50
LEGEND_H, HEAD_H = 20, 30
# Okabe & Ito's colors, which are distinguishable with any color vision; each with a dash and a symbol of its own.
STYLES: tuple[tuple[str, str, str], ...] = (
    ("#0072B2", "", "circle"),
    ("#D55E00", "7 4", "square"),
    ("#009E73", "2 4", "triangle"),
    ("#CC79A7", "9 3 2 3", "diamond"),
    ("#8C6D00", "4 3", "circle"),
    ("#56B4E9", "1 3", "square"),
    ("#444444", "12 4", "triangle"),
)


@dataclass(frozen=True)
class Mark:
    """One measured value: the median, and the range that its bar spans."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True)
class Line:
    """Marks of one name; ``style`` counts into the colors, so that a name looks the same in every panel."""

    name: str
    marks: tuple[Mark, ...]
    style: int


@dataclass(frozen=True)
class Panel:
    """One pair of logarithmic axes; ``note`` is in its corner."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    unit: str = "s"
    note: tuple[str, ...] = ()


def figure(title: str, description: str, panels: Sequence[Panel], columns: int = 2) -> str:
    """An SVG with the panels in rows and one legend below the title; ``description`` is for those who do not see it."""
    names = {line.name: line.style for panel in panels for line in panel.lines}
    entries, legend_rows = _legend(names, columns * PANEL_W)
    head = HEAD_H + LEGEND_H * legend_rows
    places = [(PANEL_W * (k % columns), head + PANEL_H * (k // columns)) for k in range(len(panels))]
    return TEMPLATE.render(
        title=title,
        description=description,
        width=columns * PANEL_W,
        height=head + math.ceil(len(panels) / columns) * PANEL_H,
        legend=entries,
        panels=[_drawn(panel, *place) for panel, place in zip(panels, places, strict=True)],
        left=LEFT, right=PANEL_W - RIGHT, top=TOP, bottom=PANEL_H - BOTTOM, panel_height=PANEL_H,
    )  # fmt: skip


def ticks(low: float, high: float) -> list[float]:
    """Round values in a range, at most eight: powers of ten, with 3 times them where there are few, then 2 and 5."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    chosen: list[float] = []
    for factors in ((1,), (1, 3), (1, 2, 5)):
        found = [factor * 10.0**k for k in exponents for factor in factors]
        inside = [value for value in found if low * 0.999 <= value <= high * 1.001]
        if len(inside) > 8:
            break
        chosen = inside
    while len(chosen) > 8:
        chosen = chosen[::2]
    return chosen or [low, high]


def _drawn(panel: Panel, x_offset: int, y_offset: int) -> dict[str, Any]:
    """A panel in coordinates of the picture, for the template."""
    marks = [mark for line in panel.lines for mark in line.marks]
    x_low, x_high = _limits([mark.x for mark in marks], 0.06, 0.06)
    below = 0.08 + 0.09 * len(panel.note)  # a note is below the lines
    y_low, y_high = _limits([value for mark in marks for value in (mark.low, mark.high)], below, 0.08)
    right, bottom = PANEL_W - RIGHT, PANEL_H - BOTTOM

    def at_x(x: float) -> float:
        return LEFT + (right - LEFT) * math.log(x / x_low) / math.log(x_high / x_low)

    def at_y(y: float) -> float:
        return bottom - (bottom - TOP) * math.log(y / y_low) / math.log(y_high / y_low)

    return {
        "panel": panel,
        "offset": (x_offset, y_offset),
        "x_ticks": [(at_x(x), _count(x)) for x in _apart(sorted({mark.x for mark in marks}), at_x)],
        "y_ticks": [(at_y(y), amount(y, panel.unit)) for y in ticks(y_low, y_high)],
        "lines": [
            {
                "style": STYLES[line.style % len(STYLES)],
                "points": [(at_x(mark.x), at_y(mark.y)) for mark in line.marks],
                "bars": [(at_x(m.x), at_y(m.low), at_y(m.high)) for m in line.marks if m.high > m.low],
            }
            for line in panel.lines
        ],
    }


def _legend(names: dict[str, int], width: int) -> tuple[list[dict[str, Any]], int]:
    """One entry per name, in as many rows as they need."""
    entries: list[dict[str, Any]] = []
    x, row = 16, 0
    for name, style in names.items():
        needed = 52 + 7 * len(name)
        if x > 16 and x + needed > width:
            x, row = 16, row + 1
        y = HEAD_H + LEGEND_H * row + 6
        entries.append({"name": name, "x": x, "y": y, "style": STYLES[style % len(STYLES)]})
        x += needed
    return entries, row + 1


def _apart(values: Sequence[float], at_x: Callable[[float], float]) -> list[float]:
    """The sizes that were measured, without those whose numbers would touch the one before."""
    kept: list[float] = []
    for value in values:
        if not kept or at_x(value) - at_x(kept[-1]) > 40:
            kept.append(value)
    return kept


def _limits(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    """Both ends with some margin around them, as shares of their distance; never the same."""
    low, high = math.log(min(values)), math.log(max(values))
    distance = high - low if high > low else 1.0
    return math.exp(low - below * distance), math.exp(high + above * distance)


def _count(value: float) -> str:
    """Large sizes as powers of ten: 3·10⁵."""
    if value < 10_000:
        return f"{value:,.0f}" if value >= 1 else f"{value:g}"
    power = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10**power)
    words = "10" + superscript(power)
    return words if factor == 1 else f"{factor}·{words}"


def superscript(power: int) -> str:
    return "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(power))


def amount(value: float, unit: str) -> str:
    """A time in seconds or a size in bytes with a unit that keeps the number short."""
    steps: dict[str, list[tuple[float, str]]] = {
        "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
        "B": [(2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1, "B")],
    }
    scale, name = next((step for step in steps[unit] if value >= step[0] * 0.9999), steps[unit][-1])
    return f"{value / scale:.3g} {name}"
