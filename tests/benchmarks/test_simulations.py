"""Simulations: coverage of intervals of exponents, and a queue against Erlang's formula."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from benchmarks import waits
from benchmarks.coverage import CHOSEN, METHODS, NUM_SEEDS, NUM_WIDTHS, REGIMES, covered
from benchmarks.measure import RESULTS, environment
from benchmarks.table import page

# Nominal 95 %; a share of 1,000 has a standard error of 0.7 %.
LEAST, MOST = 0.93, 0.97
BY_VALUE = "dropped by value at one end"


@pytest.fixture(scope="module")
def found():
    return json.loads((RESULTS / "coverage.json").read_text())


def test_chosen_interval_covers_in_every_regime(found):
    assert found["chosen"] == CHOSEN
    sizes = {(row["regime"], row["seeds"], row["widths"]) for row in found["rows"]}
    assert sizes == {
        (regime, seeds, widths)
        for regime in REGIMES
        for seeds in NUM_SEEDS
        for widths in NUM_WIDTHS
    }
    for row in found["rows"]:
        chosen = row["methods"][CHOSEN]
        assert LEAST <= chosen["covers_of_kept"] <= MOST, row["regime"]
        assert row["regime"] == BY_VALUE or LEAST <= chosen["covers"] <= MOST, row["regime"]


def test_intervals_with_more_assumptions_fail_somewhere(found):
    for method in METHODS.keys() - {CHOSEN, "clustered by seed, CR3"}:
        assert any(row["methods"][method]["covers_of_kept"] < LEAST for row in found["rows"]), (
            method
        )


def test_dropping_runs_by_value_biases_the_exponent(found):
    for row in found["rows"]:
        moved = abs(row["exponent_of_kept"] + 0.7)
        assert moved > 0.005 if row["regime"] == BY_VALUE else moved < 0.005


def test_bend_test_has_a_false_positive_rate_of_5_percent(found):
    assert all(0.02 <= row["bends"] <= 0.08 for row in found["rows"])


def test_the_simulation_runs_and_can_be_shown():
    rows = [covered(regime, 3, 4, 5) for regime in REGIMES]
    assert all(row["methods"].keys() == METHODS.keys() for row in rows)
    shown = page(
        {"coverage": {"environment": environment(), "trials": 5, "chosen": CHOSEN, "rows": rows}}
    )
    methods = [line.split("|")[1].strip(" *") for line in shown.splitlines() if " × |" in line]
    assert methods == list(METHODS)


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
            means.append(
                waits.simulated(arrivals, rng.exponential(service, jobs), workers)[
                    jobs // 10 :
                ].mean()
            )
        error = np.std(means, ddof=1) / math.sqrt(len(means))
        # Three standard errors between runs, since successive waits in a queue are correlated.
        assert abs(np.mean(means) - erlang_wait(rate, service, workers)) <= 3 * error
    assert erlang_wait(0.8, 1.0, 1) == pytest.approx(0.8 / 0.2)  # M/M/1: ρ / (μ − λ)


def test_runs_wait_for_those_ahead_of_them():
    arrivals, services = np.array([0.0, 10.0, 11.0]), np.array([500.0, 20.0, 20.0])
    assert waits.simulated(arrivals, services, 1).tolist() == [0, 490, 509]
    assert waits.simulated(arrivals, services, 2).tolist() == [0, 0, 19]
