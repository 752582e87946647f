"""What a notebook shows of a result besides its numbers: the first figure of its page, without Streamlit.

``ntk_core`` finds it as an entry point (``pyproject.toml``), since the core knows no figure.
"""

from importlib import import_module

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.numbers import plain_symbols
from linearity_lab.charts.still import still
from ntk_core.markup import paragraph
from ntk_core.runs import ResultValue, SeededSpec


def first_chart(result: ResultValue) -> Chart:
    """The figure that says most of a result, as ``elsewhere.py`` in the view of its experiment states it."""
    chart: Chart = import_module(f"linearity_lab.views.{result.spec.experiment}.elsewhere").first_chart(result)
    return chart


def figure_html(result: ResultValue) -> str | None:
    """The figure as SVG, and the sentences below it; None where nothing of it can be drawn so."""
    chart = first_chart(result)
    drawn = still(chart.figure, plain_symbols(chart.takeaway))
    if drawn is None:
        return None
    below = [*chart.caption]
    if chart.given and isinstance(result.spec, SeededSpec):
        below.append(f"95% intervals: {result.spec.scope}, {chart.given}.")
    return drawn + paragraph(" ".join(map(plain_symbols, below)))
