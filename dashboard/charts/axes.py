"""What all figures share: logarithmic axes with one kind of labels, dashed levels, fonts, legend and height."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import plotly.graph_objects as go

from dashboard.charts.numbers import power_of_ten
from dashboard.charts.style import FIGURE_HEIGHT, FONT_SIZE, GUIDE_COLOR

GUIDE_FONT = {"color": GUIDE_COLOR, "size": FONT_SIZE}
GUIDE_LINE = {"color": GUIDE_COLOR, "dash": "dash", "width": 1.3}
PLAIN_DECADES = (-4, 3)  # 0.0001 … 1,000 are written out; where values go beyond, all labels are powers of ten
MOST_DECADES = 8  # labels on an axis


def log_ticks(values: Iterable[float], decades_from: float = 30) -> dict[str, Any]:
    """Type and ticks of a logarithmic axis for ``values``, all labels of one kind.

    One tick per decade, more where the values span less than a factor of ``decades_from``.
    """
    positive = [value for value in values if value is not None and 0 < value < math.inf]
    low, high = (math.log10(min(positive)), math.log10(max(positive))) if positive else (0.0, 0.0)
    if high - low <= math.log10(decades_from):
        return {"type": "log", "dtick": "D2", "tickformat": ".4~g"}
    first, last = math.floor(low), math.ceil(high)
    if PLAIN_DECADES[0] <= first and last <= PLAIN_DECADES[1] + 1:
        return {"type": "log", "dtick": 1, "tickformat": ",~g"}
    step = math.ceil((last - first) / MOST_DECADES)
    exponents = [step * k for k in range(math.floor(first / step) - 1, math.ceil(last / step) + 2)]
    return {
        "type": "log",
        "tickvals": [10.0**exponent for exponent in exponents],
        "ticktext": [power_of_ten(exponent) for exponent in exponents],
    }


def spaced(values: Sequence[float], most: int = 9) -> list[float]:
    """The values, thinned where their labels would overlap on a logarithmic axis."""
    if not values:
        return []
    gap = math.log(values[-1] / values[0]) / most
    kept: list[float] = []
    for value in values:
        if not kept or math.log(value / kept[-1]) >= gap:
            kept.append(value)
    return kept


def drawn_values(figure: go.Figure, row: int = 1) -> list[float]:
    """All numbers on the vertical axis of a row of a figure with one column."""
    axis = "y" if row == 1 else f"y{row}"
    return [value for trace in figure.data if (trace.yaxis or "y") == axis for value in trace.y if value is not None]


def add_level(
    figure: go.Figure, value: float, text: str, *, row: int = 1, dash: str = "dash", above: bool = True
) -> None:
    """A horizontal line across a row, with words at its left end."""
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
            "textposition": "start",
            "yanchor": "bottom" if above else "top",
        },
    )


def add_guide(figure: go.Figure, x: Sequence[float], y: Sequence[float], words: str, name: str) -> None:
    """A dashed line with words at its right end."""
    figure.add_scatter(
        x=x,
        y=y,
        mode="lines+text",
        text=["", "\u2002" + words],
        textposition="middle right",
        textfont=GUIDE_FONT,
        line=GUIDE_LINE,
        hoverinfo="skip",
        showlegend=False,
        name=name,
    )


def finish(figure: go.Figure) -> go.Figure:
    """Fonts, legend and height that all figures share."""
    # The legend below leaves the width to the data, also on a phone.
    font = {"size": FONT_SIZE}
    figure.update_xaxes(tickfont=font, title_font=font)
    figure.update_yaxes(tickfont=font, title_font=font)
    return figure.update_layout(
        height=FIGURE_HEIGHT,
        uirevision="keep",
        hovermode="closest",
        modebar={"color": GUIDE_COLOR},  # what is drawn by default is too pale to be seen on a projector
        margin={"l": 8, "r": 8, "t": 28, "b": 8},
        legend={
            "orientation": "h",
            # At the foot of the figure, however many rows it has: the axis and its title keep clear of it.
            "yref": "container",
            "yanchor": "bottom",
            "y": 0,
            "maxheight": 0.6,  # beyond, it scrolls
            "x": 0,
            "xanchor": "left",
            "font": font,
        },
    )
