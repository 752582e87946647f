"""A chart on a page: figure, words, caption, numbers, and the choice between charts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import plotly.graph_objects as go
import streamlit as st

from linearity_lab.charts.chart import Chart, Sent, above, interval_words, occurring
from linearity_lab.charts.style import CHART_CONFIG, output_title
from linearity_lab.charts.vector import rows_as_pictures
from linearity_lab.dashboard.explain import about, formula, things_to_try
from linearity_lab.dashboard.linked import linked
from linearity_lab.runs import PointValue, Spec, WidthPoint
from linearity_lab.settings.part import Values
from linearity_lab.words.markdown import plain, raised, typeset
from linearity_lab.words.pages import figure_words
from ntk_core.markup import without_marks
from ntk_core.numbers import width_label

ALL_SEEDS = -1  # not the seed of any run; None would be an empty selectbox
MOST_CHIPS, CHIP_LETTERS = 4, 48  # options beside each other; longer choices are lists
FIRST = "first_figure"  # page.FIRST: the first figure, above the controls on a phone (look.css)
WIDTH, SEED = "m", "seed"  # targets of clicks on figures, as Choice.axis
LabelVisibility = Literal["visible", "collapsed"]
_NOTHING = object()


@dataclass
class Figures:
    """The figures of one rendering of a page."""

    charts: dict[str, Chart] = field(
        default_factory=dict
    )  # key → chart, in order: the content of an export
    # Key → figure of an earlier run, drawn pale below the current one.
    ghosts: Mapping[str, go.Figure] = field(default_factory=dict)
    # Key → (figure, figure above its ghost), kept between renderings.
    laid_over: dict[str, tuple[go.Figure, go.Figure]] = field(default_factory=dict)
    growing: bool = (
        False  # whether more points will follow; then only visible figures are sent to the browser
    )

    def take(self, key: str, chart: Chart) -> go.Figure:
        """Record a chart; return its figure, above its ghost if there is one."""
        self.charts[key] = chart
        if key not in self.ghosts:
            return chart.figure
        if self.laid_over.get(key, (None,))[0] is not chart.figure:
            self.laid_over[key] = chart.figure, above(chart.figure, self.ghosts[key])
        return self.laid_over[key][1]


_SPECS: ContextVar[tuple[Spec, ...]] = ContextVar("specs", default=())
_SHOWN: ContextVar[Figures | None] = ContextVar("shown", default=None)
_IN_SIGHT: ContextVar[bool] = ContextVar("in_sight", default=True)


@contextmanager
def shown_charts(specs: Iterable[Spec] = (), figures: Figures | None = None) -> Iterator[Figures]:
    """Record every chart drawn inside in ``figures``, by default in the enclosing record, if any.

    ``specs`` belong to the drawn results; the meaning of their intervals is shown below each chart that has one.
    """
    figures = figures or _SHOWN.get() or Figures()
    tokens = _SHOWN.set(figures), _SPECS.set(tuple(specs))
    try:
        yield figures
    finally:
        _SHOWN.reset(tokens[0])
        _SPECS.reset(tokens[1])


OPENED_TAB = "opened_tab"  # page.OPENED_TAB: the figure opened by a link


@dataclass(frozen=True)
class Panel:
    """One of the figures of a page, with its choices."""

    title: str  # title of its tab, unless it is the first panel
    # A chart, or a function that shows the choices and returns the chart or charts, or shows other content.
    draw: Chart | Callable[[], Chart | Sequence[Chart] | None]
    on_select: Callable[[], None] | None = (
        None  # callback for clicks on other points of its single chart
    )
    below: Callable[[], None] | None = None  # content below the figure, such as the clicked point


def panels(charts: Sequence[Chart], titles: Mapping[str, str] | None = None) -> list[Panel]:
    """Return a panel for each chart, with the title in ``titles`` or else its heading."""
    return [Panel((titles or {}).get(chart.name, chart.heading), chart) for chart in charts]


def show_panels(page: str, shown: Sequence[Panel], claim: Callable[[], None]) -> None:
    """Show the first figure large with its words; show the others in tabs below."""
    first, *others = shown
    _show_panel(page, first, claim)
    shared = _LINKED.get() or _Linked()
    if others:
        titles = [each.title for each in others]
        wanted = st.session_state.get(f"{page}.{OPENED_TAB}")
        tabs = st.tabs(
            titles,
            key=f"{page}.tabs",
            default=wanted if wanted in titles else None,
            on_change="rerun",
        )
        for tab, panel in zip(tabs, others, strict=True):
            chosen = set(shared.cursors)
            with tab, _in_sight(bool(tab.open)):
                charts = _show_panel(page, panel)
            if (
                len(charts) == 1
                and set(shared.cursors) - chosen
                and st.session_state.get(f"{page}.clicked")
            ):
                # The clicked run beside the figure: its first two rows as small pictures, and its sentence.
                pictures = [
                    {"title": title, "picture": each}
                    for title, each in rows_as_pictures(charts[0].figure)[:2]
                ]
                shared.answer = {"pictures": pictures, "words": charts[0].takeaway}


def show_alone(page: str, panel: Panel) -> None:
    """Show one panel: choices, figures and captions only."""
    charts = drawn_charts(panel)
    for chart in charts:
        if len(charts) > 1:
            st.subheader(without_marks(chart.heading), anchor=False)
        _show_figure(page, chart, panel.on_select if len(charts) == 1 else None)


def drawn_charts(panel: Panel) -> list[Chart]:
    """Return the charts of a panel, with its choices; none for other content."""
    drawn = panel.draw if isinstance(panel.draw, Chart) else panel.draw()
    return [drawn] if isinstance(drawn, Chart) else list(drawn or ())


@contextmanager
def _in_sight(yes: bool) -> Iterator[None]:
    token = _IN_SIGHT.set(yes)
    try:
        yield
    finally:
        _IN_SIGHT.reset(token)


def _show_panel(page: str, panel: Panel, claim: Callable[[], None] | None = None) -> list[Chart]:
    with st.container(key=f"{page}.{FIRST}" if claim is not None else None):
        lines = st.container(key=f"{page}.finding" if claim is not None else None)
        charts = drawn_charts(panel)
        alone = charts[0] if len(charts) == 1 else None
        if alone is None:
            show_in_pairs(page, charts)
        else:
            if claim is not None:
                lines.html(f'<p class="finding">{raised(alone.sentence)}</p>')
            _show_figure(page, alone, panel.on_select)
        if panel.below is not None:
            panel.below()
    words, links = (
        st.columns(2, gap="medium") if claim is not None else (st.container(), st.container())
    )
    if alone is not None:
        with words:
            st.markdown(figure_words(f"{page}.{alone.name}").see)
            formula(f"{page}.{alone.name}")
    with links, st.container(gap="xxsmall"):
        if claim is not None:
            claim()
            things_to_try(page)
        if alone is not None:
            about(f"{page}.{alone.name}", alone, page if claim else "")
    return charts


def show_in_pairs(page: str, charts: Sequence[Chart]) -> None:
    """Lay out two charts per row in reading order for phones; an odd last chart fills its row."""
    for first in range(0, len(charts), 2):
        pair = charts[first : first + 2]
        for column, each in zip(st.columns(len(pair), gap="medium"), pair, strict=True):
            with column:
                show_chart(page, each)


def show_chart(page: str, chart: Chart) -> None:
    """Show heading, figure, caption, formula, explanation and numbers, one below the other.

    ``page.name`` is the key of the figure in the session, of its words, and of the files that it saves.
    """
    if chart.heading:
        st.subheader(without_marks(chart.heading), anchor=False)
    _show_figure(page, chart)
    formula(f"{page}.{chart.name}")
    about(f"{page}.{chart.name}", chart)


def _show_figure(page: str, chart: Chart, on_select: Callable[[], None] | None = None) -> None:
    """Show figure and caption; the key also identifies clicked points for ``on_select``."""
    key = f"{page}.{chart.name}"
    shown = _SHOWN.get()
    if shown is not None and shown.growing and not _IN_SIGHT.get():
        shown.charts[key] = chart
        return  # drawing hidden figures would delay the visible one; opening the tab reruns this
    figure = chart.figure if shown is None else shown.take(key, chart)
    sent = chart.sent if figure is chart.figure else Sent(figure)
    image = {"format": "svg", "scale": 2, "filename": key.replace(".", "-")}
    config = {**CHART_CONFIG, "toImageButtonOptions": image}
    st.plotly_chart(
        sent,
        key=key,
        alt=without_marks(chart.takeaway),
        config=config,
        on_select=on_select or "ignore",
        selection_mode="points",
    )
    if lines := (*chart.caption, *shown_intervals(chart)):
        with st.expander(f"Details · {chart.excluded}" if chart.excluded else "Details"):
            st.caption("  \n".join(map(typeset, lines)))  # one per line


def shown_intervals(chart: Chart) -> list[str]:
    """Return what the intervals of a chart cover here; empty without intervals."""
    return interval_words(chart, _SPECS.get())


Option = TypeVar("Option")


@dataclass(frozen=True)
class Choice(Generic[Option]):
    """A choice between options, shown above the charts."""

    name: str  # ``page.name`` is its key in the session
    label: str
    options: Sequence[Option]
    words: Callable[[Option], str] = str  # format of an option
    pixels: int = 130  # width of the list
    begins: int = 0  # index of the initial option; -1 is the last
    axis: str = (
        ""  # figure axis (``layout.meta.cursor``) on which clicks choose, or SEED; empty for none
    )
    at: Callable[[Option], object] = lambda option: option  # position of an option on that axis

    @property
    def is_settled(self) -> bool:
        """Whether there is only one option, and no cursor to follow it."""
        return len(self.options) == 1 and not self.axis


def width_choice(points: Sequence[WidthPoint]) -> Choice[int]:
    """Return a choice of finished widths, initially the largest; clicks on a width in a figure choose it too."""
    widths = list(dict.fromkeys(point.width for point in points))
    return Choice(
        "width", "Width m", widths, lambda m: f"m = {width_label(m)}", begins=-1, axis=WIDTH
    )


def seed_choice(points: Iterable[PointValue]) -> tuple[Choice[int], ...]:
    """Return a choice of one or all seeds; clicks on marks and curves choose too. None for a single seed."""
    seeds = sorted(occurring(points, "seed"))
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


def slide(
    page: str, name: str, label: str, options: Sequence[float], words: str, begins: int, width: int
) -> float:
    """Show a slider of a few numbers; return the chosen one, initially at the index ``begins``."""
    key = f"{page}.{name}"
    if st.session_state.get(key) not in options:
        st.session_state[key] = options[begins]
    st.select_slider(label, options, key=key, format_func=words.format, width=width)
    return float(st.session_state[key])  # also without a browser: the site has the initial figure


def output_choice(outputs: Sequence[str], pixels: int = 190) -> Choice[str]:
    """Return a choice of the outputs that occur."""
    return Choice("output", "Output φ", outputs, output_title, pixels)


def choose(page: str, *parts: str | Choice, more: Sequence[Choice] = ()) -> tuple[Any, ...]:
    """Show choices in a row with words between them, rare ones behind "View"; return the chosen options.

    A choice of one option is a part of the words.
    """
    shown: list[str | Choice] = []
    for part in parts:
        words = (
            part
            if isinstance(part, str)
            else part.words(part.options[0])
            if part.is_settled
            else None
        )
        if words is not None and shown and isinstance(shown[-1], str):
            shown[-1] += f" {words}"
        else:
            shown.append(part if words is None else words)
    chosen = [part for part in (*parts, *more) if isinstance(part, Choice)]
    with st.container(
        horizontal=True, vertical_alignment="center", key=f"{page}.{chosen[0].name}.choices"
    ):
        for each in shown:
            if isinstance(each, str):
                st.subheader(plain(each), anchor=False, width="content")
            else:
                _chooser(page, each)
        if rarer := [choice for choice in more if not choice.is_settled]:
            with st.popover("View", icon=":material/visibility:", type="tertiary"):
                for choice in rarer:
                    _chooser(page, choice, label="visible")
    return tuple(
        part.options[0] if part.is_settled else st.session_state[f"{page}.{part.name}"]
        for part in chosen
    )


def _chooser(page: str, choice: Choice, label: LabelVisibility = "collapsed") -> None:
    """Return the chosen option, or the last (first) one initially; keep choices that become available again."""
    key, state = f"{page}.{choice.name}", st.session_state
    chosen = f"{key}.chosen"
    wanted = state.get(chosen, _NOTHING)
    state[key] = wanted if wanted in choice.options else choice.options[choice.begins]
    if choice.axis and (found := _LINKED.get()) is not None:
        found.cursors[choice.axis] = _Cursor(
            chosen, choice.at(state[key]), [(choice.at(each), each) for each in choice.options]
        )
    shared: Values = {
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
        st.selectbox(
            choice.label,
            choice.options,
            index=at,
            format_func=choice.words,
            width=choice.pixels,
            **shared,
        )


@dataclass(frozen=True)
class _Cursor:
    """Targets of clicks on one axis."""

    key: str  # session entry
    at: object  # current position
    options: Sequence[tuple[object, object]] | None = (
        None  # (position, option) pairs; None takes any number
    )


@dataclass
class _Linked:
    """Cursors (axis → cursor) and the clicked run, shared by the linked figures of a page."""

    cursors: dict[str, _Cursor] = field(default_factory=dict)
    answer: dict[str, object] | None = None


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

    def follow(values: Mapping[str, object]) -> None:
        st.session_state[f"{page}.clicked"] = True
        for axis, value in values.items():
            options = cursors[axis].options
            free = [(value, value)] if isinstance(value, (int, float)) else []
            for _, option in (
                each for each in (free if options is None else options) if each[0] == value
            ):
                st.session_state[cursors[axis].key] = option

    land = st.session_state.get(f"{page}.{OPENED_TAB}", "")
    linked(
        f"{page}.linked",
        {axis: cursor.at for axis, cursor in cursors.items()},
        follow,
        land,
        shared.answer,
    )


def cursor_at(page: str, axis: str) -> float | None:
    """Return the clicked position on an axis without a choice; None before the first click."""
    key = f"{page}.cursor.{axis}"
    at: float | None = st.session_state.get(key)
    if (found := _LINKED.get()) is not None:
        found.cursors[axis] = _Cursor(key, at)
    return at
