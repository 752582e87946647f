"""Figures of results in notebooks: the main figure of an experiment.

``ntk_core`` finds it as an entry point (``pyproject.toml``), since the core knows no figure.
"""

import plotly.graph_objects as go

from linearity_lab.charts.axes import plain_symbols
from linearity_lab.charts.chart import interval_words
from linearity_lab.charts.figure import has_figures, main_chart, shown_result
from linearity_lab.runs import ResultValue
from ntk_core.markup import without_marks


def draw(result: ResultValue) -> go.Figure:
    """Return the main figure of a result, as notebooks and exported programs show it.

    Raises:
        LookupError: its experiment has no figures.
    """
    found = figure_and_words(result)
    if found is None:
        raise LookupError(f"the experiment {result.spec.experiment} has no figures")
    return found[0]


def figure_and_words(result: ResultValue) -> tuple[go.Figure, str] | None:
    """The main figure of a result and the sentences below it.

    None for experiments without figures.
    """
    if not has_figures(result.spec.experiment):
        return None
    chart = main_chart(shown_result(result))
    words = [chart.takeaway, *chart.caption, *interval_words(chart, [result.spec])]
    figure = go.Figure(chart.sent.to_dict()).update_layout(template="plotly_white")
    return figure, without_marks(" ".join(map(plain_symbols, words)))
