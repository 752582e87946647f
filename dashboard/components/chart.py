"""A figure as every page shows it: with its takeaway in words, a caption and the numbers behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.readable import readable
from dashboard.charts.style import CHART_CONFIG
from dashboard.components.explain import explain
from dashboard.words.sentences import typeset

T = TypeVar("T")
_FORMAT = "image_format"
IMAGE_FORMATS = ("svg", "png")
_SHOWN: ContextVar[dict[str, go.Figure] | None] = ContextVar("shown", default=None)


@contextmanager
def shown_charts() -> Iterator[dict[str, go.Figure]]:
    """Takeaway → figure of every chart that is drawn inside, in order: what an export holds."""
    figures: dict[str, go.Figure] = {}
    token = _SHOWN.set(figures)
    try:
        yield figures
    finally:
        _SHOWN.reset(token)


def chart(
    figure: go.Figure, key: str, alt: str, rows: Sequence[dict[str, object]], caption: Sequence[str] = ()
) -> None:
    """The figure, its caption, one sentence per entry, and its numbers as a table that opens on a click.

    Args:
        key: name of the chart in the session and of the files it saves.
        alt: what the figure shows, as a sentence.
    """
    shown = _SHOWN.get()
    if shown is not None:
        shown[alt] = figure
    image = {"format": image_format(), "scale": 2, "filename": key.replace(".", "-")}
    st.plotly_chart(figure, key=key, alt=alt, config={**CHART_CONFIG, "toImageButtonOptions": image})
    for sentence in caption:
        st.caption(typeset(sentence))
    explain(key)
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(readable(rows), hide_index=True, alt=alt)


def chooser(
    label: str, options: Sequence[T], words: Callable[[T], str], *, key: str, pixels: int, last: bool = True
) -> T:
    """One of ``options``, which may become more while points arrive: the last (or the first) until a person chooses."""
    chosen = f"{key}.chosen"
    if st.session_state.get(key) not in options or not st.session_state.get(chosen):
        st.session_state[key] = options[-1 if last else 0]

    def choose() -> None:
        st.session_state[chosen] = True

    return st.selectbox(
        label, options, format_func=words, key=key, on_change=choose, label_visibility="collapsed", width=pixels
    )


def image_format() -> str:
    """What the camera button of the charts saves."""
    return st.session_state.get(_FORMAT) or IMAGE_FORMATS[0]


def image_format_chooser() -> None:
    """SVG or PNG for the camera button of the charts."""
    st.segmented_control(
        "Figures, from the camera button of each chart, as",
        IMAGE_FORMATS,
        default=image_format(),
        key=_FORMAT,
        format_func=str.upper,
    )
