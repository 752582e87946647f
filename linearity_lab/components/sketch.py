"""A line drawn on a figure before the data appear: a custom component for mouse, touch and keys."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from ntk_core.markup import JSON

COLUMNS = 33  # as in sketch.js
MOST = 40.0  # |log10| of a drawn line
HTML = '<div class="sketch"></div>'
SCRIPT = Path(__file__).parent / "sketch.js"
CSS = """\
.sketch { font: 15px/1.4 var(--st-font, sans-serif); color: var(--st-text-color) }
.sketch p { margin: 0 0 6px }
.row { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px }
input { flex: 1 1 140px; min-width: 100px; height: 28px; accent-color: #0072b2 }
output { min-width: 5em; font-weight: 600; font-variant-numeric: tabular-nums }
button {
  font: inherit; color: inherit; background: var(--st-background-color); cursor: pointer; min-height: 36px;
  padding: 4px 12px; border: 1px solid color-mix(in srgb, currentColor 45%, transparent); border-radius: 6px;
}
.primary:enabled { background: #005a8c; border-color: #005a8c; color: #ffffff; font-weight: 600 }
button:disabled { opacity: 0.6; cursor: default }
:is(button, input):focus-visible { outline: 3px solid currentColor; outline-offset: 2px }
"""
_mount = st.components.v2.component(
    "linearity_lab_sketch",
    html=HTML,
    css=CSS,
    js=SCRIPT.read_text(encoding="utf-8"),
)


def sketch_data(plot: str, ends: tuple[float, float], start: float, letter: str, words: Mapping[str, str]) -> JSON:
    """Return the data of the component.

    Args:
        plot: CSS class of the figure's key, without ``st-key-``.
        ends: first and last swept value.
        start: value at the first one.
        letter: symbol of the swept quantity.
    """
    low, high = (math.log10(end) for end in ends)
    return {"plot": plot, "ends": (low, high), "start": math.log10(start), "letter": letter, "words": dict(words)}


def sketch(key: str, data: JSON, drawn: Callable[[float, list[tuple[float, float]]], None]) -> None:
    """Let a user draw a line from the first point of a figure to its right edge.

    Args:
        data: see :func:`sketch_data`.
        drawn: callback with the exponent of the line (least squares) and its (x, y), before the page reruns.
    """

    def take() -> None:
        if (line := from_browser(st.session_state[key].drawn, data["ends"])) is not None:
            drawn(*line)

    _mount(key=key, data=data, on_drawn_change=take)


def from_browser(heights: Any, ends: Sequence[float]) -> tuple[float, list[tuple[float, float]]] | None:
    """Return the exponent of a drawn line and its (x, y) from a browser's report; None for invalid reports.

    Args:
        heights: log10 of the line at equal distances of log10 x.
        ends: log10 of the first and the last x.
    """
    usable = isinstance(heights, list) and len(heights) == COLUMNS
    if not usable or not all(isinstance(each, (int, float)) and abs(each) <= MOST for each in heights):
        return None
    columns = np.linspace(ends[0], ends[1], COLUMNS)
    power = float(np.polyfit(columns, np.asarray(heights, float), 1)[0])
    return power, [(10.0**x, 10.0**y) for x, y in zip(columns.tolist(), heights, strict=True)]
