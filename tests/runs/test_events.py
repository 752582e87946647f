"""JSON round trips of events and results, with infinities and NaN."""

import math

import pytest
from pydantic import ValidationError

from ntk_core.runs.events import Ended, Estimated, PointFailed, PointFinished, PointProgress, parse_event
from tests.runs.store.made_runs import point, result

RUN = point(10).runs[0].model_copy(update={"change": (0.25, math.nan)})
POINT = point(10).model_copy(update={"runs": (RUN,)})
RESULT = result("cancelled").model_copy(update={"points": (POINT,)})


@pytest.mark.parametrize(
    "event",
    [
        Estimated(num_points=1, seconds=2.0, peak_bytes=3.0),
        PointProgress(key="width=10", fraction=0.5, remaining_s=None, message="…"),
        PointFinished(key="width=10", point=POINT, fraction=1.0, remaining_s=0.0),
        PointFailed(key="width=10", reason="out of memory"),
        Ended(status="cancelled", result=RESULT),
    ],
    ids=lambda event: event.kind,
)
def test_an_event_is_one_line_of_json_and_back(event):
    line = event.model_dump_json()
    assert "\n" not in line
    assert parse_event(line).model_dump_json() == line
    assert type(parse_event(line)) is type(event)


def test_infinite_and_undefined_values_survive():
    event = PointFinished(key="k", point=POINT, fraction=1.0, remaining_s=None)
    run = parse_event(event.model_dump_json()).point.runs[0]
    assert math.isnan(run.change[1])
    assert run.loss[1] == math.inf
    assert run.sup_change == 0.25  # over finite changes


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "ended"}', '{"kind": "made_up"}', "[]"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValidationError):
        parse_event(text)
