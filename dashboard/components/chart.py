"""A chart as every page shows it: its figure, its words, a caption, its numbers, and what chooses between charts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard.charts.chart import Chart
from dashboard.charts.ghost import above
from dashboard.charts.numbers import readable, width_label
from dashboard.charts.style import CHART_CONFIG, output_title
from dashboard.components.explain import explain, page_answers
from dashboard.components.linked import linked
from dashboard.words.sentences import typeset

_FORMAT = "image_format"
IMAGE_FORMATS = ("svg", "png")
ALL_SEEDS = -1  # is no run's; None would be an empty selectbox
WIDTH, SEED = "m", "seed"  # what clicks on figures choose, as Choice.axis
_NOTHING = object()


@dataclass
class Figures:
    """The figures of one drawing of a page.

    Attributes:
        said: takeaway → figure, in order: what an export holds.
        named: key → figure.
        ghosts: key → figure of an earlier run that stays in sight below the one of this key.
        laid_over: key → (figure, the same above its ghost), from one drawing to the next.
    """

    said: dict[str, go.Figure] = field(default_factory=dict)
    named: dict[str, go.Figure] = field(default_factory=dict)
    ghosts: Mapping[str, go.Figure] = field(default_factory=dict)
    laid_over: dict[str, tuple[go.Figure, go.Figure]] = field(default_factory=dict)

    def take(self, key: str, chart: Chart) -> go.Figure:
        """Note a chart; its figure, above its ghost if there is one."""
        self.said[chart.takeaway] = self.named[key] = chart.figure
        if key not in self.ghosts:
            return chart.figure
        if self.laid_over.get(key, (None,))[0] is not chart.figure:
            self.laid_over[key] = chart.figure, above(chart.figure, self.ghosts[key])
        return self.laid_over[key][1]


_SHOWN: ContextVar[Figures | None] = ContextVar("shown", default=None)


@contextmanager
def shown_charts(figures: Figures | None = None) -> Iterator[Figures]:
    """Every chart that is drawn inside, noted in ``figures``."""
    figures = figures or Figures()
    token = _SHOWN.set(figures)
    try:
        yield figures
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
    figure = chart.figure if shown is None else shown.take(key, chart)
    image = {"format": image_format(), "scale": 2, "filename": key.replace(".", "-")}
    config = {**CHART_CONFIG, "toImageButtonOptions": image}
    st.plotly_chart(figure, key=key, alt=chart.takeaway, config=config)
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
        axis: of the figures (``layout.meta.cursor``) on which a click chooses, or SEED; empty for none.
        at: where on that axis an option is.
    """

    name: str
    label: str
    options: Sequence[Any]
    words: Callable[[Any], str] = str
    pixels: int = 130
    last: bool = False
    axis: str = ""
    at: Callable[[Any], Any] = lambda option: option


def width_choice(points: Sequence[Any]) -> Choice:
    """One of the widths that are finished, the largest at first; a click on a width in a figure chooses it too."""
    widths = [point.width for point in points]
    return Choice("width", "Width m", widths, lambda m: f"m = {width_label(m)}", last=True, axis=WIDTH)


def seed_choice(runs: Iterable[Any]) -> tuple[Choice, ...]:
    """All seeds, or one of them, which a click on its mark or curve chooses too; none where there is but one."""
    seeds = sorted({run.seed for run in runs})
    words = {ALL_SEEDS: "all seeds", **{seed: f"seed {seed}" for seed in seeds}}
    choice = Choice(
        "one_seed",
        "Seed",
        list(words),
        words.__getitem__,
        108,
        axis=SEED,
        at=lambda seed: None if seed == ALL_SEEDS else seed,
    )
    return (choice,) if len(seeds) > 1 else ()


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
                _chooser(page, part)
    return tuple(st.session_state[f"{page}.{part.name}"] for part in parts if isinstance(part, Choice))


def _chooser(page: str, choice: Choice) -> None:
    """The last option (or the first) until a person chooses; what was chosen comes back when it is among them again."""
    key, state = f"{page}.{choice.name}", st.session_state
    chosen = f"{key}.chosen"
    wanted = state.get(chosen, _NOTHING)
    state[key] = wanted if wanted in choice.options else choice.options[-1 if choice.last else 0]
    if choice.axis and (cursors := _LINKED.get()) is not None:
        cursors[choice.axis] = _Cursor(
            chosen, choice.at(state[key]), [(choice.at(each), each) for each in choice.options]
        )
    st.selectbox(
        choice.label,
        choice.options,
        format_func=choice.words,
        key=key,
        on_change=lambda: state.update({chosen: state[key]}),
        label_visibility="collapsed",
        width=choice.pixels,
    )


@dataclass(frozen=True)
class _Cursor:
    """What a click on one axis changes: the entry of the session, where it is now, and (where, option) to choose from.

    Without options any number is taken.
    """

    key: str
    at: Any
    options: Sequence[tuple[Any, Any]] | None = None


_LINKED: ContextVar[dict[str, _Cursor] | None] = ContextVar("linked", default=None)


@contextmanager
def linked_charts(page: str) -> Iterator[None]:
    """One cursor for the charts inside, moved by their choices and by clicks on their marks."""
    cursors: dict[str, _Cursor] = {}
    token = _LINKED.set(cursors)
    try:
        yield
    finally:
        _LINKED.reset(token)

    def follow(values: Mapping[str, Any]) -> None:
        for axis, value in values.items():
            options = cursors[axis].options
            free = [(value, value)] if isinstance(value, (int, float)) else []
            for _, option in (each for each in (free if options is None else options) if each[0] == value):
                st.session_state[cursors[axis].key] = option

    linked(f"{page}.linked", {axis: cursor.at for axis, cursor in cursors.items()}, follow)


def cursor_at(page: str, axis: str) -> float | None:
    """Where a click has put the cursor on an axis without a choice; None before the first one."""
    key = f"{page}.cursor.{axis}"
    at: float | None = st.session_state.get(key)
    if (cursors := _LINKED.get()) is not None:
        cursors[axis] = _Cursor(key, at)
    return at


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
