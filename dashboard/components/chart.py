"""A chart as every page shows it: its figure, its words, a caption, its numbers, and what chooses between charts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import streamlit as st

from dashboard.charts.chart import Chart
from dashboard.charts.numbers import readable, width_label
from dashboard.charts.style import CHART_CONFIG, output_title
from dashboard.components.explain import explain, page_answers
from dashboard.words.sentences import typeset

_SHOWN: ContextVar[dict[str, Chart] | None] = ContextVar("shown", default=None)


@contextmanager
def shown_charts() -> Iterator[dict[str, Chart]]:
    """Key → chart, of every chart that is drawn inside, in order: what an export holds."""
    charts: dict[str, Chart] = {}
    token = _SHOWN.set(charts)
    try:
        yield charts
    finally:
        _SHOWN.reset(token)


def show_chart(page: str, chart: Chart) -> None:
    """The heading, the figure, its caption, and its numbers as a table that opens on a click.

    ``page.name`` is the key of the figure in the session, of its words, and of the files that it saves.
    """
    key = f"{page}.{chart.name}"
    if chart.heading:
        st.subheader(chart.heading, anchor=False)
    shown = _SHOWN.get()
    if shown is not None:
        shown[key] = chart
    image = {"format": "svg", "scale": 2, "filename": key.replace(".", "-")}
    config = {**CHART_CONFIG, "toImageButtonOptions": image}
    st.plotly_chart(chart.figure, key=key, alt=chart.takeaway, config=config)
    for sentence in chart.caption:
        st.caption(typeset(sentence))
    explain(key)
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(readable(chart.rows), hide_index=True, alt=chart.takeaway)


def show_in_pairs(page: str, charts: Sequence[Chart], *, with_answers: bool = True) -> None:
    """Two charts per row, so that a phone shows them in their order; below the first two what the page shows."""
    for first in range(0, len(charts), 2):
        for column, each in zip(st.columns(2, gap="medium"), charts[first : first + 2], strict=False):
            with column:
                show_chart(page, each)
        if first == 0 and with_answers:
            page_answers(page)


@dataclass(frozen=True)
class Choice:
    """One of some options, to be chosen above the charts.

    Attributes:
        name: ``page.name`` is its key in the session.
        words: an option as people read it.
        pixels: width of the widget.
        last: whether the last option is shown until a person chooses, else the first.
    """

    name: str
    label: str
    options: Sequence[Any]
    words: Callable[[Any], str] = str
    pixels: int = 130
    last: bool = False


def width_choice(points: Sequence[Any]) -> Choice:
    """One of the widths that are finished, the largest at first."""
    return Choice("width", "Width m", [point.width for point in points], lambda m: f"m = {width_label(m)}", last=True)


def output_choice(outputs: Sequence[str], pixels: int = 190) -> Choice:
    """One of the outputs that occur."""
    return Choice("output", "Output φ", outputs, output_title, pixels)


def choose(page: str, *parts: str | Choice) -> tuple[Any, ...]:
    """What is chosen, in a row of choices with words between them."""
    with st.container(horizontal=True, vertical_alignment="center"):
        for part in parts:
            if isinstance(part, str):
                st.subheader(part, anchor=False, width="content")
            else:
                _chooser(f"{page}.{part.name}", part)
    return tuple(st.session_state[f"{page}.{part.name}"] for part in parts if isinstance(part, Choice))


def _chooser(key: str, choice: Choice) -> None:
    """The options may become more while points arrive: the last (or the first) is shown until a person chooses."""
    chosen = f"{key}.chosen"
    if st.session_state.get(key) not in choice.options or not st.session_state.get(chosen):
        st.session_state[key] = choice.options[-1 if choice.last else 0]
    st.selectbox(
        choice.label,
        choice.options,
        format_func=choice.words,
        key=key,
        on_change=lambda: st.session_state.update({chosen: True}),
        label_visibility="collapsed",
        width=choice.pixels,
    )
