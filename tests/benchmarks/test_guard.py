"""The guard names what has become slower, and the simulated queue is Erlang's where his formula holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import guard, waits


def of(before, *now):
    """A ratio that was, and what is measured now, time after time."""
    found = iter(now)

    def row(plain):
        return {"times": {"plain": {"min_s": plain}, "ours": {"min_s": 1.0}}}

    return guard.Watched("kernel", "kernel", "plain", lambda data: row(before), lambda: row(next(found)))


def test_every_watched_ratio_is_among_the_committed_ones():
    missing = {each.result for each in guard.WATCHED if each.before() is None}
    assert missing <= {"large_n"}  # which a quiet machine writes first
    assert all((each.before() or 1) > 0 for each in guard.WATCHED)
    assert len({each.name for each in guard.WATCHED}) == len(guard.WATCHED) > 8


def test_what_has_fallen_is_measured_again_before_it_is_believed():
    assert guard.look(of(10.0, 8.1)) == (10.0, 8.1)
    assert guard.look(of(10.0, 3.0, 9.0)) == (10.0, 9.0)
    assert guard.look(of(10.0, 3.0, 5.0, 4.0)) == (10.0, 5.0)


def test_the_verdict_is_one_sentence_and_an_exit_code():
    assert guard.verdict({"kernel": (10.0, 8.1), "step": (2.0, 3.0)}, False)[1] == 0
    words, code = guard.verdict({"kernel": (10.0, 7.9), "step": (2.0, 3.0)}, False)
    assert (code, words) == (1, "Fallen by more than 20%: kernel (10 × before, 7.9 × now).")
    words, code = guard.verdict({"kernel": (10.0, 7.9)}, True)
    assert code == 3
    assert "measure again" in words


def test_results_of_another_processor_are_named():
    assert guard.elsewhere({"kernel": "this"}, "this") == ""
    words = guard.elsewhere({"kernel": "this", "large_n": "that"}, "this")
    assert words.endswith("(this), so less comparable: large_n (that).")


def erlang_wait(rate: float, service_s: float, workers: int) -> float:
    """Mean seconds that a run waits where services are exponential (M/M/c, first come, first served).

    Source: Erlang 1917; Kleinrock, Queueing Systems I, §3.5.
    """
    load, blocked = rate * service_s, 1.0
    for count in range(1, workers + 1):  # the recursion of Erlang's B formula
        blocked = load * blocked / (count + load * blocked)
    waits = blocked / (1 - load / workers * (1 - blocked))
    return waits / (workers / service_s - rate)


def test_simulated_waits_agree_with_erlang():
    rate, service, jobs = 0.8, 2.0, 6_000
    for workers in (2, 5):
        means = []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            arrivals = np.cumsum(rng.exponential(1 / rate, jobs))
            means.append(waits.simulated(arrivals, rng.exponential(service, jobs), workers)[jobs // 10 :].mean())
        error = np.std(means, ddof=1) / math.sqrt(len(means))
        # Three standard errors, which the runs themselves say: the waits of neighbors in a queue go together.
        assert abs(np.mean(means) - erlang_wait(rate, service, workers)) <= 3 * error
    assert erlang_wait(0.8, 1.0, 1) == pytest.approx(0.8 / 0.2)  # M/M/1: ρ / (μ − λ)


def test_runs_wait_for_those_ahead_of_them():
    arrivals, services = np.array([0.0, 10.0, 11.0]), np.array([500.0, 20.0, 20.0])
    assert waits.simulated(arrivals, services, 1).tolist() == [0, 490, 509]
    assert waits.simulated(arrivals, services, 2).tolist() == [0, 0, 19]


def test_tables_are_written_between_their_marks():
    page = "a\n<!-- waits -->\nold\n<!-- end -->\nb"
    assert waits.written(page, [("waits", "| new |")]) == "a\n<!-- waits -->\n| new |\n<!-- end -->\nb"
    with pytest.raises(ValueError, match="no place"):
        waits.written(page, [("others", "")])
