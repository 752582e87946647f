"""Cost of an estimate, and the meaning of its counts."""

from __future__ import annotations

from typing import Any

import pytest

from ntk_core.networks.sizes import LayerSize
from ntk_core.runs import (
    PRESETS,
    Counted,
    Counts,
    Work,
    counts_of,
    parse_spec,
    peak_bytes,
)
from ntk_core.runs._costs import COEFFICIENTS, total_work
from ntk_core.runs._estimate import ROUND, largest_fitting
from ntk_core.runs._spec import MAX_POINTS
from ntk_core.settings.grammar import InvalidSpec

# The most points of a run, with the most seeds and steps within their bounds.
LARGEST: dict[str, Any] = {
    "experiment": "generalization",
    "widths": list(range(100, 105)),
    "richness": [0.0, 0.1, 0.2, 0.3],
    "samples": [10, 20, 30, 40, 50, 60],
    "num_seeds": 100,
    "training": {"max_steps": 10_000_000},
}


def test_too_many_points_are_refused_by_the_swept_setting():
    attack = LARGEST | {"widths": list(range(100, 124)), "richness": [r / 16 for r in range(8)]}
    with pytest.raises(InvalidSpec, match=f"at most {MAX_POINTS} choices of width, ρ and n") as refused:
        parse_spec(attack)
    (problem,) = refused.value.problems
    assert problem.field == "widths"
    assert len(parse_spec(attack | {"widths": problem.nearest}).point_keys()) <= MAX_POINTS


def test_largest_fitting_value_has_two_digits():
    for limit in (1, 2, 9, 10, 57, 99, 100, 4321, 7_654_321):
        asked: list[int] = []

        def fits(value, asked=asked, limit=limit):
            asked.append(value)
            return value <= limit

        found = largest_fitting(fits, 10_000_000)
        assert found == max(each for each in ROUND if each <= limit)
        assert len(asked) <= 10
    assert largest_fitting(lambda _: False, 1) == 1


def test_counts_become_work_and_bytes_by_one_formula():
    network = Counted([LayerSize(1, 10, 30), LayerSize(1, 30, 2)], 5, 2)
    weights, rows = 10 * 30 + 30 * 2, 5 * 2
    counts = Counts(network, {"training": 2}, times=3, steps=7, cubes=11, more=Work(calls=13), copies=4, matrices=6)
    work = counts.work
    assert work.operations == 3 * (7 * 6 * 5 * weights + 11 * rows**3)
    assert work.calls == 3 * (7 + 13)
    assert work.programs == 2 * COEFFICIENTS["training"] * network.program
    assert peak_bytes((counts, Counts(num_bytes=1.0))) == 4 * (4 * weights + 6 * rows**2)
    assert total_work((counts, counts)).operations == 2 * work.operations


@pytest.mark.parametrize("name", PRESETS)
def test_every_program_that_is_counted_has_its_coefficient(name):
    spec = PRESETS[name].spec
    for key in spec.point_keys():
        assert {kind for each in counts_of(spec, key) for kind in each.programs} <= set(COEFFICIENTS)
