"""Points of a run on a page, and charts drawn once for all sessions with the same points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast

from linearity_lab.charts.chart import AnyPoint, Chart
from linearity_lab.dashboard.chart import Choice, Panel, choose, panels
from linearity_lab.dashboard.forms import AnySpec
from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.jobs.sized_cache import SizedCache
from linearity_lab.runs import ResultValue, Spec, spec_digest

T = TypeVar("T")
FIGURE_BYTES = 12 * 2**20  # JSON of all cached figures; our choice, as objects a few times as much
LEAST_BYTES = 20_000  # of a cached value without figures; our choice


@dataclass(frozen=True)
class Shown(Generic[AnySpec, AnyPoint]):
    """State of a page's figures."""

    spec: AnySpec
    points: tuple[
        AnyPoint, ...
    ]  # finished points, in the order of the spec's keys, then a partial one
    result: ResultValue | None  # complete result; None until the job has ended
    origin: Literal["precomputed", "job"]  # precomputed, or from a job of this server
    grown: int = 0  # version of the partial points, 0 without any

    @property
    def identity(self) -> tuple[str, str, tuple[str, ...], int]:
        """Identity of the figures: finished points of a spec never change; more are added."""
        return (
            self.origin,
            spec_digest(self.spec),
            tuple(point.key for point in self.points),
            self.grown,
        )

    def point(self, width: int) -> AnyPoint:
        """Return the point of this width."""
        return next(point for point in self.points if getattr(point, "width", None) == width)

    def choose(self, *parts: str | Choice, more: Sequence[Choice] = ()) -> tuple[Any, ...]:
        """Show choices on the page, see :func:`~linearity_lab.dashboard.chart.choose`."""
        return choose(self.spec.experiment, *parts, more=more)

    def drawn(self, name: str, draw: Callable[..., T], *chosen: object) -> T:
        """Return ``draw(*chosen)`` of these points, cached across sessions; ``name`` is unique on the page."""
        return drawn_once(f"{self.spec.experiment}.{name}", self.identity, draw, *chosen)

    def panels(
        self,
        draw: Callable[..., Sequence[Chart]],
        *chosen: object,
        titles: Mapping[str, str] | None = None,
    ) -> list[Panel]:
        """Return a panel for each chart that ``draw(self, *chosen)`` returns, cached across sessions."""
        return panels(self.drawn("", partial(draw, self), *chosen), titles)


def whole_points(spec: Spec, points: Sequence[AnyPoint]) -> tuple[AnyPoint, ...]:
    """Return points with the arrays that the store keeps beside them, such as kernels; reads the store if needed."""
    if not any(point.is_apart for point in points):
        return tuple(points)
    return cast(tuple[AnyPoint, ...], shared_jobs().whole(spec, points))


def drawn_once(name: str, identity: object, draw: Callable[..., T], *chosen: object) -> T:
    """Return ``draw(*chosen)``, cached across sessions by name, identity of the points or other inputs, and choices.

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
