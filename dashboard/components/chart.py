"""A chart as every page shows it: its figure, its words, a caption, its numbers, and what chooses between charts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.chart import Chart
from dashboard.charts.numbers import readable, width_label
from dashboard.charts.style import CHART_CONFIG, output_title
from dashboard.components.explain import explain, page_answers
from dashboard.words.sentences import typeset
from ntk_core.runs import SeededSpec, Spec

_FORMAT = "image_format"
IMAGE_FORMATS = ("svg", "png")
_SHOWN: ContextVar[dict[str, go.Figure] | None] = ContextVar("shown", default=None)
_SCOPES: ContextVar[tuple[str, ...]] = ContextVar("scopes", default=())


@contextmanager
def shown_charts(specs: Iterable[Spec]) -> Iterator[dict[str, go.Figure]]:
    """Takeaway → figure of every chart that is drawn inside, in order: what an export holds.

    ``specs`` are those of the results that are drawn: what their intervals are about stands below each chart with one.
    """
    figures: dict[str, go.Figure] = {}
    scopes = tuple(dict.fromkeys(spec.scope for spec in specs if isinstance(spec, SeededSpec)))
    tokens = _SHOWN.set(figures), _SCOPES.set(scopes)
    try:
        yield figures
    finally:
        _SHOWN.reset(tokens[0])
        _SCOPES.reset(tokens[1])


def show_chart(page: str, chart: Chart, on_select: Callable[[], None] | None = None) -> None:
    """The heading, the figure, its caption, and its numbers as a table that opens on a click.

    ``page.name`` is the key of the figure in the session, of its words, and of the files that it saves; of the points
    that a person clicked on too, where ``on_select`` is called when there are others.
    """
    key = f"{page}.{chart.name}"
    if chart.heading:
        st.subheader(chart.heading, anchor=False)
    shown = _SHOWN.get()
    if shown is not None:
        shown[chart.takeaway] = chart.figure
    image = {"format": image_format(), "scale": 2, "filename": key.replace(".", "-")}
    config = {**CHART_CONFIG, "toImageButtonOptions": image}
    st.plotly_chart(
        chart.figure,
        key=key,
        alt=chart.takeaway,
        config=config,
        on_select=on_select or "ignore",
        selection_mode="points",
    )
    for sentence in (*chart.caption, *interval_words(chart)):
        st.caption(typeset(sentence))
    explain(key)
    with st.expander("The numbers", icon=":material/table:"):
        st.dataframe(readable(chart.rows), hide_index=True, alt=chart.takeaway)


def interval_words(chart: Chart) -> list[str]:
    """What the intervals of a chart are about, and what they are given; nothing for a chart without any."""
    return [f"95% intervals: {'; or '.join(_SCOPES.get())}, {chart.given}."] if chart.given and _SCOPES.get() else []


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
