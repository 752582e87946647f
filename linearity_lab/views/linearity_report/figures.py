"""A linearity report on other pages: its card, its figure, and how reports are compared."""

import plotly.graph_objects as go

from linearity_lab.charts.axes import GUIDE_LINE, finish
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.comparison import ComparedAxis, Comparison, compared_by
from linearity_lab.charts.style import nth_style
from linearity_lab.charts.vector import Stroke, thumbnail
from ntk_core.experiments.linearity_report.result import COLUMNS, LinearityReportResult
from ntk_core.experiments.linearity_report.spec import LinearityReportSpec
from ntk_core.linearity import verdict_of
from ntk_core.numbers import percent

_STYLE = nth_style(0, "parameters", "measure")


def card(result: LinearityReportResult) -> str:
    """Shares of the outputs' change, the largest first."""
    (point,) = result.points
    shares = sorted((layer.output_share for layer in point.layers), reverse=True)
    return str(thumbnail([Stroke(list(enumerate(shares)), _STYLE.color, "solid")]))


def first_chart(result: LinearityReportResult) -> Chart:
    """Every parameter's share of the outputs' change against its share of the kernel."""
    (point,) = result.points
    x, y = ([getattr(layer, name) for layer in point.layers] for name in ("kernel_share", "output_share"))
    top = max(*x, *y, 0.0)
    figure = go.Figure()
    figure.add_scatter(x=[0, top], y=[0, top], mode="lines", line=GUIDE_LINE, name="equal shares", hoverinfo="skip")
    names = [layer.name for layer in point.layers]
    marker = {"color": _STYLE.color, "symbol": _STYLE.symbol, "size": 9}
    figure.add_scatter(x=x, y=y, mode="markers", name="parameters", text=names, marker=marker)
    figure.update_xaxes(title="share of tr K₀", tickformat=".0%")
    figure.update_yaxes(title="share of J₀δ", tickformat=".0%")
    largest = max(point.layers, key=lambda layer: abs(layer.output_share))
    words = f"{largest.name} carries the largest share of the outputs' change, {percent(largest.output_share)}."
    return Chart(finish(figure), f"{verdict_of(point)} {words}", result.rows(), name="linearity_report", finding=words)


def compared(_: LinearityReportSpec) -> Comparison:
    """How reports are compared: parameter by parameter."""
    return compared_by(COLUMNS, ComparedAxis("num_params", "numbers of the parameter", "p"))
