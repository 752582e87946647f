"""Events survive JSON; points keep their provenance when another run reuses them."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import Provenance, run
from linearity_lab.runs.events import (
    Cause,
    Ended,
    Estimated,
    PointFailed,
    PointFinished,
    PointProgress,
    parse_event,
)
from linearity_lab.settings.training import TrainingSpec
from tests.running import Kept
from tests.runs.store.made_runs import point, result

RUN = point(10).runs[0].model_copy(update={"change": (0.25, math.nan)})
POINT = point(10).model_copy(update={"runs": (RUN,)})
RESULT = result("cancelled").model_copy(update={"points": (POINT,)})
TRAINING = TrainingSpec(max_steps=2, num_records=2)
SPEC = KernelChangeSpec(widths=(4, 8), num_seeds=1, outputs=("linear",), training=TRAINING)
EARLIER = Provenance(
    versions={"jax": "0.1"},
    platform="another one",
    device="abacus",
    dtype="float32",
    started_at="2020-01-01",
)


def test_an_event_is_one_line_of_json_and_back():
    finished = PointFinished(key="width=10", point=POINT, fraction=1.0, remaining_s=0.0)
    for event in (
        Estimated(num_points=1, seconds=2.0, peak_bytes=3.0),
        PointProgress(key="width=10", fraction=0.5, remaining_s=None, message="…"),
        finished,
        PointFailed(key="width=10", reason="out of memory", cause=Cause.OVER_MEMORY),
        Ended(status="cancelled", result=RESULT),
    ):
        line = event.model_dump_json()
        assert "\n" not in line
        assert parse_event(line).model_dump_json() == line
        assert type(parse_event(line)) is type(event)
    run = parse_event(finished.model_dump_json()).point.runs[0]
    assert math.isnan(run.change[1])
    assert run.loss[1] == math.inf
    assert run.sup_change == 0.25  # over finite changes


@pytest.mark.parametrize("text", ["", '{"kind": "ended"}', '{"kind": "made_up"}', "[]"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValidationError):
        parse_event(text)


def of_another_run(point):
    return point.model_copy(update={"provenance": EARLIER, "runtime_s": 100.0})


def test_points_keep_the_provenance_of_their_run():
    kept = Kept()
    *_, ended = run(SPEC, points=kept)
    assert [point.provenance for point in kept.values()] == [ended.result.provenance] * 2
    assert ended.result.origins == ((ended.result.provenance, ("width=4", "width=8")),)
    bare = tuple(point.model_copy(update={"provenance": None}) for point in ended.result.points)
    assert ended.result.model_copy(update={"points": bare}).origins == ended.result.origins

    *_, reused = run(SPEC, points=Kept({key: of_another_run(point) for key, point in kept.items()}))
    assert reused.result.provenance == EARLIER
    assert reused.result.origins == ((EARLIER, ("width=4", "width=8")),)
    assert reused.result.runtime_s >= 200

    *_, resumed = run(SPEC, points=Kept({"width=4": of_another_run(kept["width=4"])}))
    (first, of_first), (second, of_second) = resumed.result.origins
    assert (first, of_first, of_second) == (EARLIER, ("width=4",), ("width=8",))
    assert second == resumed.result.provenance != EARLIER
    assert resumed.result.runtime_s >= 100
