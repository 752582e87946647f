"""A figure as SVG text, drawn without a browser: for notebooks, where no Plotly runs.

Of Plotly's figures it draws what ours are made of: lines, marks, bands, error bars, levels, words and legends on
linear and logarithmic axes. Words have the color of their page, so that it is read on light and on dark.
"""

import html
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from linearity_lab.charts.labels import LETTER
from linearity_lab.charts.numbers import number, power_of_ten
from linearity_lab.charts.style import FIGURE_HEIGHT, FONT_SIZE, GUIDE_COLOR
from linearity_lab.charts.vector import DASHES

WIDTH = 720
LEFT, BELOW, ABOVE = 74, 52, 24  # pixels for the labels and titles of axes
KEY, ROW = 34, 22  # of an entry of the legend: its line, its height
TICK = 5
WIDER = 1.2  # letters of a notebook's font, at most, than those that margins are made for
# Marks of radius 1 as paths; what is drawn as lines alone comes second.
_FILLED = {
    "circle": "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z",
    "square": "M-.9-.9H.9V.9H-.9Z",
    "diamond": "M0-1.3L1.3 0L0 1.3L-1.3 0Z",
    "diamond-wide": "M0-.8L1.5 0L0 .8L-1.5 0Z",
    "diamond-tall": "M0-1.5L.8 0L0 1.5L-.8 0Z",
    "triangle-up": "M0-1.2L1.1.8H-1.1Z",
    "triangle-down": "M0 1.2L1.1-.8H-1.1Z",
    "triangle-left": "M-1.2 0L.8-1.1V1.1Z",
    "triangle-right": "M1.2 0L-.8-1.1V1.1Z",
    "cross": "M-.4-1.2H.4V-.4H1.2V.4H.4V1.2H-.4V.4H-1.2V-.4H-.4Z",
    "x": "M0-.5L.6-1.1L1.1-.6L.5 0L1.1.6L.6 1.1L0 .5L-.6 1.1L-1.1.6L-.5 0L-1.1-.6L-.6-1.1Z",
    "pentagon": "M0-1.1L1.05-.34L.65.89H-.65L-1.05-.34Z",
    "hexagon": "M0-1.1L.95-.55V.55L0 1.1L-.95.55V-.55Z",
    "star": "M0-1.3L.33-.45L1.24-.4L.53.17L.76 1.05L0 .56L-.76 1.05L-.53.17L-1.24-.4L-.33-.45Z",
    "hexagram": "M0-1.3L.38-.65H1.13L.75 0L1.13.65H.38L0 1.3L-.38.65H-1.13L-.75 0L-1.13-.65H-.38Z",
    "star-square": "M-1-1L0-.5L1-1L.5 0L1 1L0 .5L-1 1L-.5 0Z",
    "hourglass": "M-1-1H1L-1 1H1Z",
    "bowtie": "M-1-1V1L1-1V1Z",
}
_STROKED = {"line-ew": "M-1.4 0H1.4", "x-thin": "M-1-1L1 1M1-1L-1 1", "cross-thin": "M0-1.4V1.4M-1.4 0H1.4"}
_SHIFTS = {"sup": -0.38, "sub": 0.25}  # of raised and lowered letters, in their full size


@dataclass(frozen=True)
class _Scale:
    """From the numbers of an axis to pixels; ``low`` and ``high`` are exponents of ten where it is logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def __call__(self, value: Any) -> float | None:
        """None where there is no such place."""
        if value is None or not math.isfinite(value) or (self.log and value <= 0):
            return None
        at = math.log10(value) if self.log else float(value)
        return self.start + (at - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, axis: Any) -> Iterator[tuple[float, str]]:
        """(place, label) of those in sight."""
        values, texts = axis.tickvals, axis.ticktext
        if values is None:
            values = self._own_ticks()
            texts = [power_of_ten(round(math.log10(each))) if self.log else number(each, 4) for each in values]
        for value, text in zip(values, texts if texts is not None else map(str, values), strict=True):
            place = self(value)
            if place is not None and min(self.start, self.end) - 0.5 <= place <= max(self.start, self.end) + 0.5:
                yield place, text

    def _own_ticks(self) -> list[float]:
        if self.log:
            return [10.0**power for power in range(math.ceil(self.low), math.floor(self.high) + 1)]
        rough = (self.high - self.low) / TICK
        unit = 10.0 ** math.floor(math.log10(rough))
        step = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= rough)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [step * index for index in range(first, last + 1)]


def still(figure: go.Figure, words: str, width: int = WIDTH) -> str | None:
    """The figure as one ``<svg>``, ``words`` for those who do not see it; None where it holds more than scatters.

    Traces that wait for a click in the legend are left out.
    """
    seen = [trace for trace in figure.data if trace.visible in (None, True)]
    if not seen or any(trace.type != "scatter" for trace in seen):
        return None
    keys = [trace for trace in seen if trace.showlegend is not False and trace.name]
    if figure.layout.showlegend is False or (len(keys) == 1 and len(seen) == 1):
        keys = []
    room = width - LEFT - (WIDER * (figure.layout.margin.r or 0) + 10)
    entries, rows = _legend(keys, width)
    height = figure.layout.height or FIGURE_HEIGHT
    tall = height - ABOVE - BELOW - rows * ROW
    panes = dict.fromkeys((trace.xaxis or "x", trace.yaxis or "y") for trace in seen)
    drawn = []
    for pair in panes:
        inside = [trace for trace in seen if (trace.xaxis or "x", trace.yaxis or "y") == pair]
        x, y = (_scale(figure, name, inside, room, tall) for name in pair)
        drawn.append(_pane(figure, pair, inside, x, y))
    legend = f'<g transform="translate(0 {height - rows * ROW})">{entries}</g>' if entries else ""
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{html.escape(words)}" style="max-width:100%;height:auto;color:inherit" '
        f'font-family="sans-serif" font-size="{FONT_SIZE}" fill="currentColor">{"".join(drawn)}{legend}</svg>'
    )


def _axis(figure: go.Figure, name: str) -> Any:
    """``x2`` → its layout."""
    return figure.layout[f"{name[0]}axis{name[1:]}"]


def _scale(figure: go.Figure, name: str, traces: Sequence[go.Scatter], room: float, tall: float) -> _Scale:
    axis = _axis(figure, name)
    held = axis if axis.range is not None or not axis.matches else _axis(figure, axis.matches)
    log = axis.type == "log" or held.type == "log"
    low, high = held.range if held.range is not None else _reach(held, name[0], traces, log)
    first, last = axis.domain or (0.0, 1.0)
    if name[0] == "x":
        return _Scale(low, high, LEFT + first * room, LEFT + last * room, log)
    return _Scale(low, high, ABOVE + (1 - first) * tall, ABOVE + (1 - last) * tall, log)


def _reach(axis: Any, letter: str, traces: Sequence[go.Scatter], log: bool) -> tuple[float, float]:
    """The range of an axis that leaves it to its numbers."""
    given = [value for trace in traces for value in getattr(trace, letter)]
    found = [float(value) for value in given if value is not None and math.isfinite(value) and (value > 0 or not log)]
    low, high = (min(found), max(found)) if found else (0.1, 1.0)
    if axis.rangemode == "tozero" and not log:
        low, high = min(0.0, low), max(0.0, high)
    low, high = (math.log10(low), math.log10(high)) if log else (low, high)
    margin = 0.05 * (high - low) or 0.5
    beyond = axis.autorangeoptions.clipmax if axis.autorangeoptions else None
    top = high + margin
    if beyond:
        top = math.log10(beyond) if log else beyond
    return (low if axis.rangemode == "tozero" and low == 0 else low - margin), top


def _pane(figure: go.Figure, pair: tuple[str, str], traces: Sequence[go.Scatter], x: _Scale, y: _Scale) -> str:
    """One pair of axes with all that is drawn on it."""
    across, up = (_axis(figure, name) for name in pair)
    left, right, foot, top = x.start, x.end, y.start, y.end
    parts = []
    if up.visible is not False:
        for place, text in y.ticks(up):
            parts.append(_line(left, place, right, place, opacity=0.13))
            parts.append(_text(left - 7, place + 5, text, "end"))
        parts.append(_text(18, (foot + top) / 2, up.title.text or "", "middle", turned=True))
    if across.visible is not False:
        for place, text in x.ticks(across) if across.showticklabels is not False else ():
            parts.append(_line(place, foot, place, foot + TICK, opacity=0.6))
            parts.append(_text(place, foot + 20, text, "middle"))
        parts.append(_line(left, foot, right, foot, opacity=0.6))
        parts.append(_text((left + right) / 2, foot + 43, across.title.text or "", "middle"))
    # A picture of its own cuts off what lies beyond the axes.
    frame = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{foot - top:.1f}"'
    box = f'viewBox="{left:.1f} {top:.1f} {right - left:.1f} {foot - top:.1f}"'
    inside = "".join(_trace(trace, x, y) for trace in traces)
    inside += "".join(_level(shape, pair, x, y) for shape in figure.layout.shapes)
    parts.append(f'<svg {frame} {box} overflow="hidden">{inside}</svg>')
    parts += [_words(trace, x, y) for trace in traces]
    if pair == ("x", "y"):
        parts += [_note(each, x, y) for each in figure.layout.annotations]
    return "".join(parts)


def _trace(trace: go.Scatter, x: _Scale, y: _Scale) -> str:
    places = [(x(a), y(b)) for a, b in zip(trace.x, trace.y, strict=True)]
    mode, color = trace.mode or "lines", _color(trace)
    parts = []
    if trace.fill == "toself":
        parts.append(f'<path d="{_path(places)}Z" fill="{trace.fillcolor}" stroke="none"/>')
    elif "lines" in mode:
        parts.append(_stroke(_path(places), color, trace.line.width or 2, trace.line.dash))
    if trace.error_y.array is not None:
        ends = zip(trace.x, trace.y, trace.error_y.arrayminus, trace.error_y.array, strict=True)
        bars = [((x(a), y(b - below)), (x(a), y(b + above))) for a, b, below, above in ends]
        parts += [_stroke(_path(bar), color, trace.error_y.thickness or 1.3) for bar in bars]
    if "markers" in mode:
        parts += [_mark(trace, index, *place) for index, place in enumerate(places) if None not in place]
    inside = "".join(parts)
    return f'<g opacity="{trace.opacity}">{inside}</g>' if trace.opacity not in (None, 1) else inside


def _mark(trace: go.Scatter, index: int, x: float | None, y: float | None) -> str:
    marker = trace.marker
    size, symbol, opacity = (_one(each, index) for each in (marker.size, marker.symbol, marker.opacity))
    if size == 0:
        return ""
    radius = (6 if size is None else size) / 2
    base, color = (symbol or "circle").removesuffix("-open"), _one(marker.color, index) or _color(trace)
    stroke = f'stroke="{color}" stroke-width="{1.6 / radius:.2f}"'
    if base in _STROKED:
        look = f'd="{_STROKED[base]}" fill="none" {stroke}'
    else:
        is_open = (symbol or "").endswith("-open")
        look = f'd="{_FILLED.get(base, _FILLED["circle"])}" ' + (
            f'fill="none" {stroke}' if is_open else f'fill="{color}"'
        )
    faint = "" if opacity in (None, 1) else f' opacity="{opacity}"'
    return f'<path {look}{faint} transform="translate({x:.1f} {y:.1f}) scale({radius:g})"/>'


def _level(shape: Any, pair: tuple[str, str], x: _Scale, y: _Scale) -> str:
    """A straight line across the axes, with its words."""
    refs = (shape.xref or "x").removesuffix(" domain"), (shape.yref or "y").removesuffix(" domain")
    is_here = all(ref == own or ref == "paper" for ref, own in zip(refs, pair, strict=True))
    if shape.type != "line" or not is_here:
        return ""
    (a, c), (b, d) = (
        [
            scale.start + at * (scale.end - scale.start) if "domain" in (ref or "") or ref == "paper" else scale(at)
            for at in ends
        ]
        for ref, scale, ends in ((shape.xref, x, (shape.x0, shape.x1)), (shape.yref, y, (shape.y0, shape.y1)))
    )
    if None in (a, b, c, d):
        return ""
    drawn = _stroke(_path([(a, b), (c, d)]), shape.line.color or GUIDE_COLOR, shape.line.width or 1.3, shape.line.dash)
    if shape.label.text and a is not None and b is not None and c is not None:
        at_end = shape.label.textposition == "end"
        drawn += _text(c - 4 if at_end else a + 4, b - 5, shape.label.text, "end" if at_end else "start")
    return drawn


def _words(trace: go.Scatter, x: _Scale, y: _Scale) -> str:
    if "text" not in (trace.mode or ""):
        return ""
    anchor = "start" if "right" in (trace.textposition or "") else "middle"
    shift = 6 if anchor == "start" else 0
    found = zip(trace.x, trace.y, trace.text, strict=True)
    places = [(x(a), y(b), text) for a, b, text in found if text]
    leads = _path([(x(a), y(b)) for a, b in zip(trace.x, trace.y, strict=True)]) if "lines" in trace.mode else ""
    drawn = _stroke(leads, _color(trace), 1) if leads else ""
    size = trace.textfont.size or FONT_SIZE
    return drawn + "".join(
        _text(a + shift, b + 5, text, anchor, size=size) for a, b, text in places if a is not None and b is not None
    )


def _note(note: Any, x: _Scale, y: _Scale) -> str:
    def at(ref: str | None, value: float, scale: _Scale) -> float:
        if ref == "paper" or "domain" in (ref or ""):
            return scale.start + value * (scale.end - scale.start)
        return scale.start + (value - scale.low) / (scale.high - scale.low) * (scale.end - scale.start)

    anchor = {"left": "start", "right": "end"}.get(note.xanchor, "middle")
    down = {"top": 14, "bottom": -4}.get(note.yanchor, 5)
    return _text(at(note.xref, note.x, x), at(note.yref, note.y, y) + down, note.text or "", anchor)


def _legend(keys: Sequence[go.Scatter], width: int) -> tuple[str, int]:
    """(entries, rows)."""
    parts, x, row = [], LEFT * 1.0, 0
    for trace in keys:
        text = (trace.name or "").replace("<br>", " ")
        wide = KEY + WIDER * LETTER * len(re.sub(r"<[^>]*>", "", text)) + 18
        if x > LEFT and x + wide > width:
            x, row = LEFT, row + 1
        y = row * ROW + 8
        if "lines" in (trace.mode or "lines"):
            parts.append(_stroke(f"M{x:.1f} {y}H{x + 26:.1f}", _color(trace), trace.line.width or 2, trace.line.dash))
        if "markers" in (trace.mode or "") and not isinstance(trace.marker.size, (list, tuple)):
            parts.append(_mark(trace, 0, x + 13, y))
        parts.append(_text(x + KEY, y + 5, text, "start"))
        x += wide
    return "".join(parts), row + 1 if keys else 0


def _text(x: float, y: float, text: str, anchor: str, *, size: float = FONT_SIZE, turned: bool = False) -> str:
    """Letters with ``<sup>``, ``<sub>``, ``<br>`` and colors, as Plotly writes them."""
    spans: list[str] = []
    tags: list[tuple[str, str]] = []
    shift = 0.0
    for piece in re.split(r"(<[^>]*>)", text):
        if piece.startswith("<"):
            name = re.sub(r"[</>]", "", piece.partition(" ")[0])
            if name == "br":
                spans.append("")
            elif piece.startswith("</"):
                tags.pop()
            else:
                tags.append((name, piece))
        elif piece:
            wanted = sum(_SHIFTS.get(name, 0) for name, _ in tags) * size
            starts = f' x="{x:.1f}" dy="{1.3 * size + wanted - shift:.1f}"' if spans and spans[-1] == "" else ""
            moved = f' dy="{wanted - shift:.1f}"' if not starts and wanted != shift else ""
            small = ' font-size="72%"' if any(name in _SHIFTS for name, _ in tags) else ""
            color = next((found[1] for _, tag in tags if (found := re.search(r"color:([^;\"]+)", tag))), "")
            fill = f' fill="{color}"' if color else ""
            spans.append(f"<tspan{starts}{moved}{small}{fill}>{html.escape(html.unescape(piece))}</tspan>")
            shift = wanted
    if not any(spans):
        return ""
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    letters = "" if size == FONT_SIZE else f' font-size="{size:g}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{letters}{turn}>{"".join(spans)}</text>'


def _path(places: Iterable[tuple[float | None, float | None]]) -> str:
    parts, is_new = [], True
    for x, y in places:
        if x is None or y is None:
            is_new = True
        else:
            parts.append(f"{'M' if is_new else 'L'}{x:.1f} {y:.1f}")
            is_new = False
    return "".join(parts)


def _stroke(path: str, color: str, width: float, dash: str | None = None) -> str:
    dashes = f' stroke-dasharray="{DASHES[dash]}"' if dash and DASHES.get(dash) else ""
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"{dashes}/>'


def _line(a: float, b: float, c: float, d: float, *, opacity: float) -> str:
    return f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" stroke="currentColor" stroke-opacity="{opacity}"/>'


def _color(trace: go.Scatter) -> str:
    color = trace.line.color or trace.marker.color
    return color if isinstance(color, str) else GUIDE_COLOR


def _one(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, (list, tuple)) else value
