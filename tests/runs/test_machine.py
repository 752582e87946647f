"""Machine constants learned from finished points, close to the shipped ones with few data."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from ntk_core.runs import PRESETS, SHIPPED, Machine, Work, _costs, estimate, learn, machine
from ntk_core.runs._costs import fitted
from ntk_core.settings.grammar import with_settings


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch):
    monkeypatch.setattr(_costs, "_here", SHIPPED)
    monkeypatch.setattr(_costs, "_finished", [])


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
    ratios = [seconds / found.seconds(work) for work, seconds in noisy(other, 300, 0.2)]
    assert 0.9 < np.median(ratios) < 1.1


def test_few_points_change_little_and_none_changes_nothing():
    assert fitted([]) == SHIPPED
    work = works(1)[0]
    one = fitted([(work, 3 * SHIPPED.seconds(work))])
    assert SHIPPED.seconds(work) < one.seconds(work) < 2 * SHIPPED.seconds(work)


def test_slow_outliers_do_not_dominate_estimates():
    points = noisy(SHIPPED, 100, 0.1)
    found = fitted([*points, *((work, 100 * seconds) for work, seconds in points[:5])])
    ratios = [seconds / found.seconds(work) for work, seconds in points]
    assert 0.7 < np.median(ratios) < 1.4


def test_estimates_follow_what_was_learned():
    spec = PRESETS["liu-fig1-left"].spec
    before = estimate(spec).seconds
    learn((work, 3 * SHIPPED.seconds(work)) for work in works(200))
    assert machine() != SHIPPED
    assert estimate(spec).seconds == pytest.approx(3 * before, rel=0.1)


def test_worst_case_counts_all_steps():
    spec = with_settings(PRESETS["liu-fig1-left"].spec, {"training.max_steps": 1_000_000})
    more = with_settings(spec, {"training.max_steps": 2_000_000})
    assert estimate(spec).seconds == estimate(more).seconds
    worst, twice = (estimate(each, most=True).seconds for each in (spec, more))
    assert twice - worst == pytest.approx(worst, rel=0.1)
    assert worst > 50 * estimate(spec).seconds
    for preset in PRESETS.values():
        assert estimate(preset.spec, most=True).seconds >= estimate(preset.spec).seconds
