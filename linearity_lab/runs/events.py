"""Typed events of a run, for every progress display."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from linearity_lab.runs._table import Point, Result
from linearity_lab.runs._values import EndStatus, Value
from ntk_core.markup import Part, Shown, paragraph


class Estimated(Value):
    """The expected cost, before any computation.

    Attributes:
        num_points: number of points (widths), including points from an earlier run.
        seconds: expected wall time on this machine, an order of magnitude.
        peak_bytes: expected peak memory of the largest point.
    """

    kind: Literal["estimated"] = "estimated"
    num_points: int
    seconds: float
    peak_bytes: float

    def _repr_html_(self) -> str:
        from linearity_lab.shown import estimate_words  # which reads events

        return paragraph(estimate_words(self))


class PointStarted(Value):
    """The computation of the point ``key`` (``width=100``) started."""

    kind: Literal["point_started"] = "point_started"
    key: str
    index: int = 0


class PointProgress(Value):
    """Progress of a point.

    Attributes:
        fraction: finished share of the whole run, from 0 to 1.
        remaining_s: expected remaining wall time of the whole run, None while unknown.
        message: the current work, in a few words.
        point: the partial point, for curves that grow during the run; not yet a result.
    """

    kind: Literal["point_progress"] = "point_progress"
    key: str
    fraction: float
    remaining_s: float | None = None
    message: str
    point: Point | None = None


class PointFinished(Value):
    """A point is finished; ``resumed`` if it is from an earlier run."""

    kind: Literal["point_finished"] = "point_finished"
    key: str
    point: Point
    fraction: float = 1.0
    remaining_s: float | None = None
    resumed: bool = False


class PointFailed(Value):
    """A point failed; the run continues with the next one."""

    kind: Literal["point_failed"] = "point_failed"
    key: str
    reason: str


class Ended(Value, Shown):
    """The last event; a cancelled run keeps its points and can be resumed.

    Attributes:
        result: the result with all finished points; None if nothing could start.
        reason: one sentence for ``failed``, empty otherwise.
    """

    kind: Literal["ended"] = "ended"
    status: EndStatus
    result: Result | None = None
    reason: str = ""

    def _shown_parts(self, with_figure: bool) -> list[Part]:
        from linearity_lab.shown import ended_parts  # which reads events

        return ended_parts(self, with_figure)


Event = Annotated[
    Estimated | PointStarted | PointProgress | PointFinished | PointFailed | Ended,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(text: str | bytes) -> Event:
    """Parse an event from a line of JSON; raise ``pydantic.ValidationError`` for other text."""
    return _ADAPTER.validate_json(text)
