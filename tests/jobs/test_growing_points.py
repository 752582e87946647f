"""Partial points: shown during computation, never counted as finished."""

from linearity_lab.components.gallery import gallery_result
from linearity_lab.jobs._job import Job
from ntk_core.runs import PRESETS
from ntk_core.runs.events import PointFailed, PointFinished, PointProgress, PointStarted, parse_event

SPEC = PRESETS["hu-fig1"].spec
POINT, SECOND = gallery_result("hu-fig1").points[:2]


def progress(point=None, key=POINT.key) -> PointProgress:
    return PointProgress(key=key, fraction=0.1, remaining_s=None, message="step 10", point=point)


def test_growing_point_is_shown_until_it_is_finished():
    job = Job(SPEC)
    job.begin()
    job.take(PointStarted(key=POINT.key, index=0))
    assert job.now.growing == ()
    job.take(progress(POINT))
    before = job.now
    job.take(progress())  # a stretch without a record keeps the partial curves
    assert before.growing == job.now.growing == (POINT,)
    assert job.now.points == ()
    job.take(PointFinished(key=POINT.key, point=POINT, fraction=0.3, remaining_s=None))
    assert job.now.growing == ()
    assert job.now.points == (POINT,)


def test_points_growing_in_parallel_are_in_order_of_the_spec():
    job = Job(SPEC)
    job.begin()
    for point in (SECOND, POINT):
        job.take(progress(point, point.key))
    assert job.now.growing == (POINT, SECOND)
    job.take(PointFailed(key=POINT.key, reason="why"))
    assert job.now.growing == (SECOND,)


def test_partial_point_stays_until_the_next_start():
    job = Job(SPEC)
    job.begin()
    job.take(progress(POINT))
    for status in ("cancelled", "stopped", "failed"):
        job.end(status)
        assert job.now.growing == (POINT,)
        assert job.now.points == ()
    job.wait("ann")
    assert job.now.growing == ()


def test_growing_point_survives_json():
    assert parse_event(progress(POINT).model_dump_json()) == progress(POINT)
