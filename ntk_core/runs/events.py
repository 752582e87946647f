"""Events of a run: one typed stream drives every progress display."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from ntk_core.markup import Shown, paragraph
from ntk_core.runs._table import Point, Result
from ntk_core.runs._values import EndStatus, Value


class Estimated(Value):
    """Before anything is computed: what the run will cost.

    Attributes:
        num_points: number of points (widths) to compute, finished ones of an earlier run included.
        seconds: expected wall time on this machine, an order of magnitude.
        peak_bytes: expected peak memory of the largest point.
    """

    kind: Literal["estimated"] = "estimated"
    num_points: int
    seconds: float
    peak_bytes: float

    def _repr_html_(self) -> str:
        from ntk_core.shown import estimate_words  # which reads events

        return paragraph(estimate_words(self))


class PointStarted(Value):
    """A point's computation begins; ``key`` names it (``width=100``)."""

    kind: Literal["point_started"] = "point_started"
    key: str
    index: int = 0


class PointProgress(Value):
    """Progress of a point.

    Attributes:
        fraction: share of the whole run that is done, from 0 to 1.
        remaining_s: expected remaining wall time of the whole run, None while nothing is known.
        message: what is being done, for people.
        point: the partial point, for curves that grow during the run; not yet a result.
    """

    kind: Literal["point_progress"] = "point_progress"
    key: str
    fraction: float
    remaining_s: float | None = None
    message: str
    point: Point | None = None


class PointFinished(Value):
    """A point is done; ``resumed`` when it was taken from an earlier run."""

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
    """The last event. Cancelled is not failed: a cancelled run keeps its points and can be resumed.

    Attributes:
        result: the result with all finished points; None when nothing could be started.
        reason: one sentence for ``failed``, empty otherwise.
    """

    kind: Literal["ended"] = "ended"
    status: EndStatus
    result: Result | None = None
    reason: str = ""

    def _shown_parts(self, with_figure: bool) -> list[Any]:
        from ntk_core.shown import ended_parts  # which reads events

        return ended_parts(self, with_figure)


Event = Annotated[
    Estimated | PointStarted | PointProgress | PointFinished | PointFailed | Ended, Field(discriminator="kind")
]
_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(text: str | bytes) -> Event:
    """The event of a line of JSON; raises ``pydantic.ValidationError`` for anything else."""
    return _ADAPTER.validate_json(text)
