"""Charts drawn once for all sessions with the same points, and the large arrays beside points."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from linearity_lab.charts.chart import AnyPoint, Chart
from linearity_lab.charts.figure import Figure, Shown
from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.jobs.sized_cache import SizedCache
from linearity_lab.runs import Spec

T = TypeVar("T")
FIGURE_BYTES = 12 * 2**20  # JSON of all cached figures; our choice, as objects a few times as much
LEAST_BYTES = 20_000  # of a cached value without figures; our choice


def charts_once(figure: Figure, shown: Shown[Any, Any], *chosen: object) -> list[Chart]:
    """Return the charts of a figure with these options, drawn once for all sessions."""

    def draw() -> list[Chart]:
        if figure.with_arrays is None:
            return figure.charts(shown, *chosen)
        light = figure.with_arrays(shown, *chosen)
        whole = replace(shown, points=whole_points(shown.spec, light))
        return figure.charts(whole, *chosen)

    name = f"{shown.spec.experiment}.{figure.name}"
    return drawn_once(name, (shown.identity, chosen), draw)


def whole_points(spec: Spec, points: Sequence[AnyPoint]) -> tuple[AnyPoint, ...]:
    """Return points with the arrays that the store keeps beside them, such as kernels.

    Reads the store if needed.
    """
    if not any(point.is_apart for point in points):
        return tuple(points)
    return cast(tuple[AnyPoint, ...], shared_jobs().whole(spec, points))


def drawn_once(name: str, identity: object, draw: Callable[..., T], *chosen: object) -> T:
    """Return ``draw(*chosen)``, cached across sessions.

    Its key is the name, the identity of the points or other inputs, and the choices.

    The result is shared and must not be modified.
    """
    return cast(T, _kept.get((name, repr((identity, chosen))), lambda: draw(*chosen)))


def _json_bytes(drawn: object) -> int:
    """Return the size of drawn charts, by the JSON of their figures and their rows."""
    charts = drawn if isinstance(drawn, list | tuple) else [drawn]
    num_bytes = LEAST_BYTES
    for each in charts:
        if isinstance(each, Chart):
            num_bytes += len(each.figure.to_json()) + len(repr(each.rows))
        elif isinstance(each, str):
            num_bytes += len(each)
    return num_bytes


_kept: SizedCache[object] = SizedCache(FIGURE_BYTES, _json_bytes)
