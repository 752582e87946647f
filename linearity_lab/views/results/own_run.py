"""Runs of your own models, shown where they are listed: no page can compute them."""

import streamlit as st

from linearity_lab.charts.numbers import beginning
from linearity_lab.components.chart import show_chart, shown_charts
from linearity_lab.components.explain import provenance_footer
from linearity_lab.components.words_table import words_table
from linearity_lab.views.own_model.figures import first_chart
from linearity_lab.views.results.stored_runs import shared_store
from linearity_lab.words.markdown import plain
from ntk_core.experiments.own_model.result import OwnModelResult, found_words, layer_rows, verdict


def own_run(page: str, run: str) -> None:
    """Verdict, figure, layers with their routes, the check, and where they come from; nothing for other runs."""
    result = shared_store().result(run)
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
