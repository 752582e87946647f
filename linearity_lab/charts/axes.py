"""Shared parts of figures: fonts, legend, height and guides.

They also format numbers, and label logarithmic axes uniformly.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

import plotly.graph_objects as go

from linearity_lab.charts.style import FIGURE_HEIGHT, FONT_SIZE, GUIDE_COLOR
from ntk_core.fits import PowerLaw, condition, exponent_words, remarks
from ntk_core.markup import JSON, without_marks_inside
from ntk_core.numbers import PLAIN_EXPONENTS, number, power_of, scientific, width_label

_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
DIGITS = 5  # significant digits of numbers in tables


def rate_words(rates: Iterable[float]) -> str:
    """Format learning rates as a number or a range, ``0.51–0.63``; a dash without runs."""
    known = sorted(rates)
    if not known:
        return "–"
    finite = [rate for rate in known if math.isfinite(rate)]
    shown = dict.fromkeys(number(rate, 3) for rate in (finite[:1] + finite[-1:]))
    return "–".join(shown) or "none"


def law_words(law: PowerLaw) -> str:
    """Format the exponent with its remarks.

    ``(−0.86 ± 0.04); last decade −0.96; not yet settled``.
    """
    return "; ".join([f"({exponent_words(law)})", *filter(None, [*remarks(law), condition(law)])])


def given_runs(laws: Iterable[PowerLaw | None]) -> str:
    """Describe the runs behind the intervals: ``30 converged runs``; empty without intervals."""
    counts = sorted(
        law.num_values for law in laws if law is not None and math.isfinite(law.interval)
    )
    if len(counts) < 2:
        return f"{counts[0]} converged runs" if counts else ""
    span = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f"converged runs, {span} per exponent"


def seed_words(seeds: Sequence[object]) -> str:
    """Format seeds: ``seed 0``, ``seeds 0, 3``."""
    return f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return uniform labels of an axis: powers of ten for all if any needs one."""
    plain = all(power_of(tick) in PLAIN_EXPONENTS for tick in ticks if tick)
    return [width_label(tick) if plain else scientific(tick) for tick in ticks]


def readable(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Round the rows of a table to five significant digits.

    Also remove invisible marks from its texts.

    Exports keep all digits and letters.
    """
    found = []
    for row in rows:
        rounded = {}
        for name, value in row.items():
            is_number = isinstance(value, float)
            rounded[name] = float(f"{value:.{DIGITS}g}") if is_number else value
        found.append(without_marks_inside(rounded))
    return found


def plain_symbols(text: str) -> str:
    """Return the title of an axis without tags: λ_min, w₀, m^−1/2."""
    text = re.sub(r"<sub>(\d+)</sub>", lambda found: found[1].translate(_SUBSCRIPTS), text)
    text = text.replace("<sub>", "_").replace("<sup>", "^")
    return re.sub(r"<[^>]*>", "", text)


def beginning(text: str) -> str:
    """Capitalize the first word of a sentence, unless it is a symbol."""
    is_word = re.fullmatch(r"[A-Za-z]{2,}(-[a-z]+)?[:,]?", text.partition(" ")[0])
    return text[0].upper() + text[1:] if is_word else text


GUIDE_FONT = {"size": FONT_SIZE - 1}  # the text color: no gray is readable on both white and black
GUIDE_LINE = {"color": GUIDE_COLOR, "dash": "dash", "width": 1.3}
# ``meta`` of traces: what they are, for readers of figures, whose names and symbols are for the
# eye.
GUIDE: JSON = {"guide": True}  # a slope, not data
SEEDS: JSON = {"seeds": True}  # one mark per run
MEANS: JSON = {"means": True}  # the mean over seeds, with its "title" without an exponent
GHOST: JSON = {"ghost": True}  # a pale curve of an earlier figure
LABEL: JSON = {"label": True}  # words at the end of a curve


def is_marked(trace: go.Scatter, mark: JSON) -> bool:
    """Whether a trace states that it is a guide, single seeds or a ghost."""
    return isinstance(trace.meta, dict) and all(trace.meta.get(name) for name in mark)


MOST_DECADES = 8  # labels on an axis
# Ticks within a decade, where the values span less than the factor.
MANTISSAS = ((3.0, (1, 1.5, 2, 3, 4, 5, 6, 8)), (math.inf, (1, 2, 5)))
# The vertical axis is at least this long, so that a flat line looks flat.
LEAST_DECADES = 1.5
BEYOND = 10 ** (LEAST_DECADES / 2)  # how far outside the values an axis can have ticks
LONG_LABEL = 7  # letters; longer labels are thinned
PLAIN_TICKS = ",~g"  # of linear axes: 0.05, 20,000


def log_ticks(values: Iterable[float], decades_from: float = 30) -> JSON:
    """Return type and ticks of a logarithmic axis for ``values``, with uniform labels.

    One tick per decade, more where the values span less than a factor of ``decades_from``.
    """
    positive = [value for value in values if value is not None and 0 < value < math.inf]
    low, high = (min(positive), max(positive)) if positive else (1.0, 1.0)
    first = math.floor(math.log10(low))
    last = math.ceil(math.log10(high))
    if high <= decades_from * low:
        mantissas = next(found for factor, found in MANTISSAS if high < factor * low)
        ticks = [m * 10.0**exponent for exponent in range(first - 1, last + 1) for m in mantissas]
    else:
        step = max(1, math.ceil((last - first) / MOST_DECADES))
        ticks = [
            10.0 ** (step * k)
            for k in range(math.floor(first / step) - 1, math.ceil(last / step) + 2)
        ]
    shown = [tick for tick in ticks if low / BEYOND <= tick <= high * BEYOND]
    return {"type": "log", "tickvals": shown, "ticktext": tick_labels(shown)}


def swept_ticks(values: Sequence[float], first: Sequence[float] = ()) -> JSON:
    """Return ticks at the swept values, ``first`` at some of them, and the range with a margin.

    Logarithmic.
    """
    widest = max(map(len, tick_labels(values)), default=0)
    ticks = spaced(values, 9 if widest < LONG_LABEL else 7, first)
    ends = with_margin(values, log=True, share=0.06, least=0.3) if values else None
    return {"type": "log", "tickvals": ticks, "ticktext": tick_labels(ticks), "range": ends}


def tall_ticks(values: Sequence[float]) -> JSON:
    """Return ticks and range of a logarithmic axis, long enough for a flat line to look flat."""
    low = math.log10(min(values))
    high = math.log10(max(values))
    spare = max(0.0, LEAST_DECADES - (high - low)) / 2 + 0.08
    ends = [low - spare, high + spare]
    return {**log_ticks([10**end for end in ends], 100), "range": ends}


def spaced(values: Sequence[float], most: int = 9, first: Sequence[float] = ()) -> list[float]:
    """Thin values whose labels would overlap on a logarithmic axis.

    Keep both ends, then ``first``.
    """
    if not values:
        return []
    gap = math.log(values[-1] / values[0]) / most
    kept: list[float] = []
    ends = first or values
    for value in (ends[0], ends[-1], *first, *values):
        if value not in kept and all(abs(math.log(value / each)) >= gap for each in kept):
            kept.append(value)
    return sorted(kept)


def with_margin(
    values: Sequence[float], *, log: bool, share: float = 0.04, least: float = 0.5
) -> list[float]:
    """Return a range around these values, in powers of ten on a logarithmic axis."""
    low = min(values)
    high = max(values)
    if log:
        low = math.log10(low)
        high = math.log10(high)
    margin = share * (high - low) or least
    return [low - margin, high + margin]


def drawn_values(figure: go.Figure, row: int = 1) -> list[float]:
    """Return all numbers on the vertical axis of a row of a figure with one column."""
    axis = "y" if row == 1 else f"y{row}"
    drawn: list[float] = []
    for trace in figure.data:
        if (trace.yaxis or "y") == axis:
            drawn += [value for value in trace.y if value is not None]
    return drawn


def add_level(
    figure: go.Figure,
    value: float,
    text: str,
    *,
    row: int = 1,
    dash: str = "dash",
    above: bool = True,
    at_end: bool = False,
) -> None:
    """Draw a horizontal line across a row, with words at its left or right end."""
    axis = "" if row == 1 else str(row)
    figure.add_shape(
        type="line",
        xref=f"x{axis} domain",
        yref=f"y{axis}",
        x0=0,
        x1=1,
        y0=value,
        y1=value,
        line={**GUIDE_LINE, "dash": dash},
        label={
            "text": text,
            "font": GUIDE_FONT,
            "textposition": "end" if at_end else "start",
            "yanchor": "bottom" if above else "top",
        },
    )


def finish(figure: go.Figure) -> go.Figure:
    """Set the fonts, number format, legend and height that all figures share."""
    axes = {
        name: figure.layout[name].type == "log"
        for name in figure.layout
        if name[:5] in ("xaxis", "yaxis")
    }
    return figure.update_layout(look(axes))


def look(axes: Mapping[str, bool]) -> JSON:
    """Return the layout that :func:`finish` sets.

    It follows from the names of the axes and whether they are logarithmic.

    Pass it with the layout of a new figure if possible, since each later change takes
    Plotly milliseconds.
    """
    font = {"size": FONT_SIZE}
    layout: JSON = {}
    for name, is_log in axes.items():
        layout[name] = {"tickfont": font, "title": {"font": font}}
        if name[0] == "x":
            layout[name]["tickangle"] = 0  # on a phone look.css removes every other label
        if not is_log:
            layout[name]["tickformat"] = PLAIN_TICKS
    # The legend below leaves the width to the data, also on a phone.
    return layout | {
        "height": FIGURE_HEIGHT,
        "uirevision": "keep",
        "hovermode": "closest",
        "modebar": {"color": GUIDE_COLOR},  # Plotly's default is too pale on a projector
        "margin": {"l": 8, "r": 8, "t": 28, "b": 8},
        "legend": {
            "orientation": "h",
            # At the bottom of the figure, below the axis and its title.
            "yref": "container",
            "yanchor": "bottom",
            "y": 0,
            "maxheight": 0.6,  # beyond, it scrolls
            "x": 0,
            "xanchor": "left",
            "font": font,
        },
    }
