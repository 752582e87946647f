"""A chart as every page shows it: its figure, its words, a caption, its numbers, and what chooses between charts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.ghost import above
from linearity_lab.charts.style import CHART_CONFIG, output_title
from linearity_lab.charts.vector import rows_as_pictures
from linearity_lab.components.explain import about, formula, things_to_try, what_to_see
from linearity_lab.components.linked import linked
from linearity_lab.words.sentences import plain, typeset
from ntk_core.numbers import width_label
from ntk_core.runs import SeededSpec, Spec

ALL_SEEDS = -1  # is no run's; None would be an empty selectbox
MOST_CHIPS, CHIP_LETTERS = 4, 48  # of options that stand side by side; more of them are a list
WIDTH, SEED = "m", "seed"  # what clicks on figures choose, as Choice.axis
LabelVisibility = Literal["visible", "collapsed"]
_NOTHING = object()


@dataclass
class Figures:
    """The figures of one drawing of a page.

    Attributes:
        charts: key → chart, in order: what an export holds.
        ghosts: key → figure of an earlier run that stays in sight below the one of this key.
        laid_over: key → (figure, the same above its ghost), from one drawing to the next.
        growing: whether points are still to come: then only what is in sight is sent to the browser.
    """

    charts: dict[str, Chart] = field(default_factory=dict)
    ghosts: Mapping[str, go.Figure] = field(default_factory=dict)
    laid_over: dict[str, tuple[go.Figure, go.Figure]] = field(default_factory=dict)
    growing: bool = False

    def take(self, key: str, chart: Chart) -> go.Figure:
        """Note a chart; its figure, above its ghost if there is one."""
        self.charts[key] = chart
        if key not in self.ghosts:
            return chart.figure
        if self.laid_over.get(key, (None,))[0] is not chart.figure:
            self.laid_over[key] = chart.figure, above(chart.figure, self.ghosts[key])
        return self.laid_over[key][1]


_SCOPES: ContextVar[tuple[str, ...]] = ContextVar("scopes", default=())
_SHOWN: ContextVar[Figures | None] = ContextVar("shown", default=None)
_IN_SIGHT: ContextVar[bool] = ContextVar("in_sight", default=True)


@contextmanager
def shown_charts(specs: Iterable[Spec] = (), figures: Figures | None = None) -> Iterator[Figures]:
    """Every chart that is drawn inside, noted in ``figures``; by default where those around it are noted, if any.

    ``specs`` are those of the results that are drawn: what their intervals are about stands below each chart with one.
    """
    figures = figures or _SHOWN.get() or Figures()
    scopes = tuple(dict.fromkeys(spec.scope for spec in specs if isinstance(spec, SeededSpec)))
    tokens = _SHOWN.set(figures), _SCOPES.set(scopes)
    try:
        yield figures
    finally:
        _SHOWN.reset(tokens[0])
        _SCOPES.reset(tokens[1])


OPENED_TAB = "opened_tab"  # page.OPENED_TAB: the figure that a link leads to


@dataclass(frozen=True)
class Panel:
    """One of the figures of a page, with the choices that belong to it alone.

    Attributes:
        title: its tab, where it is not the first one.
        draw: shows the choices and returns the chart, or several that belong together, or shows something of its own.
        on_select: called when a person clicks on other points of its one chart.
        below: what follows below the figure, such as what was clicked on.
    """

    title: str
    draw: Callable[[], Chart | Sequence[Chart] | None]
    on_select: Callable[[], None] | None = None
    below: Callable[[], None] | None = None


def panels(charts: Sequence[Chart], titles: Mapping[str, str] | None = None) -> list[Panel]:
    """A panel for each chart, titled by its name in ``titles``, else by its heading."""
    return [Panel((titles or {}).get(chart.name, chart.heading), partial(_itself, chart)) for chart in charts]


def open_tab(page: str, title: str) -> None:
    """Let the page open with this one of its figures in sight; with the first one where there is none of this title."""
    st.session_state[f"{page}.{OPENED_TAB}"] = title


def show_panels(page: str, shown: Sequence[Panel], claim: Callable[[], None]) -> None:
    """The first figure large below its sentence, then its words; the others in tabs below."""
    first, *others = shown
    _show_panel(page, first, claim)
    cursors = {} if (found := _LINKED.get()) is None else found.cursors
    if others:
        titles = [each.title for each in others]
        wanted = st.session_state.get(f"{page}.{OPENED_TAB}")
        tabs = st.tabs(titles, key=f"{page}.tabs", default=wanted if wanted in titles else None, on_change="rerun")
        for tab, panel in zip(tabs, others, strict=True):
            chosen = set(cursors)
            with tab, _in_sight(bool(tab.open)):
                charts = _show_panel(page, panel)
            if len(charts) == 1 and set(cursors) - chosen and st.session_state.get(f"{page}.clicked"):
                show_beside(charts[0])


def show_beside(chart: Chart) -> None:
    """Show a clicked run beside the figure: its first two rows as small pictures, and the sentence of its chart."""
    if (linked_here := _LINKED.get()) is not None:
        pictures = [{"title": title, "picture": picture} for title, picture in rows_as_pictures(chart.figure)[:2]]
        linked_here.answer = {"pictures": pictures, "words": chart.takeaway}


def show_alone(page: str, panel: Panel) -> None:
    """One panel with its choices, its figures and their captions, and nothing else."""
    charts = drawn_charts(panel)
    for chart in charts:
        if len(charts) > 1:
            st.subheader(chart.heading, anchor=False)
        _show_figure(page, chart, panel.on_select if len(charts) == 1 else None)


def drawn_charts(panel: Panel) -> list[Chart]:
    """The charts of a panel, with its choices; none where it shows something of its own."""
    drawn = panel.draw()
    return [drawn] if isinstance(drawn, Chart) else list(drawn or ())


@contextmanager
def _in_sight(yes: bool) -> Iterator[None]:
    token = _IN_SIGHT.set(yes)
    try:
        yield
    finally:
        _IN_SIGHT.reset(token)


def _show_panel(page: str, panel: Panel, claim: Callable[[], None] | None = None) -> list[Chart]:
    said = st.container()
    charts = drawn_charts(panel)
    alone = charts[0] if len(charts) == 1 else None
    if alone is None:
        show_in_pairs(page, charts)
    else:
        if claim is not None:
            said.markdown(f"**{typeset(alone.sentence)}**")
        _show_figure(page, alone, panel.on_select)
    if panel.below is not None:
        panel.below()
    words, links = st.columns(2, gap="medium") if claim is not None else (st.container(), st.container())
    if alone is not None:
        with words:
            what_to_see(f"{page}.{alone.name}")
    with links, st.container(gap="xxsmall"):
        if claim is not None:
            claim()
            things_to_try(page)
        if alone is not None:
            about(f"{page}.{alone.name}", alone, page if claim else "")
    return charts


def show_in_pairs(page: str, charts: Sequence[Chart]) -> None:
    """Two charts per row, so that a phone shows them in their order; a last one has the row for itself."""
    for first in range(0, len(charts), 2):
        pair = charts[first : first + 2]
        for column, each in zip(st.columns(len(pair), gap="medium"), pair, strict=True):
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


def _show_figure(page: str, chart: Chart, on_select: Callable[[], None] | None = None) -> None:
    """The figure and its caption; its key is that of the points that a person clicked on too, for ``on_select``."""
    key = f"{page}.{chart.name}"
    shown = _SHOWN.get()
    if shown is not None and shown.growing and not _IN_SIGHT.get():
        shown.charts[key] = chart
        return  # drawing it would keep the browser from the figure that is looked at; the tab that opens runs this anew
    figure = chart.figure if shown is None else shown.take(key, chart)
    image = {"format": "svg", "scale": 2, "filename": key.replace(".", "-")}
    config = {**CHART_CONFIG, "toImageButtonOptions": image}
    st.plotly_chart(
        figure,
        key=key,
        alt=chart.takeaway,
        config=config,
        on_select=on_select or "ignore",
        selection_mode="points",
    )
    if said := (*chart.caption, *interval_words(chart)):
        with st.expander(f"Details · {chart.excluded}" if chart.excluded else "Details"):
            st.caption("  \n".join(map(typeset, said)))  # a line each


def _itself(chart: Chart) -> Chart:
    return chart


def interval_words(chart: Chart) -> list[str]:
    """What the intervals of a chart are about, and what they are given; nothing for a chart without any."""
    return (
        [f"95% confidence intervals {'; or '.join(_SCOPES.get())}, {chart.given}."]
        if chart.given and _SCOPES.get()
        else []
    )


@dataclass(frozen=True)
class Choice:
    """One of some options, to be chosen above the charts.

    Attributes:
        name: ``page.name`` is its key in the session.
        words: an option as people read it.
        pixels: width of the list.
        begins: which option is shown until a person chooses, counted as in a list; -1 is the last.
        axis: of the figures (``layout.meta.cursor``) on which a click chooses, or SEED; empty for none.
        at: where on that axis an option is.
    """

    name: str
    label: str
    options: Sequence[Any]
    words: Callable[[Any], str] = str
    pixels: int = 130
    begins: int = 0
    axis: str = ""
    at: Callable[[Any], Any] = lambda option: option

    @property
    def is_settled(self) -> bool:
        """Whether there is but one option, and no cursor to follow it."""
        return len(self.options) == 1 and not self.axis


def width_choice(points: Sequence[Any]) -> Choice:
    """One of the widths that are finished, the largest at first; a click on a width in a figure chooses it too."""
    widths = [point.width for point in points]
    return Choice("width", "Width m", widths, lambda m: f"m = {width_label(m)}", begins=-1, axis=WIDTH)


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


def choose(page: str, *parts: str | Choice, more: Sequence[Choice] = ()) -> tuple[Any, ...]:
    """What is chosen, in a row of choices with words between them; those that few need behind "View".

    A choice of one option is a part of the words.
    """
    shown: list[str | Choice] = []
    for part in parts:
        words = part if isinstance(part, str) else part.words(part.options[0]) if part.is_settled else None
        if words is not None and shown and isinstance(shown[-1], str):
            shown[-1] += f" {words}"
        else:
            shown.append(part if words is None else words)
    with st.container(horizontal=True, vertical_alignment="center"):
        for each in shown:
            if isinstance(each, str):
                st.subheader(plain(each), anchor=False, width="content")
            else:
                _chooser(page, each)
        if rarer := [choice for choice in more if not choice.is_settled]:
            with st.popover("View", icon=":material/visibility:", type="tertiary"):
                for choice in rarer:
                    _chooser(page, choice, label="visible")
    chosen = [part for part in (*parts, *more) if isinstance(part, Choice)]
    return tuple(part.options[0] if part.is_settled else st.session_state[f"{page}.{part.name}"] for part in chosen)


def _chooser(page: str, choice: Choice, label: LabelVisibility = "collapsed") -> None:
    """The last option (or the first) until a person chooses; what was chosen comes back when it is among them again."""
    key, state = f"{page}.{choice.name}", st.session_state
    chosen = f"{key}.chosen"
    wanted = state.get(chosen, _NOTHING)
    state[key] = wanted if wanted in choice.options else choice.options[choice.begins]
    if choice.axis and (found := _LINKED.get()) is not None:
        found.cursors[choice.axis] = _Cursor(
            chosen, choice.at(state[key]), [(choice.at(each), each) for each in choice.options]
        )
    shared: dict[str, Any] = {
        "key": key,
        "on_change": lambda: state.update({chosen: state[key]}),
        "label_visibility": label,
    }
    words = [choice.words(option) for option in choice.options]
    if not choice.axis and len(words) <= MOST_CHIPS and len("".join(words)) <= CHIP_LETTERS:
        st.segmented_control(
            choice.label,
            choice.options,
            default=[state[key]],  # an option may be a tuple
            required=True,
            format_func=lambda option: plain(choice.words(option)),  # a label is Markdown
            **shared,
        )
    else:
        at = list(choice.options).index(state[key])
        st.selectbox(choice.label, choice.options, index=at, format_func=choice.words, width=choice.pixels, **shared)


@dataclass(frozen=True)
class _Cursor:
    """What a click on one axis changes: the entry of the session, where it is now, and (where, option) to choose from.

    Without options any number is taken.
    """

    key: str
    at: Any
    options: Sequence[tuple[Any, Any]] | None = None


@dataclass
class _Linked:
    """What the linked figures of a page share: axis → cursor, and the run that was clicked, for the browser."""

    cursors: dict[str, _Cursor] = field(default_factory=dict)
    answer: dict[str, Any] | None = None


_LINKED: ContextVar[_Linked | None] = ContextVar("linked", default=None)


@contextmanager
def linked_charts(page: str) -> Iterator[None]:
    """One cursor for the charts inside, moved by their choices and by clicks on their marks."""
    shared = _Linked()
    cursors, token = shared.cursors, _LINKED.set(shared)
    try:
        yield
    finally:
        _LINKED.reset(token)

    def follow(values: Mapping[str, Any]) -> None:
        st.session_state[f"{page}.clicked"] = True
        for axis, value in values.items():
            options = cursors[axis].options
            free = [(value, value)] if isinstance(value, (int, float)) else []
            for _, option in (each for each in (free if options is None else options) if each[0] == value):
                st.session_state[cursors[axis].key] = option

    land = st.session_state.get(f"{page}.{OPENED_TAB}", "")
    linked(f"{page}.linked", {axis: cursor.at for axis, cursor in cursors.items()}, follow, land, shared.answer)


def cursor_at(page: str, axis: str) -> float | None:
    """Where a click has put the cursor on an axis without a choice; None before the first one."""
    key = f"{page}.cursor.{axis}"
    at: float | None = st.session_state.get(key)
    if (found := _LINKED.get()) is not None:
        found.cursors[axis] = _Cursor(key, at)
    return at
