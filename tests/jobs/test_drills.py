"""Small versions of the drills of benchmarks/drills, with the same claims."""

from __future__ import annotations

import os

import pytest

from benchmarks.drills import kills, stops
from benchmarks.drills.report import own_data, spread
from benchmarks.drills.secrets import Secrets
from benchmarks.drills.sweeps import growth

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")]


def test_kills_of_server_and_workers_lose_no_point_and_every_job_goes_on():
    with own_data() as folder:
        found = kills.drill(folder, num_kills=3, seed=3, longest_s=2.0)
        reference = kills.uninterrupted(folder, found["num_sweeps"])
    assert min(found["kills"].values()) >= 1
    claims = kills.claims(found, reference)
    assert claims == dict.fromkeys(claims, True)


def test_a_job_counts_as_lost_once_it_was_taken():
    queued, ended = ({"found": 0, "status": status} for status in ("queued", "cancelled"))
    assert kills.not_resumed([ended]) == []  # the server was killed while it took the job
    assert kills.not_resumed([{"taken": 0}, ended]) == [ended]
    assert kills.not_resumed([queued, ended]) == [ended]
    assert kills.not_resumed([{"taken": 1}, queued, {"point": "width=16", "of": 0}]) == []


def test_stop_takes_effect_at_once_while_compiling_and_training():
    stopped = [stop for stop in stops.measure(3) if stop["status"] == "cancelled"]
    assert len(stopped) >= 2
    assert all(stop["kept"] for stop in stopped)
    assert spread([stop["stop_s"] for stop in stopped])["median_s"] < 2 * stops.LIMIT_S  # a busy machine runs the tests


def test_growth_is_from_the_first_to_the_last_after_the_warm_up():
    assert growth([1, 9, 4, 4, 4, 5, 5, 5], warm_up=2, window=3) == pytest.approx(0.25)
    assert growth([9, 4, 4, 4, 4], warm_up=1, window=2) == 0
    saw = [1, 2, 3] * 7
    assert growth(saw, warm_up=3, window=4) == pytest.approx(2 / 3)  # 1 2 3 1 and 3 1 2 3: no growth at all
    assert growth(saw, warm_up=3, window=4, of=max) == 0
    assert growth([each * (1 + index) for index, each in enumerate(saw)], warm_up=3, window=4, of=max) > 1


def test_a_secret_that_reaches_another_session_is_told_and_one_that_reaches_its_owner_is_counted():
    secrets = Secrets()
    secrets.add(0, ["mine", "never sent"])
    secrets.listener(0)(b"\x00mine\xff")
    assert (secrets.own, len(secrets), secrets.leaks) == (1, 2, [])
    secrets.listener(1)(b"a list with mine in it")
    assert secrets.leaks == ["session 1 was sent mine of session 0"]
