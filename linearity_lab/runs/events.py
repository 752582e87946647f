"""Typed events of a run, for every progress display."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from linearity_lab.runs._any_result import Point, Result
from linearity_lab.runs._spec import Spec
from linearity_lab.runs._values import EndStatus, Value
from ntk_core.markup import Displayed, paragraph
from ntk_core.numbers import duration, size


class Cause(StrEnum):
    """Why a point failed or a run ended early; the sentence beside it is for readers only."""

    ERROR = "error"
    INVALID_INPUT = "invalid input"
    OVER_MEMORY = "over memory"
    DOES_NOT_FIT = "does not fit"  # refused before it started
    OVER_TIME = "over time"
    OVER_SIZE = "over size"  # of the result
    WORKER_DIED = "worker died"
    STOPPED_BY_OPERATOR = "stopped by the operator"
    CLAIMED = "claimed by another server"


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
    """A point failed; the run continues with the next one.

    Attributes:
        reason: one sentence for readers.
        cause: what programs decide by.
    """

    kind: Literal["point_failed"] = "point_failed"
    key: str
    reason: str
    cause: Cause = Cause.ERROR


class Ended(Value, Displayed):
    """The last event; a cancelled run keeps its points and can be resumed.

    Attributes:
        result: the result with all finished points; None if nothing could start.
        reason: one sentence for ``failed`` and ``stopped``, for readers; empty otherwise.
        cause: what programs decide by; None if it completed, was cancelled, or has no known cause.
    """

    kind: Literal["ended"] = "ended"
    status: EndStatus
    result: Result | None = None
    reason: str = ""
    cause: Cause | None = None


ENDS = {
    "completed": "Completed",
    "cancelled": "Stopped",
    "stopped": "Stopped by the server",
    "failed": "Failed",
}


def estimate_words(found: Estimated) -> str:
    """Return the words of an estimate.

    Example: ``6 points, about 12 s on this machine, at most 0.4 GiB at a time.``
    """
    points = f"{found.num_points} point{'s' * (found.num_points != 1)}"
    time_s = f"about {duration(found.seconds)}" if found.seconds >= 1 else "less than a second"
    return (
        f"{points}, {time_s} on this machine, about {size(found.peak_bytes)} of memory for the "
        "largest."
    )


def counted_points(spec: Spec, count: int) -> str:
    asked = len(spec.point_keys())
    return f"{count} of {asked} {spec.point_words[asked != 1]}"


Event = Annotated[
    Estimated | PointStarted | PointProgress | PointFinished | PointFailed | Ended,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(text: str | bytes) -> Event:
    """Parse an event from a line of JSON; raise ``pydantic.ValidationError`` for other text."""
    return _ADAPTER.validate_json(text)
