"""What a notebook shows of a result besides its numbers: the first figure of its page, without Streamlit.

``ntk_core`` finds it as an entry point (``pyproject.toml``), since the core knows no figure.
"""

from importlib import import_module

import plotly.graph_objects as go

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.numbers import plain_symbols
from ntk_core.runs import ResultValue, SeededSpec


def first_chart(result: ResultValue) -> Chart:
    """The figure that says most of a result, as ``elsewhere.py`` in the view of its experiment states it."""
    chart: Chart = import_module(f"linearity_lab.views.{result.spec.experiment}.elsewhere").first_chart(result)
    return chart


def figure_and_words(result: ResultValue) -> tuple[go.Figure, str]:
    """The first figure of a result and the sentences below it."""
    chart = first_chart(result)
    words = [chart.takeaway, *chart.caption]
    if chart.given and isinstance(result.spec, SeededSpec):
        words.append(f"95% confidence intervals {result.spec.scope}, {chart.given}.")
    return go.Figure(chart.figure).update_layout(template="plotly_white"), " ".join(map(plain_symbols, words))
