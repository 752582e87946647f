"""A small picture of every page, drawn from the gallery; free of Streamlit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dashboard.charts.style import GUIDE_COLOR, graph_style, hessian_style, model_style, network_style
from dashboard.charts.sweep import mean_line
from dashboard.charts.vector import Stroke, cells, letters, thumbnail
from dashboard.components.gallery import gallery_result
from dashboard.views.hessian import figures as hessian
from dashboard.views.lazy import figures as lazy
from dashboard.views.lecture import exact_figures as lecture_exact
from dashboard.views.optimization.figures import rates_of
from ntk_core.experiments.hessian.spec import Series
from ntk_core.runs import mean

DOTS = 120
CELLS = 10


def _lecture(_: Any) -> str:
    weights, entries = lecture_exact.diagonal_entries(DOTS)
    dots = list(zip(weights.tolist(), entries.tolist(), strict=True))
    return thumbnail([Stroke(dots, network_style("fully-connected").color, dots=True)])


def _kernel(result: Any) -> str:
    strokes = []
    for output in result.spec.outputs:
        style = network_style("fully-connected", output)
        line = [(float(width), average.value) for width, average in mean_line(result.points, output)]
        strokes.append(Stroke(line, style.color, style.dash))
    return thumbnail(strokes, log_x=True, log_y=True)


def _hessian(result: Any) -> str:
    strokes = []
    for name in ("linear", "nonlinear-output", "bottleneck"):
        series = Series(name, "ntk")
        line = [
            (float(point.wide_width), mean([run.norm for run in point.runs]).value)
            for point in hessian.of_series(result.points, series)
        ]
        style = hessian_style(*series)
        strokes.append(Stroke(line, style.color, style.dash))
    return thumbnail(strokes, log_x=True, log_y=True)


def _architectures(result: Any) -> str:
    kernel = [point for point in result.points if point.network == "A"][-1].snapshots[0].initial
    step = max(1, len(kernel) // CELLS)
    return cells([row[: CELLS * step : step] for row in kernel[: CELLS * step : step]])


def _dynamics(result: Any) -> str:
    point = min(result.points, key=lambda point: point.width)
    run = point.runs[0]
    return thumbnail(
        [
            Stroke(
                [(x[0], y[0]) for x, y in zip(point.x_test, model.test_outputs[-1], strict=True)],
                model_style(name).color,
                dash,
            )
            for name, model, dash in (("network", run.network, "solid"), ("linearized", run.linearized, "dash"))
        ]
    )


def _optimization(result: Any) -> str:
    point = result.points[-1]
    run = point.of("leaky_softplus", min(rates_of([point])))[0]
    lines = [
        (run.loss, network_style("fully-connected", "leaky_softplus").color, "solid"),
        (run.pl_bound(), GUIDE_COLOR, "dash"),
    ]
    return thumbnail(
        [Stroke(list(zip(run.steps, values, strict=True)), color, dash) for values, color, dash in lines], log_y=True
    )


def _lazy(result: Any) -> str:
    output = lazy.nonlinear(result.points)
    strokes = []
    for name, measure in (("linear", lazy.BEHIND_F), (output, lazy.CHANGE)):
        line = [
            (width, mean([measure.of(run) for run in point.of(output) if measure.counts(run)]).value)
            for width, point in lazy.along(result.points, "width")
        ]
        style = network_style("fully-connected", name)
        strokes.append(Stroke(line, style.color, style.dash))
    return thumbnail(strokes, log_x=True, log_y=True)


def _early(result: Any) -> str:
    run = result.points[-1].runs[0]
    return thumbnail(
        [
            Stroke(list(zip(run.steps[1:], model.test_loss[1:], strict=True)), model_style(name).color, dash)
            for name, model, dash in (("network", run.network, "solid"), ("linear", run.linear, "dash"))
        ],
        log_x=True,
    )


def _graphs(result: Any) -> str:
    strokes = []
    for graph in dict.fromkeys(run.graph for run in result.points[0].runs):
        line = [
            (float(point.width), mean([r.sup_change for r in point.of(graph, "linear")]).value)
            for point in result.points
        ]
        style = graph_style(graph)
        strokes.append(Stroke(line, style.color, style.dash))
    return thumbnail(strokes, log_x=True, log_y=True)


def _glossary(_: Any) -> str:
    return letters("K  H  κ  ΔK")


def _results(_: Any) -> str:
    return letters("A | B | C")


def _own_data(_: Any) -> str:
    return letters("x, y")


# Page → the entry of the gallery that it is drawn from (empty for none), and how.
_PICTURES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "lecture": ("", _lecture),
    "kernel_change": ("liu-fig1-left", _kernel),
    "hessian": ("liu-table1", _hessian),
    "architectures": ("bottleneck", _architectures),
    "dynamics": ("curves-in-one-dimension", _dynamics),
    "optimization": ("liu-section5", _optimization),
    "lazy": ("liu-lazy", _lazy),
    "early_time": ("hu-fig3", _early),
    "dag": ("zhu-bottleneck-neurons", _graphs),
    "own_data": ("", _own_data),
    "results": ("", _results),
    "glossary": ("", _glossary),
}


def page_thumbnail(page: str) -> str:
    """The picture of a page as SVG; empty for one that has none, or whose results are not there."""
    preset, draw = _PICTURES.get(page, ("", None))
    result = gallery_result(preset) if preset else None
    if draw is None or (preset and result is None):
        return ""
    return _drawn(draw, _Once(result))


class _Once:
    """A result by its identity: two requests for one object draw one picture."""

    def __init__(self, result: Any):
        self.result = result

    def __hash__(self) -> int:
        return id(self.result)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Once) and other.result is self.result


@functools.lru_cache(maxsize=32)
def _drawn(draw: Callable[[Any], str], once: _Once) -> str:
    return draw(once.result)
