"""What all pages of one experiment have in common: form → job → figures."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from dashboard.components import session
from dashboard.components.chart import shown_charts
from dashboard.components.forms import Group, SpecForm
from dashboard.components.run_panel import Shown, attach, live_panel, run_bar
from dashboard.words.sentences import typeset
from ntk_core.runs import EXPERIMENTS


def experiment_page(
    page: str,
    title: str,
    groups: Sequence[Group],
    draw: Callable[[Shown], None],
    *,
    presets: Sequence[str] = (),
    elsewhere: Sequence[str] = (),
    first: Callable[[SpecForm[Any]], None] | None = None,
    between: Callable[[SpecForm[Any]], None] | None = None,
) -> None:
    """The form in the sidebar, the claim of the preset, Run, and the figures of the job that is followed.

    Args:
        draw: draws what is there of a result.
        presets: those of the experiment that this page shows, all by default; the first one at first.
        elsewhere: settings that have no widget among the groups.
        first: draws what stands above the groups in the sidebar.
        between: draws what stands between Run and the figures.
    """
    address = session.new_address(page)
    experiment = EXPERIMENTS[page]
    names = presets or [each.name for each in experiment.presets]
    form: SpecForm[Any] = SpecForm(page, names, address, attach(page, address, experiment.spec))
    with st.sidebar:
        if first is not None:
            first(form)
        form.widgets(groups, elsewhere=elsewhere)
    st.title(title, anchor=False)
    st.markdown(f"{typeset(form.preset.claim)} *{form.preset.source}.*", help=form.preset.our_choice)
    form.notes_elsewhere()
    run_bar(page, form)
    with shown_charts() as above:
        if between is not None:
            between(form)
    session.show_address(page, {**form.query(), **session.job_query(page)})
    live_panel(page, title, form, draw, above.charts)
