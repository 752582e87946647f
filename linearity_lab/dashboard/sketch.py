"""A line drawn on a figure before the data appear: a custom component for mouse, touch and keys."""

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from linearity_lab.dashboard.components import component
from linearity_lab.dashboard.scripts import SKETCH, SKETCH_HTML
from ntk_core.markup import JSON

COLUMNS = 33  # as in sketch.js
MOST = 40.0  # |log10| of a drawn line
_mount = component("sketch", SKETCH, SKETCH_HTML)


def sketch(key: str, data: JSON, drawn: Callable[[float, list[tuple[float, float]]], None]) -> None:
    """Let a user draw a line from the first point of a figure to its right edge.

    See ``lecture.drawing.to_draw``.

    ``drawn`` receives the exponent of the line (least squares) and its (x, y), before the page
    reruns.
    """

    def take() -> None:
        if (line := from_browser(st.session_state[key].drawn, data["ends"])) is not None:
            drawn(*line)

    _mount(key=key, data=data, on_drawn_change=take)


def from_browser(
    heights: object, ends: Sequence[float]
) -> tuple[float, list[tuple[float, float]]] | None:
    """Return the exponent of a drawn line and its (x, y) from a browser's report.

    None for invalid reports.

    ``heights`` are log10 of the line at equal distances of log10 x, from the first of
    ``ends`` to the last.
    """
    if not isinstance(heights, list) or len(heights) != COLUMNS:
        return None
    if not all(isinstance(each, (int, float)) and abs(each) <= MOST for each in heights):
        return None
    columns = np.linspace(ends[0], ends[1], COLUMNS)
    power = float(np.polyfit(columns, np.asarray(heights, float), 1)[0])
    return power, [(10.0**x, 10.0**y) for x, y in zip(columns.tolist(), heights, strict=True)]
