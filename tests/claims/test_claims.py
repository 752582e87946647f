"""Claims: readings against scipy, verdicts at their edges, and the page against the gallery."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from linearity_lab.page_modules import page_folders
from linearity_lab.runs import PRESETS
from tests.claims.claim import (
    CONFIRMED,
    LEAST_SEEDS,
    MEASURED,
    Claim,
    claims,
    confirmation_of,
    judged,
    verdict,
)
from tests.claims.confirmation import DRAWN, fresh, groups, is_current
from tests.claims.page import TRUTH, measured_words, rendered
from tests.claims.readings import READINGS, Measured, Reading, Record, Seen

ROOT = Path(__file__).resolve().parents[2]
LECTURE = "linearity_lab/dashboard/pages/lecture/steps"


def seen(*values: float, swept: float = 1.0) -> list[Seen]:
    return [Seen(swept, seed, value) for seed, value in enumerate(values)]


def draws(number: int, *, seed: int = 0) -> list[float]:
    return [float(value) for value in np.exp(np.random.default_rng(seed).normal(size=number))]


def plain(text: str) -> str:
    return " ".join(text.split())


# The page


def test_the_page_is_that_of_the_gallery():
    assert TRUTH.read_text(encoding="utf-8") == rendered(), "run make claims"


def shown(claim: Claim, of_preset: str) -> str:
    """Text of the file that quotes the claim, or this text of its preset."""
    text = (ROOT / claim.document).read_text(encoding="utf-8") if claim.document else ""
    return plain(text or getattr(PRESETS[claim.preset], of_preset))


def test_every_claim_is_quoted_verbatim():
    assert [
        each.name for each in claims() if plain(each.sentence) not in shown(each, "claim")
    ] == []


def test_presets_steps_pages_and_readme_have_claims():
    quoted = {claim.document for claim in claims()}
    steps = {path.relative_to(ROOT).as_posix() for path in (ROOT / LECTURE).glob("*.md")}
    pages = {
        (folder / "words.md").relative_to(ROOT).as_posix()
        for folder in page_folders()
        if (folder / "words.md").exists()
        and folder.name
        not in (
            "overview",
            "own_data",
            "linearity_report",
            "results",
        )  # which have no measures of their own
    }
    assert not set(PRESETS) - {claim.preset for claim in claims()}
    assert not steps - quoted
    assert not pages - quoted
    assert "README.md" in quoted


def test_what_is_not_confirmed_carries_its_caveat():
    """In the same file as the sentence, or in the claim of the preset.

    Claims on one run say so, too.
    """
    for each in judged():
        claim = each.claim
        words = shown(each.claim, "statement").casefold()
        assert math.isfinite(each.measured.value), claim.name
        if each.verdict != "not confirmed yet":
            is_restricted = each.verdict not in ("confirmed", "identity", "few runs")
            assert bool(claim.caveat) == is_restricted, claim.name
        assert claim.stated_caveat.casefold() in words, claim.name
        if each.fresh_seeds == each.measured.count == 1:
            assert re.search("one (run|seed)", words), claim.name


def test_a_caveat_quotes_the_interval_that_it_qualifies():
    """A number in a caveat is the fresh measurement itself, so that the two cannot disagree."""
    for claim in claims():
        if claim.caveat:
            assert "{measured}" in claim.caveat, claim.name
    assert MEASURED.read_text(encoding="utf-8") == measured_words(), "run make claims"


def test_identities_are_not_counted_as_confirmed():
    found = [each for each in judged() if each.claim.identity]
    assert found
    assert {each.verdict for each in found} == {"identity"}


def test_confirmations_come_from_fresh_seeds_and_data():
    for name, first in groups().values():
        batches = fresh(name, first)
        gallery: Any = PRESETS[name].spec
        seeds = [seed for spec in batches for seed in spec.seeds]
        assert seeds == list(range(first, first + len(seeds)))  # complete
        assert first > max(gallery.seeds)
        assert all((spec.dataset.seed >= first) == (spec.dataset.name in DRAWN) for spec in batches)
    kept = json.loads(CONFIRMED.read_text(encoding="utf-8"))
    assert kept
    # Exactly the planned seeds.
    assert not [key for key, each in kept.items() if not is_current(key, each)]


def test_a_confirmation_of_another_measure_does_not_count(tmp_path):
    claim = claims()[0]
    measured = {"value": 1.0, "low": 0.9, "high": 1.1, "count": 8, "kind": "95% interval"}
    for measure, expected in ((claim.fingerprint, Measured(**measured)), ("another", None)):
        path = tmp_path / f"{expected is None}.json"
        entry = {"measure": measure, "measured": measured}
        path.write_text(
            json.dumps({claim.preset: {"seeds": [1000, 8], "claims": {claim.name: entry}}})
        )
        assert confirmation_of(claim, path) == expected


# Verdicts

INSIDE = (-0.54, -0.46)
OUTSIDE = (0.1, 0.2)
ACROSS = (-0.7, -0.45)
WIDE = (-0.59, -0.41)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (INSIDE, INSIDE, "confirmed"),
        (WIDE, INSIDE, "confirmed"),
        (INSIDE, WIDE, "holds with a caveat"),
        (INSIDE, None, "not confirmed yet"),
        (INSIDE, ACROSS, "holds with a caveat"),
        (ACROSS, INSIDE, "holds with a caveat"),
        (INSIDE, (-2.0, 2.0), "not resolved"),
        (INSIDE, (math.nan, math.nan), "not resolved"),
        (INSIDE, OUTSIDE, "not seen"),
        (OUTSIDE, INSIDE, "not seen"),
    ],
)
def test_a_verdict_is_that_of_both_whole_intervals(first, second, expected):
    claim = SimpleNamespace(expected=(-0.6, -0.4), caveat_interval=(-1.0, 0.0), identity=False)
    both = [
        None if ends is None else Measured(sum(ends) / 2, *ends, 8, "95% interval")
        for ends in (first, second)
    ]
    assert verdict(claim, both[0], both[1], 8) == expected
    if second == WIDE:
        # 8 (2 · 0.18 / 0.2)², for half the width.
        assert both[1].seeds_needed(8, claim.expected) == 26


def test_one_run_outside_a_range_falsifies_it():
    claim = SimpleNamespace(expected=(0.0, 1.0), caveat_interval=None, identity=False)
    inside, outside = (Measured(0.5, 0.1, high, 8, "range") for high in (0.9, 1.1))
    assert verdict(claim, inside, outside, 8) == "not seen"


@pytest.mark.parametrize(
    ("identity", "seeds", "expected"),
    [(False, 8, "confirmed"), (False, 7, "few runs"), (True, 7, "identity")],
)
def test_a_range_of_few_seeds_confirms_nothing(identity, seeds, expected):
    claim = SimpleNamespace(expected=(0.0, 1.0), caveat_interval=None, identity=identity)
    inside = Measured(0.5, 0.1, 0.9, 24, "range")
    assert verdict(claim, inside, inside, seeds) == expected
    assert LEAST_SEEDS == 8


@pytest.mark.parametrize(("runs", "expected"), [(8, "confirmed"), (7, "few runs")])
def test_an_interval_of_few_runs_confirms_nothing(runs, expected):
    claim = SimpleNamespace(expected=(0.0, 1.0), caveat_interval=None, identity=False)
    inside = Measured(0.5, 0.4, 0.6, runs, "95% interval")
    assert verdict(claim, inside, inside, 3) == expected


def test_a_measurement_is_quoted_with_its_interval():
    ratio = Measured(0.26, 0.25, 0.28, 28, "95% interval")
    assert Measured(-0.4, -0.43, -0.37, 9, "95% interval").words == "−0.4 ± 0.03 (9 runs)"
    assert ratio.words == "0.26 (0.25 to 0.28, 28 runs)"
    assert Measured(2.0, 1.0, 4.0, 3, "range").words == "between 1 and 4 (3 runs)"


# Readings


def test_ratio_of_ends_uses_welch_interval_of_ends_only():
    first = draws(5)
    middle = draws(3, seed=1)
    last = draws(4, seed=2)
    found = READINGS["from first to last"](
        [*seen(*first, swept=10), *seen(*middle, swept=30), *seen(*last, swept=100)]
    )
    whole = stats.ttest_ind(np.log(last), np.log(first), equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(np.exp(whole)), rel=1e-9)
    assert found.value == pytest.approx(stats.gmean(last) / stats.gmean(first), rel=1e-12)
    assert found.count == 9


@pytest.mark.parametrize("successes", [0, 1, 4, 6])
def test_a_share_has_the_interval_of_clopper_and_pearson(successes):
    found = READINGS["share"](seen(*[1.0] * successes, *[0.0] * (6 - successes)))
    expected = stats.binomtest(successes, 6).proportion_ci(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("number", [6, 9, 40, 300])
def test_median_interval_is_the_tightest_with_95_percent(number):
    values = sorted(draws(number))
    found = READINGS["median"](seen(*values))
    left_out = values.index(found.low)
    assert found.high == values[-1 - left_out]
    # The median is below the k-th smallest of n values if fewer than k of them are below the
    # median.
    assert (
        2 * stats.binom.cdf(left_out, number, 0.5)
        <= 0.05
        < 2 * stats.binom.cdf(left_out + 1, number, 0.5)
    )


def test_average_of_balanced_seeds_uses_interval_of_means():
    values = np.reshape(draws(24), (8, 3))
    found = READINGS["average"](
        [Seen(1.0, seed, value) for seed in range(8) for value in values[seed]]
    )
    expected = stats.ttest_1samp(values.mean(1), 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-9)


def test_runs_of_one_seed_count_once():
    shared = [Seen(1.0, seed, 1.0) for seed in range(3) for _ in range(64)]
    assert READINGS["share"](shared).low == pytest.approx(
        stats.binomtest(3, 3).proportion_ci(0.95).low
    )
    values = draws(9)
    repeated = [Seen(1.0, seed, value) for seed, value in enumerate(values) for _ in range(5)]
    assert READINGS["median"](repeated).low == READINGS["median"](seen(*values)).low
    assert math.isnan(READINGS["median"](seen(1.0)).low)  # one run has no interval


# Records


def result(*seeds):
    """Two widths, two methods, these seeds or two; no run was trained."""

    def run(method, seed, value):
        balls = [SimpleNamespace(radius=radius, found=radius * value) for radius in (1.0, 2.0)]
        parts = {"loss": (4.0, value), "trained": None, "balls": balls, "least": lambda: value}
        return SimpleNamespace(method=method, seed=seed, **parts)

    def runs(m):
        return [
            run(each, s, f * m + s) for each, f in (("a", 1), ("b", 2)) for s in seeds or (0, 1)
        ]

    return SimpleNamespace(points=[SimpleNamespace(width=m, runs=runs(m)) for m in (10, 20)])


def test_a_path_leads_through_runs_points_parts_and_methods():
    record = Record(result().points[0], result().points[0].runs[1])
    paths = {
        "width": 10,
        "seed": 1,
        "loss.last": 11,
        "loss.largest": 11,
        "least": 11,
        "trained.sup_change": None,
    }
    assert {path: record.look(path) for path in paths} == paths
    with pytest.raises(LookupError, match="no run has “los”"):
        record.look("los.last")


BESIDE = {"where": {"method": "b"}, "beside": {"method": "a"}}


@pytest.mark.parametrize(
    ("given", "low", "high", "count"),
    [
        ({"of": "loss.last"}, 10, 41, 8),
        ({"of": "loss.last", "where": {"method": "b", "width": 20}}, 40, 41, 2),
        ({"of": "loss.last", "where": {"method": ["a", "b"], "seed": 1}}, 11, 41, 4),
        (
            {
                "of": "found",
                "records": "runs.balls",
                "where": {"radius": 2.0, "width": 10, "method": "a"},
            },
            20,
            22,
            2,
        ),
        (
            {"of": "loss.last", "over": "loss.first", "where": {"width": 10, "method": "a"}},
            2.5,
            2.75,
            2,
        ),
        ({"of": "method", "equals": "a"}, 0, 1, 8),
        ({"of": "loss.last", "at_most": 20}, 0, 1, 8),
        ({"of": "loss.last", **BESIDE}, 21 / 11, 2, 4),
        ({"of": "loss.last", **BESIDE, "difference": True}, 10, 20, 4),
        # Both radii of a run share its width and seed, so that the partner must be named.
        ({"of": "found", "records": "runs.balls", **BESIDE, "same": "radius"}, 21 / 11, 2, 8),
    ],
)
def test_values_are_those_of_the_runs_that_meet_the_conditions(given, low, high, count):
    found = Reading("every", **given).measure(result())
    assert (found.low, found.high, found.count) == pytest.approx((low, high, count))


def test_runs_that_differ_beyond_seed_need_a_common_setting():
    with pytest.raises(ValueError, match="name what must be equal"):
        Reading("every", "found", records="runs.balls", **BESIDE).measure(result())


@pytest.mark.parametrize("given", [{"where": {"method": "b"}}, BESIDE])
def test_further_seeds_are_measured_with_the_first(given):
    reading = Reading("average", "loss.last", **given)
    found = reading.measure(result(0), result(1))
    expected = reading.measure(result())
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high)
    )
    assert found.count == expected.count == 4


# Simulations


def simulated(how: str, seeds: int, rng: np.random.Generator) -> list[Seen]:
    """Runs of which a tenth is missing, with errors that are correlated within a seed.

    The exponent is −0.7.
    """
    found = []
    for seed in range(seeds):
        offset = rng.normal(0, 0.2)
        slope = rng.normal(0, 0.05)
        for width in (10, 30, 100, 300, 1000):
            error = offset + slope * math.log(width / 100) + rng.normal(0, 0.1)
            value = 1 + error if how in ("average", "median") else width**-0.7 * math.exp(error)
            if rng.random() >= 0.1:
                found.append(Seen(width, seed, value))
    return found


# Slow: thousands of simulated samples.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "true", "least", "most"),
    [
        ("average", 1.0, 0.93, 0.97),
        ("exponent", -0.7, 0.93, 0.97),
        ("from first to last", 100**-0.7, 0.96, 1.0),
        ("median", 1.0, 0.96, 1.0),
    ],
)
def test_intervals_contain_the_truth_of_simulations(how, true, least, most):
    """As *How a claim becomes confirmed* states: 95% of them, or more."""
    for seeds in (8, 16):
        rng = np.random.default_rng(seeds)
        contained = 0
        for _ in range(1000):
            found = READINGS[how](simulated(how, seeds, rng))
            contained += found.low <= true <= found.high
        assert least <= contained / 1000 <= most
