"""A point that grows is shown while it is computed, and never counted as finished."""

from linearity_lab.jobs._job import Job
from ntk_core.runs import PRESETS
from ntk_core.runs.events import PointFailed, PointFinished, PointProgress, PointStarted
from tests.dashboard.made_early import make_early_point

SPEC = PRESETS["hu-fig1"].spec
POINT = make_early_point(25)


def progress(point=None, key=POINT.key) -> PointProgress:
    return PointProgress(key=key, fraction=0.1, remaining_s=None, message="step 10", point=point)


def test_a_growing_point_is_seen_until_it_is_finished():
    job = Job(SPEC, "0" * 16)
    job.begin()
    job.take(PointStarted(key=POINT.key, index=0))
    assert job.snapshot().growing == ()
    job.take(progress(POINT))
    before = job.snapshot()
    job.take(progress())  # a stretch without a record: the curves so far stay
    assert before.growing == job.snapshot().growing == (POINT,)
    assert job.snapshot().points == ()
    job.take(PointFinished(key=POINT.key, point=POINT, fraction=0.3, remaining_s=None))
    assert job.snapshot().growing == ()
    assert job.snapshot().points == (POINT,)


def test_points_that_grow_side_by_side_are_seen_together_in_the_order_of_the_spec():
    job = Job(SPEC, "0" * 16)
    job.begin()
    first, second = (make_early_point(int(key.partition("=")[2])) for key in SPEC.point_keys()[:2])
    for point in (second, first):
        job.take(progress(point, point.key))
    assert job.snapshot().growing == (first, second)
    job.take(PointFailed(key=first.key, reason="why"))
    assert job.snapshot().growing == (second,)


def grown() -> Job:
    job = Job(SPEC, "0" * 16)
    job.begin()
    job.take(progress(POINT))
    assert job.snapshot().growing == (POINT,)
    return job


def test_what_had_grown_stays_in_sight_when_the_job_is_stopped():
    job = grown()
    job.end("cancelled")
    assert job.snapshot().growing == (POINT,)
    assert job.snapshot().points == ()


def test_what_had_grown_is_gone_when_the_job_fails_or_loses_its_worker_or_waits_again():
    for end in (lambda job: job.end("failed", "why"), lambda job: job.lose_worker("why"), lambda job: job.wait()):
        job = grown()
        end(job)
        assert job.snapshot().growing == ()


def test_a_growing_point_survives_the_way_through_json():
    from ntk_core.runs.events import event_json, parse_event

    assert parse_event(event_json(progress(POINT))) == progress(POINT)
