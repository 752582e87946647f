"""Layout of experiment pages: title, settings, job, first figure with its words, other figures."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from linearity_lab.components import session
from linearity_lab.components.chart import (
    OPENED_TAB,
    Panel,
    open_tab,
    show_alone,
    show_panels,
    shown_charts,
)
from linearity_lab.components.forms import Group, SpecForm
from linearity_lab.components.run_panel import Shown, attach, figures_panel, run_bar
from linearity_lab.components.settings_row import Control, all_settings, chips, settings_row
from linearity_lab.words.markdown import typeset
from ntk_core.runs import EXPERIMENTS, Spec
from ntk_core.settings.grammar import differences

# The menu is in the header, which Streamlit itself leaves to an embedded page.
ALONE = """<style>
[data-testid="stHeader"] { display: none }
[data-testid="stMainBlockContainer"] { padding: 0.5rem 0.75rem }
</style>"""


def experiment_page(
    page: str,
    title: str,
    groups: Sequence[Group],
    draw: Callable[[Shown], Sequence[Panel]],
    *,
    controls: Sequence[Control] = (),
    presets: Sequence[str] = (),
    elsewhere: Sequence[str] = (),
    first: Callable[[SpecForm[Any]], None] | None = None,
    between: Callable[[SpecForm[Any]], None] | None = None,
    editor: Callable[[SpecForm[Any]], None] | None = None,
) -> None:
    """Show figures of the followed job on the left; main settings, all settings and Run on the right.

    Args:
        draw: returns the figures of a partial or complete result; the first is shown large.
        controls: settings beside the figure, four or five.
        presets: those of the experiment that this page shows, all by default; the first one at first.
        elsewhere: settings that have no widget among the groups; ``editor`` shows their errors.
        first: draws above the groups in the panel of all settings.
        between: draws above the figures.
        editor: draws what is edited by hand, beside the figures and above Run, in a wider column.
    """
    address = session.new_address(page)
    if address is not None:
        open_tab(page, address.pop("tab", ""))
    experiment = EXPERIMENTS[page]
    names = presets or [each.name for each in experiment.presets]
    form: SpecForm[Any] = SpecForm(page, names, address, attach(page, address, experiment.spec))

    def beside() -> None:
        all_settings(form, groups, controls, elsewhere, first)
        form.paper_size()
        form.new_data()
        chips(form)

    if st.context.is_embedded:  # ?embed=true, for other pages: figures without settings and Run
        st.html(ALONE)
        form.notes()
        figures_panel(page, title, form, lambda shown: show_alone(page, _opened_panel(page, draw(shown))), {})
        return
    st.title(title, anchor=False)
    with st.container(key="experiment"):  # look.css: two columns, or one where there is no room
        side, figures = st.columns([3, 7] if editor is None else [6, 7], gap="medium")  # the keyboard's order
    with side, st.container(key="side"):
        if editor is None:
            settings_row(form, controls)
        else:
            with st.container(key="editor"):
                editor(form)
        form.notes()
        named = [each for each in controls if isinstance(each, str)]
        run_bar(page, form, beside, (*named, *(elsewhere if editor is not None else ())))
        if editor is not None:
            settings_row(form, controls)
    with figures:
        with shown_charts() as above:
            if between is not None:
                between(form)
        session.show_address(page, {**form.query(), **session.job_query(page)})

        def shown_panels(shown: Shown) -> None:
            show_panels(page, draw(shown), partial(_claim, form, shown.spec))

        figures_panel(page, title, form, shown_panels, above.charts)


def _claim(form: SpecForm[Any], shown: Spec) -> None:
    """The claim of the paper, named as one of other settings where the figure above it has others."""
    preset = form.preset
    changed = differences(shown, preset.spec).keys() - {"num_seeds", "seed", "draws"}
    other = "*In the paper, with other settings:* " if changed else ""
    if getattr(getattr(shown, "dataset", None), "name", "") == "upload":
        threshold = getattr(getattr(shown, "training", None), "loss_threshold", None)
        st.markdown(
            "The figure is about your data." + (f" Training stops at a loss of {threshold:g}." if threshold else "")
        )
        other = "*In the paper, on other data:* "
    st.markdown(f"{other}{typeset(preset.statement)} *{preset.source}.*", help=preset.our_choice)


def _opened_panel(page: str, shown: Sequence[Panel]) -> Panel:
    """The panel that a link leads to (``open_tab``), else the first one."""
    wanted = st.session_state.get(f"{page}.{OPENED_TAB}")
    return next((each for each in shown if each.title == wanted), shown[0])
