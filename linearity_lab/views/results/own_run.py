"""Runs and reports of your own models, shown where they are listed: no page can compute them."""

import streamlit as st

from linearity_lab.charts.numbers import beginning
from linearity_lab.components.chart import show_chart, shown_charts
from linearity_lab.components.explain import provenance_footer
from linearity_lab.components.words_table import words_table
from linearity_lab.views.linearity_report.figures import first_chart as layer_chart
from linearity_lab.views.own_model.figures import first_chart
from linearity_lab.views.results.stored_runs import shared_store
from linearity_lab.words.markdown import plain
from ntk_core.experiments.linearity_report.result import LinearityReportResult
from ntk_core.experiments.own_model.result import OwnModelResult, found_words, layer_rows, verdict
from ntk_core.linearity import LAYER_HEAD, rows_of
from ntk_core.linearity import layer_rows as reported_layers

MOST_LAYERS = 40


def own_run(page: str, run: str) -> None:
    """Verdict, figure, layers with their routes, the check, and where they come from; nothing for other runs."""
    result = shared_store().result(run)
    if isinstance(result, LinearityReportResult) and result.points:
        _report(page, result)
    if not isinstance(result, OwnModelResult) or not result.points:
        return
    spec, first = result.spec, result.points[0]
    st.subheader(plain(f"{spec.file}:{spec.function}"), anchor=False)
    st.markdown(plain(beginning(verdict(result.points))))
    if len(result.points) > 1:
        with shown_charts([spec]):
            show_chart(page, first_chart(result))
    words_table(layer_rows(first), f"Layers and routes at width {first.width:,}")
    st.caption(plain(found_words(first)))
    provenance_footer(result)
    st.caption(plain(f"The file's SHA-256 is {spec.sha256}. It was run by the command line; nothing here can run it."))


def _report(page: str, result: LinearityReportResult) -> None:
    """Verdict, numbers, and layers by their share of the outputs' change."""
    spec, (point,) = result.spec, result.points
    st.subheader(plain(f"{spec.file}:{spec.function}, {spec.before} → {spec.after}"), anchor=False)
    chart = layer_chart(result)
    st.markdown(plain(chart.takeaway))
    words_table([dict(rows_of(point))], f"{point.num_inputs:,} inputs, {point.num_params:,} parameters")
    with shown_charts([spec]):
        show_chart(page, chart)
    words_table([dict(zip(LAYER_HEAD, row, strict=True)) for row in reported_layers(point)[:MOST_LAYERS]], "Parameters")
    provenance_footer(result)
    st.caption(plain("The command line measured it; nothing here can run the file."))
