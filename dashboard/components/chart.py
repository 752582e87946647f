"""A chart as every page shows it: its figure, its words, a caption, its numbers, and what chooses between charts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.chart import Chart
from dashboard.charts.numbers import width_label
from dashboard.charts.style import CHART_CONFIG, output_title
from dashboard.components.explain import about, formula, things_to_try, what_to_see
from dashboard.words.sentences import typeset

_FORMAT = "image_format"
IMAGE_FORMATS = ("svg", "png")
LabelVisibility = Literal["visible", "collapsed"]
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


@dataclass(frozen=True)
class Panel:
    """One of the figures of a page, with the choices that belong to it alone.

    Attributes:
        title: its tab, where it is not the first one.
        draw: shows the choices and returns the chart, or several that belong together, or shows something of its own.
    """

    title: str
    draw: Callable[[], Chart | Sequence[Chart] | None]


def panels(charts: Sequence[Chart], titles: Mapping[str, str] | None = None) -> list[Panel]:
    """A panel for each chart, titled by its name in ``titles``, else by its heading."""
    return [Panel((titles or {}).get(chart.name, chart.heading), partial(_itself, chart)) for chart in charts]


def show_panels(page: str, shown: Sequence[Panel], claim: Callable[[], None]) -> None:
    """The first figure large with its explanation beside it, the others in tabs below."""
    first, *others = shown
    _show_panel(page, first, claim)
    if others:
        titles = [each.title for each in others]
        for tab, panel in zip(st.tabs(titles, key=f"{page}.tabs"), others, strict=True):
            with tab:
                _show_panel(page, panel)


def _show_panel(page: str, panel: Panel, claim: Callable[[], None] | None = None) -> None:
    # look.css puts the words below the figure where there is no room beside it.
    with st.container(key=f"figure-{'first' if claim else panel.title}"):
        figure, margin = st.columns([7, 3], gap="medium")
    with figure:
        drawn = panel.draw()
        charts = [drawn] if isinstance(drawn, Chart) else list(drawn or ())
        alone = charts[0] if len(charts) == 1 else None
        if alone is not None:
            _show_figure(page, alone)
    with margin:
        if claim is not None:
            claim()
        if alone is not None:
            what_to_see(f"{page}.{alone.name}")
        if claim is not None:
            things_to_try(page)
        if alone is not None:
            about(f"{page}.{alone.name}", alone, page if claim else "")
    if alone is None:
        show_in_pairs(page, charts)


def show_in_pairs(page: str, charts: Sequence[Chart]) -> None:
    """Two charts per row, so that a phone shows them in their order."""
    for first in range(0, len(charts), 2):
        for column, each in zip(st.columns(2, gap="medium"), charts[first : first + 2], strict=False):
            with column:
                show_chart(page, each)


def show_chart(page: str, chart: Chart) -> None:
    """The heading, the figure, its caption, its formula, and what explains it and its numbers, one below the other.

    ``page.name`` is the key of the figure in the session, of its words, and of the files that it saves.
    """
    if chart.heading:
        st.subheader(chart.heading, anchor=False)
    _show_figure(page, chart)
    formula(f"{page}.{chart.name}")
    about(f"{page}.{chart.name}", chart)


def _show_figure(page: str, chart: Chart) -> None:
    """The figure and its caption."""
    key = f"{page}.{chart.name}"
    shown = _SHOWN.get()
    if shown is not None:
        shown[chart.takeaway] = chart.figure
    image = {"format": image_format(), "scale": 2, "filename": key.replace(".", "-")}
    config = {**CHART_CONFIG, "toImageButtonOptions": image}
    st.plotly_chart(chart.figure, key=key, alt=chart.takeaway, config=config)
    for sentence in chart.caption:
        st.caption(typeset(sentence))


def _itself(chart: Chart) -> Chart:
    return chart


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


def choose(page: str, *parts: str | Choice, more: Sequence[Choice] = ()) -> tuple[Any, ...]:
    """What is chosen, in a row of choices with words between them; those that few need behind "View"."""
    with st.container(horizontal=True, vertical_alignment="center"):
        for part in parts:
            if isinstance(part, str):
                st.subheader(part, anchor=False, width="content")
            else:
                _chooser(f"{page}.{part.name}", part)
        if more:
            with st.popover("View", icon=":material/visibility:", type="tertiary"):
                for choice in more:
                    _chooser(f"{page}.{choice.name}", choice, label="visible")
    chosen = [part for part in (*parts, *more) if isinstance(part, Choice)]
    return tuple(st.session_state[f"{page}.{part.name}"] for part in chosen)


def _chooser(key: str, choice: Choice, label: LabelVisibility = "collapsed") -> None:
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
        label_visibility=label,
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
