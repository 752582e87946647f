"""Layout of experiment pages: title, settings, job, first figure with its words, other figures.

The figures are those of ``figures.py`` beside the page.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, cast

import streamlit as st

from linearity_lab.charts.chart import AnyPoint, Chart
from linearity_lab.charts.choices import Row
from linearity_lab.charts.figure import Figure, Shown, all_figures
from linearity_lab.dashboard import session
from linearity_lab.dashboard.chart import (
    OPENED_TAB,
    Figures,
    Panel,
    choose,
    show_alone,
    show_panels,
)
from linearity_lab.dashboard.forms import AnySpec, SpecForm
from linearity_lab.dashboard.gallery import figures_in
from linearity_lab.dashboard.preview import Preview, start_preview
from linearity_lab.dashboard.run_panel import attach, figures_panel, run_bar
from linearity_lab.dashboard.settings_row import Control, all_settings, chips, settings_row
from linearity_lab.dashboard.shown import charts_once
from linearity_lab.dashboard.turns import Kind, drawing
from linearity_lab.page_modules import page_module
from linearity_lab.runs import EXPERIMENTS, Spec
from linearity_lab.settings.grammar import differences
from linearity_lab.words.markdown import typeset
from linearity_lab.words.pages import titled

# Labels of the claim of a preset: of its paper, or of this project.
PAPER = "The paper"
OWN = "Our claim"
# The menu is in the header, which Streamlit itself leaves to an embedded page.
ALONE = """<style>
[data-testid="stHeader"] { display: none }
[data-testid="stMainBlockContainer"] { padding: 0.5rem 0.75rem }
</style>"""


@dataclass(frozen=True)
class Around(Generic[AnySpec, AnyPoint]):
    """Content of a page around one of its figures."""

    # Draws content above the charts.
    above: Callable[[Shown[AnySpec, AnyPoint], Sequence[Chart]], None] | None = None
    # Draws content below the figure; takes the chosen options, too.
    below: Callable[[Shown[AnySpec, AnyPoint], Sequence[object], Figures], None] | None = None
    # Returns the callback for clicks on points of the figure.
    on_select: Callable[[Shown[AnySpec, AnyPoint]], Callable[[], None]] | None = None


@dataclass(frozen=True)
class OtherPanel(Generic[AnySpec, AnyPoint]):
    """A tab without a figure, such as a table."""

    title: str
    show: Callable[[Shown[AnySpec, AnyPoint]], None]
    before: str = ""  # name of the figure that follows it; by default it is the last tab
    is_shown: Callable[[Shown[AnySpec, AnyPoint]], bool] = lambda _: True


@dataclass(frozen=True)
class ExperimentPage(Generic[AnySpec, AnyPoint]):
    """The page of an experiment: figures of the followed job.

    Main settings, all settings and Run beside.
    """

    name: str  # name of the experiment
    controls: Sequence[Control] = ()  # settings beside the figure, four or five
    # Heading → prefixes of dotted names of its settings, in addition to the shared groups.
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    around: Mapping[str, Around[AnySpec, AnyPoint]] = field(default_factory=dict)  # by figure
    others: Sequence[OtherPanel[AnySpec, AnyPoint]] = ()
    note: Callable[[Shown[AnySpec, AnyPoint]], str] = lambda _: ""  # a sentence below the choices
    # Settings without a widget in the groups; ``editor`` shows their errors.
    elsewhere: Sequence[str] = ()
    # Draws content above the groups in the panel of all settings.
    first: Callable[[SpecForm[AnySpec]], None] | None = None
    # Draws content above the figures.
    between: Callable[[SpecForm[AnySpec], Figures], None] | None = None
    # Picks that start by themselves; see ``Preview``.
    preview: Preview[AnySpec] | None = None
    # Draws an editor beside the figures and above Run, in a wider column.
    editor: Callable[[SpecForm[AnySpec]], None] | None = None

    @property
    def heading(self) -> str:
        """Title above the page."""
        return str(page_module(self.name).PAGE.heading)

    def panels(
        self, shown: Shown[AnySpec, AnyPoint], drawn: Figures, first: str = ""
    ) -> list[Panel]:
        """Return all panels, the figure ``first`` in front.

        Show the choices that it shares with others.

        Other shared choices are shown above the tabs, by ``drawn.before_tabs``.
        """
        figures = figures_in(shown)
        front = [each for each in figures if each[0].name == first] or figures[:1]
        all_of_page = all_figures(self.name)
        chosen: dict[Row, tuple[object, ...]] = {}
        choose_shared(all_of_page, front, shown, drawn, chosen)
        drawn.before_tabs = partial(choose_shared, all_of_page, figures, shown, drawn, chosen)
        if words := self.note(shown):
            st.caption(words)
        found: list[Panel] = []
        for figure, source in figures:
            found += self._others(shown, figure.name)
            found.append(self._panel(figure, source, chosen))
        missing = {each.before for each in self.others} - {figure.name for figure, _ in figures}
        for name in sorted(missing):
            found += self._others(shown, name)
        # A preset opens on the figure of its source; others keep their order.
        wanted = [each.title_of(shown) for each, _ in figures if each.name == first]
        return sorted(found, key=lambda panel: panel.title not in wanted)

    def panel(self, figure: Figure, shown: Shown[AnySpec, AnyPoint], drawn: Figures) -> Panel:
        """Show the choices that a figure shares with others; return its panel."""
        chosen: dict[Row, tuple[object, ...]] = {}
        choose_shared(all_figures(self.name), [(figure, shown)], shown, drawn, chosen)
        return self._panel(figure, shown, chosen)

    def _others(self, shown: Shown[AnySpec, AnyPoint], before: str) -> list[Panel]:
        """Return the tabs without a figure before this one."""

        def panel(other: OtherPanel[AnySpec, AnyPoint]) -> Panel:
            return Panel(other.title, lambda _: other.show(shown))

        here = [each for each in self.others if each.before == before and each.is_shown(shown)]
        return [panel(each) for each in here]

    def _panel(
        self, figure: Figure, shown: Shown[AnySpec, AnyPoint], shared: Mapping[Row, tuple]
    ) -> Panel:
        """Return the panel of a figure, with the choices that only this figure has.

        ``shared`` has all others when the panel is drawn.
        """
        around = self.around.get(figure.name, Around[AnySpec, AnyPoint]())

        def above() -> tuple[object, ...]:
            chosen: tuple[object, ...] = ()
            for row in figure.choices:
                chosen += shared.get(row, ())
            return chosen

        chosen_of_figure: tuple[object, ...] = ()

        def draw(drawn: Figures) -> list[Chart]:
            nonlocal chosen_of_figure
            chosen = above()
            own = [row for row in figure.choices if row not in shared]
            for options in choose(drawn, own, shown, *chosen).values():
                chosen += options
            chosen_of_figure = chosen
            charts = charts_once(figure, shown, *chosen)
            if around.above is not None:
                around.above(shown, charts)
            return charts

        def below(drawn: Figures) -> None:
            """Show what belongs below the figure that ``draw`` drew."""
            if around.below is not None:
                around.below(shown, chosen_of_figure, drawn)

        on_select = None if around.on_select is None else around.on_select(shown)
        return Panel(figure.title_of(shown), draw, on_select, below)

    def show(self) -> None:
        """Draw the page; one with previews in its turn."""
        with drawing.turn(Kind.PAGE) if self.preview is not None else nullcontext():
            self._show()

    def _show(self) -> None:
        page = self.name
        heading = self.heading
        experiment = EXPERIMENTS[self.name]
        address = session.new_address(page)
        if address is not None:
            st.session_state[f"{page}.{OPENED_TAB}"] = address.pop("tab", "")
        kind = cast(type[AnySpec], experiment.spec)
        names = [each.name for each in experiment.presets if each.on_page]
        follow = self.preview.follow if self.preview is not None else None
        form: SpecForm[AnySpec] = SpecForm(
            page, names, address, attach(page, address, kind), follow
        )
        if self.preview is not None:
            start_preview(page, form, self.preview)
        if st.context.is_embedded:  # ?embed=true, for other pages: figures without settings and Run
            st.html(ALONE)
            form.notes()
            figures_panel(page, heading, form, self._alone, {})
            return
        st.title(heading, anchor=False)
        # look.css: two columns, or one where there is no space.
        with st.container(key="experiment"):
            # The keyboard's order.
            side, figures = st.columns([6 if self.editor else 3, 7], gap="medium")
        with side, st.container(key="side"):
            self._side(form)
        with figures:
            drawings = Figures(page)
            if self.between is not None:
                self.between(form, drawings)
            session.show_address(page, {**form.query(), **session.job_query(page)})

            def shown_panels(shown: Shown[AnySpec, AnyPoint], drawn: Figures) -> None:
                panels = self.panels(shown, drawn, form.preset.panel)
                show_panels(drawn, panels, partial(_claim, form, shown.spec))

            figures_panel(page, heading, form, shown_panels, drawings.charts)

    def _alone(self, shown: Shown[AnySpec, AnyPoint], drawn: Figures) -> None:
        """Show the panel named by the link, else the first one."""
        panels = self.panels(shown, drawn)
        drawn.before_tabs()
        wanted = st.session_state.get(f"{self.name}.{OPENED_TAB}")
        show_alone(drawn, next((each for each in panels if each.title == wanted), panels[0]))

    def _side(self, form: SpecForm[AnySpec]) -> None:
        """Show settings, Run and the editor."""

        def beside() -> None:
            all_settings(form, self.groups, self.controls, self.elsewhere, self.first)
            form.paper_size()
            form.new_data()
            chips(form)

        # Run is the first stop of the keyboard; the style sheet shows it below the controls.
        run = st.container(key="run")
        if self.editor is None:
            settings_row(form, self.controls)
            form.mended()
        else:
            with st.container(key="editor"):
                self.editor(form)
        with st.container(key="notes"):  # look.css: below Run
            form.notes()
        named = [each for each in self.controls if isinstance(each, str)]
        in_full = self.preview.in_full if self.preview is not None else None
        elsewhere = (*named, *(self.elsewhere if self.editor else ()))
        with run:
            run_bar(self.name, form, beside, elsewhere, in_full)
        if self.editor is not None:
            settings_row(form, self.controls)


def _claim(form: SpecForm[AnySpec], shown: Spec) -> None:
    """Show the claim of the paper, marked if its settings or data differ from the figure."""
    preset = form.preset
    changed = differences(shown, preset.spec).keys() - {"num_seeds", "seed", "draws"}
    other = ", with other settings" if changed else ""
    if getattr(getattr(shown, "dataset", None), "name", "") == "upload":
        threshold = getattr(getattr(shown, "training", None), "loss_threshold", None)
        st.markdown(
            "The figure is about your data."
            + (f" Training stops at a loss of {threshold:g}." if threshold else "")
        )
        other = ", on other data"
    label = OWN if preset.is_own else PAPER
    st.markdown(
        f"{titled(label + other, typeset(preset.statement))} *{preset.source}.*",
        help=preset.our_choice,
    )


def choose_shared(
    all_of_page: Sequence[Figure],
    figures: Sequence[tuple[Figure, Shown]],
    shown: Shown,
    drawn: Figures,
    chosen: dict[Row, tuple[object, ...]],
) -> None:
    """Show the rows of choices that several figures of a page share.

    Also add their options to ``chosen``.
    """
    rows = [row for figure in all_of_page for row in figure.choices]
    for figure, _ in figures:
        shared = [row for row in figure.choices if rows.count(row) > 1]
        earlier = [option for row in shared for option in chosen.get(row, ())]
        new = [row for row in shared if row not in chosen]
        chosen.update(choose(drawn, new, shown, *earlier))
