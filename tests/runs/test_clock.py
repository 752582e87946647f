"""Estimates of the remaining time, with a simulated clock."""

import pytest

from ntk_core.runs import _run
from ntk_core.runs._run import Clock


@pytest.fixture
def now(monkeypatch):
    times = [100.0]
    monkeypatch.setattr(_run.time, "monotonic", lambda: times[0])
    return times


def test_no_estimate_before_any_progress(now):
    clock = Clock({"a": 1.0, "b": 3.0})
    assert clock.so_far()["remaining_s"] is None
    clock.advance("a", 0.0)
    assert clock.so_far()["remaining_s"] is None
    assert clock.so_far()["fraction"] == 0


@pytest.mark.parametrize(("slower", "tolerance"), [(0.5, 0.02), (1.0, 1e-12), (8.0, 0.02)])
def test_after_much_work_what_remains_is_by_the_speed_so_far(slower, tolerance, now):
    clock = Clock({"a": 100.0, "b": 300.0})
    clock.advance("a", 0.0)
    now[0] += 100.0 * slower
    clock.advance("a", 1.0)
    assert clock.so_far()["fraction"] == 0.25
    assert clock.so_far()["remaining_s"] == pytest.approx(300.0 * slower, rel=tolerance)


def test_first_moment_without_a_compile_promises_no_end(now):
    clock = Clock({"a": 1.0, "b": 3.0})
    clock.advance("a", 0.0)
    now[0] += 0.01  # a hundred times as fast as expected, for a hundredth of a second
    clock.advance("a", 1.0)
    assert 1.0 < clock.so_far()["remaining_s"] < 3.0


def test_points_of_an_earlier_run_do_not_count_as_speed(now):
    clock = Clock({"a": 50.0, "b": 50.0}, skipped=["a"])
    clock.advance("b", 0.0)
    now[0] += 10.0
    clock.advance("b", 0.2)
    assert clock.so_far()["fraction"] == pytest.approx(0.6)
    assert clock.so_far()["remaining_s"] == pytest.approx(40.0)
