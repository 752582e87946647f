"""A point that grows is shown while it is computed, and never counted as finished."""

from dashboard.jobs._job import Job
from ntk_core.events import PointFinished, PointProgress, PointStarted
from ntk_core.papers import PRESETS
from tests.dashboard.made_early import make_early_point

SPEC = PRESETS["hu-fig1"].spec
POINT = make_early_point(25)


def progress(point=None) -> PointProgress:
    return PointProgress(key=POINT.key, fraction=0.1, remaining_s=None, message="step 10", point=point)


def test_a_growing_point_is_seen_until_it_is_finished():
    job = Job(SPEC, "0" * 16)
    job.begin()
    job.take(PointStarted(key=POINT.key, index=0))
    assert job.snapshot(0).growing is None
    job.take(progress(POINT))
    before = job.snapshot(0)
    job.take(progress())  # a stretch without a record: the curves so far stay
    assert before.growing == job.snapshot(0).growing == POINT
    assert job.snapshot(0).points == ()
    job.take(PointFinished(key=POINT.key, point=POINT, fraction=0.3, remaining_s=None))
    assert job.snapshot(0).growing is None
    assert job.snapshot(0).points == (POINT,)


def test_what_had_grown_is_gone_when_the_job_ends_or_waits_again():
    job = Job(SPEC, "0" * 16)
    for end in (lambda: job.end("cancelled"), job.wait):
        job.begin()
        job.take(progress(POINT))
        assert job.snapshot(0).growing == POINT
        end()
        assert job.snapshot(0).growing is None


def test_a_growing_point_survives_the_way_through_json():
    from ntk_core.events import event_json, parse_event

    assert parse_event(event_json(progress(POINT))) == progress(POINT)
