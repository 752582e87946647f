"""Small versions of the drills of benchmarks/drills, with the same claims."""

import os
from pathlib import Path

import pytest

from benchmarks.drills import kills
from benchmarks.drills.report import own_data
from benchmarks.drills.sessions import Seen

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")]


@pytest.mark.timeout(400)
def test_kills_lose_no_point_and_every_job_completes():
    with own_data() as folder:
        found = kills.drill(folder, num_kills=2, seed=9, longest_s=2.0)
    with own_data() as folder:
        reference = kills.uninterrupted(folder, found["num_sweeps"])
    assert min(found["kills"].values()) >= 1
    claims = kills.claims(found, reference)
    assert claims == dict.fromkeys(claims, True), found


def test_texts_of_other_sessions_are_leaks():
    seen = Seen(Path("store"), owners={b"mine": 0, b"never sent": 0})
    seen.listen(0, b"\x00mine\xff")
    assert (seen.arrived, seen.leaks) == ({b"mine"}, [])
    seen.listen(1, b"a list with mine in it")
    assert seen.leaks == ["session 1 was sent mine of session 0"]
