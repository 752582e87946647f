"""Figures of results in notebooks: the first figure of the page, without Streamlit.

``ntk_core`` finds it as an entry point (``pyproject.toml``), since the core knows no figure.
"""

import plotly.graph_objects as go

from linearity_lab.charts.axes import plain_symbols
from linearity_lab.charts.chart import Chart, interval_words
from linearity_lab.page_modules import has_page_module, page_module
from linearity_lab.runs import ResultValue
from ntk_core.markup import without_marks


def first_chart(result: ResultValue) -> Chart:
    """Return the main figure of a result, as defined in ``figures.py`` of its view."""
    chart: Chart = page_module(result.spec.experiment, "figures").first_chart(result)
    return chart


def figure_and_words(result: ResultValue) -> tuple[go.Figure, str] | None:
    """The first figure of a result and the sentences below it; None for experiments without a view."""
    if not has_page_module(result.spec.experiment, "figures"):
        return None
    chart = first_chart(result)
    words = [chart.takeaway, *chart.caption, *interval_words(chart, [result.spec])]
    figure = go.Figure(chart.sent.to_dict()).update_layout(template="plotly_white")
    return figure, without_marks(" ".join(map(plain_symbols, words)))
