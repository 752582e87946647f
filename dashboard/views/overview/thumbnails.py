"""A small picture of every page, drawn from the gallery; free of Streamlit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from dashboard.charts.chart import occurring
from dashboard.charts.style import GUIDE_COLOR, model_style, network_style
from dashboard.charts.sweep import Line
from dashboard.charts.vector import Stroke, cells, letters, thumbnail
from dashboard.components.gallery import gallery_result
from dashboard.views.dag.figures import change_lines as graph_lines
from dashboard.views.hessian import figures as hessian
from dashboard.views.kernel_change.figures import change_lines
from dashboard.views.lazy import figures as lazy
from dashboard.views.lecture import exact_figures as lecture_exact
from dashboard.views.optimization.figures import slow_runs

DOTS = 120
CELLS = 10


def _lecture(_: Any) -> str:
    weights, entries = lecture_exact.diagonal_entries(DOTS)
    dots = list(zip(weights.tolist(), entries.tolist(), strict=True))
    return thumbnail([Stroke(dots, network_style("fully-connected").color, dots=True)])


def _kernel(result: Any) -> str:
    return _lines(change_lines(result.points).values())


def _hessian(result: Any) -> str:
    lines = hessian.norm_lines(result.points)
    return _lines(lines[name] for name in ("fully-connected", "fully-connected-swish", "bottleneck"))


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
    run = slow_runs(point, "leaky_softplus")[0]
    lines = [
        (run.loss, network_style("fully-connected", "leaky_softplus").color, "solid"),
        (run.pl_bound() or (), GUIDE_COLOR, "dash"),
    ]
    return thumbnail(
        [Stroke(list(zip(run.steps, values, strict=False)), color, dash) for values, color, dash in lines], log_y=True
    )


def _lazy(result: Any) -> str:
    output, start = lazy.nonlinear(result.points), occurring(result.points, "start")[0]
    shown = (("linear", lazy.BEHIND_F), (output, lazy.CHANGE))
    return _lines(
        lazy.line(result.points, "width", output, start, measure, network_style("fully-connected", name))
        for name, measure in shown
    )


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
    return _lines(graph_lines(result.points).values())


def _lines(lines: Iterable[Line]) -> str:
    """The means of these lines, log–log."""
    strokes = [
        Stroke([(x, average.value) for x, average in line.means], line.style.color, line.style.dash) for line in lines
    ]
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
