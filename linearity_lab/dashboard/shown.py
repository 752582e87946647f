"""Charts drawn once for all sessions with the same points, and the large arrays beside points."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import plotly.graph_objects as go

from linearity_lab.charts.chart import AnyPoint, Chart, Sent, above
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


@dataclass(frozen=True)
class LaidOver:
    """A figure above the pale curves of an earlier one.

    It keeps both, so that their identities remain those of its key in the cache.
    """

    figure: go.Figure
    ghost: go.Figure

    @cached_property
    def _both(self) -> go.Figure:
        return above(self.figure, self.ghost)

    @property
    def has_ghost(self) -> bool:
        """Whether the earlier figure has curves on the same axes."""
        return self._both is not self.figure

    @cached_property
    def sent(self) -> Sent:
        """Both figures, as they are sent to browsers."""
        return Sent(self._both)


def above_once(figure: go.Figure, ghost: go.Figure) -> LaidOver:
    """Return a drawn figure above an earlier one, made once for all sessions that draw both."""
    made = _kept.get(("above", id(figure), id(ghost)), lambda: LaidOver(figure, ghost))
    return cast(LaidOver, made)


def _json_bytes(drawn: object) -> int:
    """Return the size of drawn charts, by the JSON of their figures and their rows."""
    charts = drawn if isinstance(drawn, list | tuple) else [drawn]
    num_bytes = LEAST_BYTES
    for each in charts:
        if isinstance(each, Chart):
            num_bytes += len(each.sent.to_json()) + len(repr(each.rows))
        elif isinstance(each, LaidOver):
            num_bytes += len(each.sent.to_json()) if each.has_ghost else 0
        elif isinstance(each, str):
            num_bytes += len(each)
    return num_bytes


_kept: SizedCache[object] = SizedCache(FIGURE_BYTES, _json_bytes)
