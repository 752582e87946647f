"""The simulated queue against Erlang's formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks import waits


def erlang_wait(rate: float, service_s: float, workers: int) -> float:
    """Mean wait in seconds with exponential service times (M/M/c, first come, first served).

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
        # Three standard errors between runs, since successive waits in a queue are correlated.
        assert abs(np.mean(means) - erlang_wait(rate, service, workers)) <= 3 * error
    assert erlang_wait(0.8, 1.0, 1) == pytest.approx(0.8 / 0.2)  # M/M/1: ρ / (μ − λ)


def test_runs_wait_for_those_ahead_of_them():
    arrivals, services = np.array([0.0, 10.0, 11.0]), np.array([500.0, 20.0, 20.0])
    assert waits.simulated(arrivals, services, 1).tolist() == [0, 490, 509]
    assert waits.simulated(arrivals, services, 2).tolist() == [0, 0, 19]


def test_tables_are_written_between_their_marks():
    page = "a\n<!-- waits -->\nold\n<!-- end -->\nb"
    assert waits.written(page, {"waits": "| new |"}) == "a\n<!-- waits -->\n| new |\n<!-- end -->\nb"
    with pytest.raises(ValueError, match="no place"):
        waits.written(page, {"others": ""})
