"""A chart on a page: figure, words, caption, numbers, and the choice between charts."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from linearity_lab.charts.chart import Chart, Sent, interval_words
from linearity_lab.charts.choices import Choice, Cursor, Part, Row
from linearity_lab.charts.reading import how_to_read
from linearity_lab.charts.style import CHART_CONFIG
from linearity_lab.charts.vector import rows_as_pictures
from linearity_lab.dashboard.explain import about, formula, things_to_try
from linearity_lab.dashboard.linked import linked
from linearity_lab.dashboard.shown import above_once
from linearity_lab.runs import Spec
from linearity_lab.settings.part import Values
from linearity_lab.words.markdown import plain, raised, typeset
from linearity_lab.words.pages import figure_words, titled
from ntk_core.markup import without_marks

# Options beside each other; longer choices are lists.
MOST_CHIPS = 4
CHIP_LETTERS = 48
FIRST = "first_figure"  # page.FIRST: the first figure, above the controls on a phone (look.css)
OPENED_TAB = "opened_tab"  # page.OPENED_TAB: the figure opened by a link
LabelVisibility = Literal["visible", "collapsed"]
FOUND = "Found"
_NOTHING = object()


@dataclass(frozen=True)
class _Target:
    """Choices made by clicks on one axis."""

    key: str  # session entry
    at: object  # current position
    # (position, option) pairs; None takes any number.
    options: Sequence[tuple[object, object]] | None = None


@dataclass
class Figures:
    """The figures of one rendering of a page, and what clicks on them choose."""

    page: str  # prefix of the keys of figures and choices
    specs: Sequence[Spec] = ()  # of the drawn results; captions state what their intervals cover
    # Key → chart, in order: the content of an export.
    charts: dict[str, Chart] = field(default_factory=dict)
    # Key → figure of an earlier run, drawn pale below the current one.
    ghosts: Mapping[str, go.Figure] = field(default_factory=dict)
    is_laid_over: bool = False  # whether a figure that was drawn has pale curves behind it
    kind: str = FOUND  # label of the sentence above the first figure
    instead: str = ""  # this sentence, while the figure is that of earlier settings
    # Whether more points will follow; then only visible figures are sent to the browser.
    growing: bool = False
    in_sight: bool = True  # whether the tab that is being drawn is open
    targets: dict[str, _Target] = field(default_factory=dict)  # axis → target of clicks
    answer: dict[str, object] | None = None  # words and pictures of the clicked run
    before_tabs: Callable[[], None] = lambda: None  # shows choices that only the tabs have

    def take(self, key: str, chart: Chart) -> Sent:
        """Record a chart; return its figure for browsers, above its ghost if there is one."""
        self.charts[key] = chart
        if key not in self.ghosts:
            return chart.sent
        both = above_once(chart.figure, self.ghosts[key])
        if not both.has_ghost:
            return chart.sent
        self.is_laid_over = True
        return both.sent


@dataclass(frozen=True)
class Panel:
    """One of the figures of a page, with its choices."""

    title: str  # title of its tab, unless it is the first panel
    # Shows the choices and returns the chart or charts, or shows other content.
    draw: Callable[[Figures], Chart | Sequence[Chart] | None]
    # Callback for clicks on other points of its single chart.
    on_select: Callable[[], None] | None = None
    # Content below the figure, such as the clicked point.
    below: Callable[[Figures], None] | None = None

    def charts(self, figures: Figures) -> list[Chart]:
        """Show its choices and return its charts; none for other content."""
        drawn = self.draw(figures)
        return [drawn] if isinstance(drawn, Chart) else list(drawn or ())


def show_panels(figures: Figures, panels: Sequence[Panel], claim: Callable[[], None]) -> None:
    """Show the first figure large with its words; show the others in tabs below."""
    first, *others = panels
    _show_panel(figures, first, claim)
    if not others:
        return
    figures.before_tabs()
    titles = [each.title for each in others]
    wanted = st.session_state.get(f"{figures.page}.{OPENED_TAB}")
    tabs = st.tabs(
        titles,
        key=f"{figures.page}.tabs",
        default=wanted if wanted in titles else None,
        on_change="rerun",
    )
    for tab, panel in zip(tabs, others, strict=True):
        chosen = _options_by_click(figures)
        with tab:
            figures.in_sight = bool(tab.open)
            charts = _show_panel(figures, panel)
            figures.in_sight = True
        follows_clicks = bool(_options_by_click(figures) - chosen)
        was_clicked = st.session_state.get(f"{figures.page}.clicked")
        if len(charts) == 1 and follows_clicks and was_clicked:
            figures.answer = _clicked_run(charts[0])


def _options_by_click(figures: Figures) -> set[str]:
    """Return the axes on which clicks choose among options."""
    return {axis for axis, target in figures.targets.items() if target.options is not None}


def _clicked_run(chart: Chart) -> dict[str, object]:
    """Return the first two rows of a figure as small pictures, and its sentence."""
    pictures = [
        {"title": title, "picture": each} for title, each in rows_as_pictures(chart.figure)[:2]
    ]
    return {"pictures": pictures, "words": chart.takeaway}


def show_alone(figures: Figures, panel: Panel) -> None:
    """Show one panel: choices, figures and captions only."""
    charts = panel.charts(figures)
    for chart in charts:
        if len(charts) > 1:
            st.subheader(without_marks(chart.heading), anchor=False)
        _show_figure(figures, chart, panel.on_select if len(charts) == 1 else None)


def _show_panel(
    figures: Figures, panel: Panel, claim: Callable[[], None] | None = None
) -> list[Chart]:
    """Show one panel with its words; the first one of a page has the ``claim`` of its paper."""
    page = figures.page
    with st.container(key=f"{page}.{FIRST}" if claim is not None else None):
        lines = st.container(key=f"{page}.finding" if claim is not None else None)
        charts = panel.charts(figures)
        alone = charts[0] if len(charts) == 1 else None
        if claim is not None and charts:
            found = figures.instead or charts[0].sentence
            lines.html(
                f'<p class="finding"><span class="kind">{html.escape(figures.kind)}</span> '
                f"{raised(found)}</p>"
            )
        if alone is None:
            show_in_pairs(figures, charts)
        else:
            _show_figure(figures, alone, panel.on_select)
        if panel.below is not None:
            panel.below(figures)
    words, links = (
        st.columns(2, gap="medium") if claim is not None else (st.container(), st.container())
    )
    if alone is not None:
        with words:
            words_of = figure_words(f"{page}.{alone.name}")
            st.markdown(titled(words_of.heading, how_to_read(words_of, alone, in_app=True)))
            formula(f"{page}.{alone.name}")
    with links, st.container(gap="xxsmall"):
        if claim is not None:
            claim()
            things_to_try(page)
        if alone is not None:
            about(page, alone, with_page=claim is not None)
    return charts


def show_in_pairs(figures: Figures, charts: Sequence[Chart]) -> None:
    """Lay out two charts per row in reading order for phones; an odd last chart fills its row."""
    for first in range(0, len(charts), 2):
        pair = charts[first : first + 2]
        for column, each in zip(st.columns(len(pair), gap="medium"), pair, strict=True):
            with column:
                show_chart(figures, each)


def show_chart(figures: Figures, chart: Chart) -> None:
    """Show heading, figure, caption, formula, explanation and numbers, one below the other.

    ``page.name`` is the key of the figure in the session, of its words, and of the
    files that it saves.
    """
    if chart.heading:
        st.subheader(without_marks(chart.heading), anchor=False)
    _show_figure(figures, chart)
    formula(f"{figures.page}.{chart.name}")
    about(figures.page, chart)


def _show_figure(
    figures: Figures, chart: Chart, on_select: Callable[[], None] | None = None
) -> None:
    """Show figure and caption; the key also identifies clicked points for ``on_select``."""
    key = f"{figures.page}.{chart.key}"
    if figures.growing and not figures.in_sight:
        figures.charts[key] = chart
        return  # drawing hidden figures would delay the visible one; opening the tab reruns this
    sent = figures.take(key, chart)
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
    if lines := (*chart.app_caption, *interval_words(chart, figures.specs)):
        with st.expander(f"Details · {chart.excluded}" if chart.excluded else "Details"):
            st.caption("  \n".join(map(typeset, lines)))  # one per line


def choose(figures: Figures, rows: Sequence[Row], *earlier: object) -> dict[Row, tuple[Any, ...]]:
    """Show rows of choices with words between them, rare ones behind "View".

    Return the options by row.

    ``earlier`` are the result and the options chosen before, on which a row depends.
    """
    chosen: dict[Row, tuple[Any, ...]] = {}
    container = None
    for row in rows:
        parts = row(*earlier)
        choices = [part for part in parts if isinstance(part, Choice)]
        if container is None and choices:
            # A slider has its label above, so the other choices of its row align with its line.
            is_labeled = any(each.is_slider for each in choices) and isinstance(parts[0], Choice)
            container = st.container(
                horizontal=True,
                vertical_alignment="bottom" if is_labeled else "center",
                key=f"{figures.page}.{choices[0].name}.choices",
            )
        if container is not None:
            with container:
                _show_row(figures, parts)
        chosen[row] = tuple(_chosen(figures, part) for part in parts if not isinstance(part, str))
        earlier += chosen[row]
    return chosen


def _show_row(figures: Figures, parts: Sequence[Part]) -> None:
    """Show the widgets of a row; a choice of one option is a part of the words."""
    words = ""
    rarer: list[Choice] = []
    for part in parts:
        if isinstance(part, str):
            words = f"{words} {part}".strip()
        elif isinstance(part, Choice) and part.is_rare:
            if not part.is_settled:
                rarer.append(part)
        elif isinstance(part, Choice) and part.is_settled and not part.is_slider:
            words = f"{words} {part.words(part.options[0])}".strip()
        elif isinstance(part, Choice):
            _show_words(words)
            words = ""
            _chooser(figures, part)
    _show_words(words)
    if rarer:
        with st.popover("View", icon=":material/visibility:", type="tertiary"):
            for choice in rarer:
                _chooser(figures, choice, label="visible")


def _show_words(words: str) -> None:
    if words:
        st.subheader(plain(words), anchor=False, width="content")


def _chosen(figures: Figures, part: Choice | Cursor) -> object:
    """Return the chosen option, or the clicked position on an axis."""
    if isinstance(part, Cursor):
        key = f"{figures.page}.cursor.{part.axis}"
        at: float | None = st.session_state.get(key)
        figures.targets[part.axis] = _Target(key, at)
        return at
    if part.is_settled:
        return part.options[0]
    return st.session_state[f"{figures.page}.{part.name}"]


def _chooser(figures: Figures, choice: Choice, label: LabelVisibility = "collapsed") -> None:
    """Show the chosen option, or the initial one; keep choices that become available again."""
    key = f"{figures.page}.{choice.name}"
    state = st.session_state
    if choice.is_slider and choice.is_settled:
        st.caption(choice.words(choice.options[0]))
        return
    chosen = f"{key}.chosen"
    wanted = state.get(chosen, _NOTHING)
    state[key] = wanted if wanted in choice.options else choice.initial
    if choice.axis:
        options = [(choice.at(each), each) for each in choice.options]
        figures.targets[choice.axis] = _Target(chosen, choice.at(state[key]), options)
    shared: Values = {"key": key, "on_change": lambda: state.update({chosen: state[key]})}
    if choice.is_stepped:
        _stepper(choice, key, chosen)
        return
    words = [choice.words(option) for option in choice.options]
    is_short = len(words) <= MOST_CHIPS and len("".join(words)) <= CHIP_LETTERS
    if choice.is_slider:
        st.select_slider(
            choice.label,
            choice.options,
            format_func=choice.words,
            width=choice.pixels,
            **shared,
        )
    elif is_short and not choice.axis:
        st.segmented_control(
            choice.label,
            choice.options,
            default=[state[key]],  # an option may be a tuple
            required=True,
            format_func=lambda option: plain(choice.words(option)),  # a label is Markdown
            label_visibility=label,
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
            label_visibility=label,
            **shared,
        )


def _stepper(choice: Choice, key: str, chosen: str) -> None:
    """Show ◀ option ▶; the arrows turn around at both ends."""
    options = list(choice.options)
    at = options.index(st.session_state[key])
    previous = options[at - 1]  # of the first option, the last one
    following = options[(at + 1) % len(options)]

    def choose(option: object) -> None:
        st.session_state[chosen] = option

    with st.container(horizontal=True, gap="xxsmall", vertical_alignment="center", width="content"):
        for icon, option, title, is_after in (
            (":material/chevron_left:", previous, "Previous", False),
            (":material/chevron_right:", following, "Next", True),
        ):
            if is_after:
                st.markdown(choice.words(options[at]), width="content")
            st.button(
                "",
                icon=icon,
                key=f"{key}.{title.lower()}",
                help=f"{title} {choice.label.lower()}",
                type="tertiary",
                on_click=choose,
                args=(option,),
            )


def link(figures: Figures) -> None:
    """Let figures with the same axis share one cursor.

    Their choices and clicks on their marks move it.
    """
    page = figures.page

    def follow(values: Mapping[str, object]) -> None:
        st.session_state[f"{page}.clicked"] = True
        for axis, value in values.items():
            target = figures.targets[axis]
            options = target.options
            if options is None:
                options = [(value, value)] if isinstance(value, (int, float)) else []
            for position, option in options:
                if position == value:
                    st.session_state[target.key] = option

    linked(
        f"{page}.linked",
        {axis: target.at for axis, target in figures.targets.items()},
        follow,
        st.session_state.get(f"{page}.{OPENED_TAB}", ""),
        figures.answer,
    )
