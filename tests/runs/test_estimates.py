"""Estimates: counts, constants learned from finished points, and the remaining time of a run."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from linearity_lab.networks.sizes import LayerSize
from linearity_lab.runs import (
    PRESETS,
    SHIPPED,
    Counted,
    Counts,
    Machine,
    Work,
    _run,
    costs,
    estimate,
    learn,
    machine,
    parse_spec,
    peak_bytes,
)
from linearity_lab.runs._run import Clock
from linearity_lab.runs._spec import MAX_POINTS
from linearity_lab.runs.costs import COEFFICIENTS, fitted, total_work
from linearity_lab.settings.grammar import InvalidSpec, with_settings


def test_too_many_points_are_refused_by_the_swept_setting():
    widths = {"widths": list(range(100, 124)), "richness": [r / 16 for r in range(8)]}
    attack = {
        "experiment": "generalization",
        "samples": [10, 20, 30, 40, 50, 60],
        "num_seeds": 100,
        **widths,
    }
    with pytest.raises(
        InvalidSpec, match=f"at most {MAX_POINTS} choices of width, ρ and n"
    ) as refused:
        parse_spec(attack)
    (problem,) = refused.value.problems
    assert problem.field == "widths"
    assert len(parse_spec(attack | {"widths": problem.nearest}).point_keys()) <= MAX_POINTS


def test_counts_become_work_and_bytes_by_one_formula():
    network = Counted([LayerSize(1, 10, 30), LayerSize(1, 30, 2)], 5, 2)
    weights, rows = 10 * 30 + 30 * 2, 5 * 2
    counts = Counts(
        network,
        {"training": 2},
        times=3,
        steps=7,
        cubes=11,
        more=Work(calls=13),
        copies=4,
        matrices=6,
    )
    work = counts.work
    assert work.operations == 3 * (7 * 6 * 5 * weights + 11 * rows**3)
    assert work.calls == 3 * (7 + 13)
    assert work.programs == 2 * COEFFICIENTS["training"] * network.program
    assert peak_bytes((counts, Counts(num_bytes=1.0))) == 4 * (4 * weights + 6 * rows**2)
    assert total_work((counts, counts)).operations == 2 * work.operations


@pytest.fixture
def nothing_learned(monkeypatch):
    monkeypatch.setattr(costs, "_here", SHIPPED)
    monkeypatch.setattr(costs, "_finished", [])


def works(count: int) -> list[Work]:
    draw = random.Random(0)
    sizes = (3e11, 3e11, 2e5, 3.0)
    return [Work(*(size * 10 ** draw.uniform(-4, 1) for size in sizes)) for _ in range(count)]


def noisy(here: Machine, count: int, sigma: float) -> list[tuple[Work, float]]:
    draw = random.Random(1)
    return [(work, here.seconds(work) * math.exp(draw.gauss(0, sigma))) for work in works(count)]


def test_the_constants_of_another_machine_are_found():
    other = Machine(operations=5e-12, traffic=2e-10, calls=7e-6, programs=6.0)
    found = fitted(noisy(other, 300, 0.2))
    assert tuple(found) == pytest.approx(tuple(other), rel=0.3)
    assert fitted([]) == SHIPPED
    work = works(1)[0]
    one = fitted([(work, 3 * SHIPPED.seconds(work))])
    assert SHIPPED.seconds(work) < one.seconds(work) < 2 * SHIPPED.seconds(work)


def test_slow_outliers_do_not_dominate_estimates():
    points = noisy(SHIPPED, 100, 0.1)
    found = fitted([*points, *((work, 100 * seconds) for work, seconds in points[:5])])
    assert 0.7 < np.median([seconds / found.seconds(work) for work, seconds in points]) < 1.4


def test_estimates_follow_what_was_learned(nothing_learned):
    spec = PRESETS["liu-fig1-left"].spec
    before = estimate(spec).seconds
    learn((work, 3 * SHIPPED.seconds(work)) for work in works(200))
    assert machine() != SHIPPED
    assert estimate(spec).seconds == pytest.approx(3 * before, rel=0.1)


def test_worst_case_counts_all_steps(nothing_learned):
    spec = with_settings(PRESETS["liu-fig1-left"].spec, {"training.max_steps": 1_000_000})
    more = with_settings(spec, {"training.max_steps": 2_000_000})
    assert estimate(spec).seconds == estimate(more).seconds
    worst, twice = (estimate(each, most=True).seconds for each in (spec, more))
    assert twice - worst == pytest.approx(worst, rel=0.1)
    assert worst > 50 * estimate(spec).seconds
    for preset in PRESETS.values():
        assert estimate(preset.spec, most=True).seconds >= estimate(preset.spec).seconds


@pytest.fixture
def now(monkeypatch):
    times = [100.0]
    monkeypatch.setattr(_run.time, "monotonic", lambda: times[0])
    return times


@pytest.mark.parametrize(("slower", "tolerance"), [(0.5, 0.02), (1.0, 1e-12), (8.0, 0.02)])
def test_after_much_work_what_remains_is_by_the_speed_so_far(slower, tolerance, now):
    clock = Clock({"a": 100.0, "b": 300.0})
    assert clock.so_far()["remaining_s"] is None
    clock.advance("a", 0.0)
    assert (clock.so_far()["remaining_s"], clock.so_far()["fraction"]) == (None, 0)
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
