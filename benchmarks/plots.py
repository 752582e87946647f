"""Small log–log figures as SVG, from numbers alone; they are committed, so equal numbers must give equal bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

PANEL_W, PANEL_H = 420, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 50
LEGEND_H, HEAD_H = 20, 30
# Okabe & Ito's colors, which people with any color vision tell apart; each with a dash and a symbol of its own.
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
    """One pair of logarithmic axes; ``note`` stands in its corner."""

    title: str
    x_title: str
    y_title: str
    lines: tuple[Line, ...]
    unit: str = "s"
    note: tuple[str, ...] = ()


def figure(title: str, description: str, panels: Sequence[Panel], columns: int = 2) -> str:
    """An SVG with the panels in rows and one legend below the title; ``description`` is for those who do not see it."""
    rows = math.ceil(len(panels) / columns)
    names = {line.name: line.style for panel in panels for line in panel.lines}
    legend, legend_rows = _legend(names, columns * PANEL_W)
    head = HEAD_H + LEGEND_H * legend_rows
    width, height = columns * PANEL_W, head + rows * PANEL_H
    body = [
        f'<g transform="translate({PANEL_W * (k % columns)},{head + PANEL_H * (k // columns)})">{_panel(panel)}</g>'
        for k, panel in enumerate(panels)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif" '
            'font-size="12" fill="#222222">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
            f'<rect width="{width}" height="{height}" fill="#FFFFFF"/>',
            f'<text x="16" y="20" font-size="15" font-weight="600">{escape(title)}</text>',
            legend,
            *body,
            "</svg>\n",
        ]
    )


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


def _panel(panel: Panel) -> str:
    marks = [mark for line in panel.lines for mark in line.marks]
    x_low, x_high = _limits([mark.x for mark in marks], 0.06, 0.06)
    below = 0.08 if not panel.note else 0.08 + 0.09 * len(panel.note)  # a note stands below the lines
    y_low, y_high = _limits([value for mark in marks for value in (mark.low, mark.high)], below, 0.08)
    right, bottom = PANEL_W - RIGHT, PANEL_H - BOTTOM

    def at_x(x: float) -> float:
        return LEFT + (right - LEFT) * math.log(x / x_low) / math.log(x_high / x_low)

    def at_y(y: float) -> float:
        return bottom - (bottom - TOP) * math.log(y / y_low) / math.log(y_high / y_low)

    parts = [f'<text x="{LEFT}" y="22" font-weight="600">{escape(panel.title)}</text>']
    for value in _apart(sorted({mark.x for mark in marks}), at_x):
        x = f"{at_x(value):.1f}"
        parts.append(f'<path d="M{x} {TOP}V{bottom}" stroke="#E3E3E3"/>')
        parts.append(f'<text x="{x}" y="{bottom + 17}" text-anchor="middle">{_count(value)}</text>')
    for value in ticks(y_low, y_high):
        y = at_y(value)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#E3E3E3"/>')
        words = escape(amount(value, panel.unit))
        parts.append(f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
    parts.append(f'<path d="M{LEFT} {TOP}V{bottom}H{right}" stroke="#555555" fill="none"/>')
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle:.0f}" y="{PANEL_H - 12}" text-anchor="middle">{escape(panel.x_title)}</text>')
    parts.append(f'<text x="{right}" y="22" text-anchor="end" fill="#555555">{escape(panel.y_title)}</text>')
    parts += [_line(line, at_x, at_y) for line in panel.lines]
    for k, words in enumerate(reversed(panel.note)):
        y = bottom - 8 - 15 * k
        style = 'text-anchor="end" font-size="11" stroke="#FFFFFF" stroke-width="3" paint-order="stroke"'
        parts.append(f'<text x="{right - 6}" y="{y}" {style}>{escape(words)}</text>')
    return "".join(parts)


def _line(line: Line, at_x: Callable[[float], float], at_y: Callable[[float], float]) -> str:
    color, dash, symbol = STYLES[line.style % len(STYLES)]
    points = [(at_x(mark.x), at_y(mark.y)) for mark in line.marks]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    bars = "".join(f"M{at_x(m.x):.1f} {at_y(m.low):.1f}V{at_y(m.high):.1f}" for m in line.marks if m.high > m.low)
    drawn = f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dash or "none"}"/>'
    drawn += f'<path d="{bars}" stroke="{color}" stroke-width="1.5"/>' if bars else ""
    return drawn + "".join(_symbol(symbol, x, y, color) for x, y in points)


def _symbol(symbol: str, x: float, y: float, color: str) -> str:
    outlines = {
        "square": f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z",
        "triangle": f"M{x:.1f} {y - 5:.1f}l5 9h-10z",
        "diamond": f"M{x:.1f} {y - 5.5:.1f}l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
    }
    if symbol == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.2" fill="{color}"/>'
    return f'<path d="{outlines[symbol]}" fill="{color}"/>'


def _legend(names: dict[str, int], width: int) -> tuple[str, int]:
    """One entry per name, in as many rows as they need."""
    parts, x, row = [], 16, 0
    for name, style in names.items():
        needed = 52 + 7 * len(name)
        if x > 16 and x + needed > width:
            x, row = 16, row + 1
        color, dash, symbol = STYLES[style % len(STYLES)]
        y = HEAD_H + LEGEND_H * row + 6
        line = f'<path d="M{x} {y}h28" stroke="{color}" stroke-width="2" stroke-dasharray="{dash or "none"}"/>'
        parts.append(line + _symbol(symbol, x + 14, y, color) + f'<text x="{x + 35}" y="{y + 4}">{escape(name)}</text>')
        x += needed
    return "".join(parts), row + 1


def _apart(values: Sequence[float], at_x: Callable[[float], float]) -> list[float]:
    """The sizes that were measured, without those whose numbers would touch the one before."""
    kept: list[float] = []
    for value in values:
        if not kept or at_x(value) - at_x(kept[-1]) > 40:
            kept.append(value)
    return kept


def _limits(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    """Both ends with some room around them, as shares of their distance; never the same."""
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
