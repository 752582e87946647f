"""How a page follows a job: what it says while the job waits or loses its worker, and how often it looks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.components.run_panel import CROWD, REFRESH_S, WAITING_REFRESH_S, progress_words, refresh_s
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from tests.dashboard.open_pages import checked, open_page, words

SPEC = KernelChangeSpec(widths=(30, 100, 1000))


@pytest.fixture
def running(jobs):
    return jobs.snapshots[jobs.add(SPEC)]


def test_waiting_says_the_place_the_beginning_and_the_end(running):
    waiting = replace(running, status="queued", position=3, starts_in_s=40.0, remaining_s=200.0)
    assert progress_words(waiting) == "Waiting, place 3 in the queue, begins in about 40 s, done in about 3 min"


def test_the_reason_why_a_worker_was_replaced_is_shown(jobs):
    cause = "the worker process was killed by the system (SIGKILL) at width 1000; another one went on"
    app = checked(open_page("kernel_change", job=jobs.add(SPEC, interruption=cause)))
    assert cause in words(app)


def test_jobs_that_wait_are_looked_at_less_often(running):
    waiting = replace(running, status="queued")
    assert refresh_s(running) == REFRESH_S
    assert refresh_s(waiting) == WAITING_REFRESH_S


@pytest.mark.parametrize("viewers", [1, CROWD, CROWD + 1, 30, 64, 300])
def test_all_viewers_together_look_no_more_often_than_a_small_crowd(jobs, running, viewers):
    jobs.viewers = viewers
    assert viewers / refresh_s(running) <= CROWD / REFRESH_S
    assert viewers <= CROWD or viewers / refresh_s(running) > CROWD / REFRESH_S / 2


def test_another_job_in_its_place_is_followed_instead_of_the_first(jobs):
    first = jobs.add(SPEC)
    app = checked(open_page("kernel_change", job=first))
    assert jobs.left == []
    app.query_params["job"] = jobs.add(KernelChangeSpec(widths=(30, 100)))
    checked(app.run())
    assert jobs.left == [first]
