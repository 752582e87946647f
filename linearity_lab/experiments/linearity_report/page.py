"""Reports of your own models: shown, never started; two examples until the first one is stored."""

from collections.abc import Mapping

import streamlit as st

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.figure import shown_result
from linearity_lab.dashboard import export_menu, session
from linearity_lab.dashboard.chart import Figures, Panel, show_panels
from linearity_lab.dashboard.explain import page_answers, provenance_footer, words_table
from linearity_lab.dashboard.jobs.profile import error_text
from linearity_lab.dashboard.pages.results.stored_runs import shared_store
from linearity_lab.experiments.linearity_report.figures import errors, examples, layers, name_of
from linearity_lab.experiments.linearity_report.point import LinearityReportResult
from linearity_lab.runs import spec_digest
from linearity_lab.runs.store import MIN_PREFIX
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import prose
from ntk_core.errors import InvalidInput
from ntk_core.linearity import LAYER_HEAD

PAGE = "linearity_report"
TITLE = "Is your own model linear?"
RANKED = "Parameters by their share of the outputs' change"
MOST_REPORTS = 20
MOST_LAYERS = 40
Reports = Mapping[str, LinearityReportResult]


def show() -> None:
    """Draw the page."""
    st.title(TITLE, anchor=False)
    try:
        found = session.noted_address(PAGE, {"job": _run_named})
        if found and "job" in found:
            session.see_jobs([found["job"][:MIN_PREFIX]])
            st.session_state[f"{PAGE}.run"] = found["job"]
        stored = _stored()
    except InvalidInput as error:  # the database is not available
        st.error(plain(f"The reports cannot be read: {error_text(error)}."))
        return
    reports = stored or {spec_digest(each.spec): each for each in examples()}
    with st.container(key="experiment"):  # look.css: two columns, or one where there is no space
        side, figures = st.columns([3, 7], gap="medium")
    with side, st.container(key="side"):
        session.show_notes(PAGE)
        run = _chosen_report(reports)
        st.markdown(prose(PAGE, "Add a report" if stored else "Make the first report"))
        st.code("linearity-lab report MODEL.py:NAME BEFORE AFTER", language=None, wrap_lines=True)
    result = reports[run]
    (point,) = result.points
    drawn = Figures(PAGE, [result.spec])
    with figures:
        above = st.container(horizontal=True, horizontal_alignment="right", key=f"{PAGE}.above")
        # First, as an empty container takes no space.
        above.caption(name_of(result) if stored else "An example. No report is stored yet.")
        ranked = [
            dict(zip(LAYER_HEAD, row, strict=True)) for row in point.layer_rows()[:MOST_LAYERS]
        ]

        def draw_errors(_: Figures) -> Chart:
            return errors(reports, run)

        def draw_layers(_: Figures) -> Chart:
            return layers(shown_result(result))

        def show_ranked(_: Figures) -> None:
            words_table(ranked, RANKED)

        panels = [Panel("", draw_errors), Panel("Parameters", draw_layers, below=show_ranked)]
        show_panels(drawn, panels, lambda: provenance_footer(result))
        page_answers(PAGE)
        with above:
            taken = [export_menu.Taken(f"report-{run[:8]}", result.spec, result)]
            export_menu.export_menu(PAGE, TITLE, taken, drawn.charts)
    session.show_address(PAGE, {"job": run[:MIN_PREFIX]} if stored else {})


def _chosen_report(reports: Reports) -> str:
    """Show the choice of a report with its numbers; return its digest."""
    run = st.selectbox(
        "Report",
        list(reports),
        format_func=lambda run: name_of(reports[run]),
        key=f"{PAGE}.run",
    )
    (point,) = reports[run].points
    with st.container(key=f"{PAGE}.numbers"):
        rows = [{"Number": name, "Value": value} for name, value in point.number_rows()]
        words_table(rows, "Between w₀ and w₁")
    sizes = f"{point.num_inputs:,} inputs, {point.num_outputs:,} outputs"
    st.caption(f"{sizes}, {point.num_params:,} parameters")
    return run


def _run_named(text: str) -> str:
    matches = shared_store().find(text) if len(text) == MIN_PREFIX else ()
    if len(matches) != 1 or not isinstance(
        shared_store().result(matches[0]), LinearityReportResult
    ):
        raise InvalidInput("job", text, "the number of a stored report")
    return matches[0]


def _stored() -> Reports:
    found = shared_store().runs(
        experiment=PAGE, status="completed", visible=session.seen_jobs(), limit=MOST_REPORTS
    )
    digests = dict.fromkeys(
        [run.digest for run in found.runs] + [st.session_state.get(f"{PAGE}.run", "")]
    )
    results = {digest: shared_store().result(digest) for digest in digests}
    return {
        run: each
        for run, each in results.items()
        if isinstance(each, LinearityReportResult) and each.points
    }
