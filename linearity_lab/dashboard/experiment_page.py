"""Layout of experiment pages: title, settings, job, first figure with its words, other figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, cast

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.dashboard import session
from linearity_lab.dashboard.chart import (
    OPENED_TAB,
    Choice,
    Panel,
    show_alone,
    show_panels,
    shown_charts,
)
from linearity_lab.dashboard.forms import AnySpec, SpecForm
from linearity_lab.dashboard.run_panel import attach, figures_panel, run_bar
from linearity_lab.dashboard.settings_row import Control, all_settings, chips, settings_row
from linearity_lab.dashboard.shown import AnyPoint, Shown
from linearity_lab.page_modules import page_module
from linearity_lab.runs import EXPERIMENTS, Spec
from linearity_lab.settings.grammar import differences
from linearity_lab.words.markdown import typeset

# The menu is in the header, which Streamlit itself leaves to an embedded page.
ALONE = """<style>
[data-testid="stHeader"] { display: none }
[data-testid="stMainBlockContainer"] { padding: 0.5rem 0.75rem }
</style>"""


@dataclass(frozen=True)
class ExperimentPage(Generic[AnySpec, AnyPoint]):
    """The page of an experiment: figures of the followed job; main settings, all settings and Run beside."""

    name: str  # name of the experiment
    # Returns the panels of a partial or complete result, with the first one large; by default one panel per chart.
    draw: Callable[[Shown[AnySpec, AnyPoint]], list[Panel]] | None = None
    controls: Sequence[Control] = ()  # settings beside the figure, four or five
    # Heading → prefixes of dotted names of its settings, in addition to the shared groups.
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    charts: Callable[..., Sequence[Chart]] | None = (
        None  # (shown, *chosen) → charts, cached across sessions
    )
    # Choices above the charts and behind "View", in the order of ``charts``' arguments.
    choices: Callable[[Shown[AnySpec, AnyPoint]], Sequence[str | Choice]] = lambda _: ()
    more: Callable[[Shown[AnySpec, AnyPoint]], Sequence[Choice]] = lambda _: ()
    tabs: Mapping[str, str] = field(
        default_factory=dict
    )  # name → title of the tab of a chart, by default its heading
    note: Callable[[Shown[AnySpec, AnyPoint]], str] = lambda _: ""  # a sentence below the choices
    title: str = ""  # title of the page, by default the question in the menu
    presets: Sequence[
        str
    ] = ()  # presets on this page, all of the experiment by default; the first one is initial
    elsewhere: Sequence[
        str
    ] = ()  # settings without a widget in the groups; ``editor`` shows their errors
    # Draws content above the groups in the panel of all settings.
    first: Callable[[SpecForm[AnySpec]], None] | None = None
    between: Callable[[SpecForm[AnySpec]], None] | None = None  # draws content above the figures
    # Draws an editor beside the figures and above Run, in a wider column.
    editor: Callable[[SpecForm[AnySpec]], None] | None = None

    @property
    def heading(self) -> str:
        """Title above the page."""
        return self.title or str(page_module(self.name).PAGE.question)

    def panels(self, shown: Shown[AnySpec, AnyPoint]) -> list[Panel]:
        """Return the figures with the choices above them."""
        if self.draw is not None:
            return self.draw(shown)
        assert self.charts is not None
        beside, more = self.choices(shown), self.more(shown)
        chosen = shown.choose(*beside, more=more) if (*beside, *more) else ()
        if words := self.note(shown):
            st.caption(words)
        return shown.panels(self.charts, *chosen, titles=self.tabs)

    def show(self) -> None:
        """Draw the page."""
        page, heading, experiment = self.name, self.heading, EXPERIMENTS[self.name]
        address = session.new_address(page)
        if address is not None:
            st.session_state[f"{page}.{OPENED_TAB}"] = address.pop("tab", "")
        kind = cast(type[AnySpec], experiment.spec)
        names = self.presets or [each.name for each in experiment.presets]
        form: SpecForm[AnySpec] = SpecForm(page, names, address, attach(page, address, kind))
        if st.context.is_embedded:  # ?embed=true, for other pages: figures without settings and Run
            st.html(ALONE)
            form.notes()
            figures_panel(page, heading, form, self._alone, {})
            return
        st.title(heading, anchor=False)
        with st.container(
            key="experiment"
        ):  # look.css: two columns, or one where there is no space
            side, figures = st.columns(
                [6 if self.editor else 3, 7], gap="medium"
            )  # the keyboard's order
        with side, st.container(key="side"):
            self._side(form)
        with figures:
            with shown_charts() as above:
                if self.between is not None:
                    self.between(form)
            session.show_address(page, {**form.query(), **session.job_query(page)})

            def shown_panels(shown: Shown[AnySpec, AnyPoint]) -> None:
                show_panels(page, self.panels(shown), partial(_claim, form, shown.spec))

            figures_panel(page, heading, form, shown_panels, above.charts)

    def _alone(self, shown: Shown[AnySpec, AnyPoint]) -> None:
        """Show the panel named by the link, else the first one."""
        drawn = self.panels(shown)
        wanted = st.session_state.get(f"{self.name}.{OPENED_TAB}")
        show_alone(self.name, next((each for each in drawn if each.title == wanted), drawn[0]))

    def _side(self, form: SpecForm[AnySpec]) -> None:
        """Show settings, Run and the editor."""

        def beside() -> None:
            all_settings(form, self.groups, self.controls, self.elsewhere, self.first)
            form.paper_size()
            form.new_data()
            chips(form)

        if self.editor is None:
            settings_row(form, self.controls)
        else:
            with st.container(key="editor"):
                self.editor(form)
        form.notes()
        named = [each for each in self.controls if isinstance(each, str)]
        run_bar(self.name, form, beside, (*named, *(self.elsewhere if self.editor else ())))
        if self.editor is not None:
            settings_row(form, self.controls)


def _claim(form: SpecForm[AnySpec], shown: Spec) -> None:
    """Show the claim of the paper, marked if its settings or data differ from the figure."""
    preset = form.preset
    changed = differences(shown, preset.spec).keys() - {"num_seeds", "seed", "draws"}
    other = "*In the paper, with other settings:* " if changed else ""
    if getattr(getattr(shown, "dataset", None), "name", "") == "upload":
        threshold = getattr(getattr(shown, "training", None), "loss_threshold", None)
        st.markdown(
            "The figure is about your data."
            + (f" Training stops at a loss of {threshold:g}." if threshold else "")
        )
        other = "*In the paper, on other data:* "
    st.markdown(f"{other}{typeset(preset.statement)} *{preset.source}.*", help=preset.our_choice)
