"""How to read a figure: the words below it name the marks that it has, and no other."""

from linearity_lab.charts.chart import Chart
from linearity_lab.words.pages import FigureWords


def how_to_read(words: FigureWords, chart: Chart, *, in_app: bool = False) -> str:
    """Return how to read a chart: what its lines and marks are, never what its result is."""
    return words.reading(chart.marks, in_app=in_app)
