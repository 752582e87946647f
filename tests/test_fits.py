"""Fitted slopes, the coverage of their intervals, and the format of numbers."""

import math

import numpy as np
import pytest
from scipy import linalg, stats

from linearity_lab.runs import mean
from ntk_core.fits import (
    PowerLaw,
    becomes_linear,
    condition,
    exponent_words,
    fit_power_law,
    law_words,
    least_squares,
    remarks,
)
from ntk_core.numbers import duration, key_words, number, percent, signed, size, width_label

WIDTHS = np.repeat([30, 100, 300, 1000, 3000], 4)
SEEDS = np.tile(np.arange(4), 5)
LAW = PowerLaw(-0.5, 0.03, 1.0, 0.95, 12, 0)


def test_an_exact_power_law_is_found_with_a_vanishing_interval():
    fit = fit_power_law(WIDTHS, 7 * WIDTHS**-0.5)
    assert fit.exponent == pytest.approx(-0.5, abs=1e-12)
    assert fit.prefactor == pytest.approx(7)
    assert fit.interval < 1e-12
    assert fit(400) == pytest.approx(7 / 20)


@pytest.mark.slow
def test_interval_of_the_exponent_has_nominal_coverage():
    """With errors shared by a seed.

    The committed simulation has other regimes (tests/benchmarks).
    """
    rng = np.random.default_rng(0)
    covered = bends = 0
    trials = 1000
    for _ in range(trials):
        error = rng.normal(0, 0.3, WIDTHS.size)
        error += rng.normal(0, 0.3, 4)[SEEDS] + rng.normal(0, 0.2, 4)[SEEDS] * np.log(WIDTHS / 300)
        fit = fit_power_law(WIDTHS, WIDTHS**-0.7 * np.exp(error), seeds=SEEDS, confidence=0.9)
        covered += abs(fit.exponent + 0.7) <= fit.interval
        bends += fit.bends
    # Five standard errors of a binomial share: the interval of complete seeds is exact
    # for normal errors.
    assert abs(covered / trials - 0.9) < 5 * math.sqrt(0.9 * 0.1 / trials)
    assert abs(bends / trials - 0.1) < 5 * math.sqrt(0.9 * 0.1 / trials)


def test_interval_of_complete_seeds_is_that_of_their_slopes():
    values = WIDTHS**-0.7 * np.exp(np.random.default_rng(1).normal(0, 0.3, WIDTHS.size))
    fit = fit_power_law(WIDTHS, values, seeds=SEEDS)
    own = np.polyfit(np.log(WIDTHS[::4]), np.log(values.reshape(5, 4)), 1)[0]
    assert fit.exponent == pytest.approx(np.mean(own), rel=1e-12)
    assert fit.interval == pytest.approx(stats.sem(own) * stats.t(3).ppf(0.975), rel=1e-9)


def test_errors_of_incomplete_clusters_equal_the_dense_formula():
    """CR2 with its degrees of freedom, with explicit n × n matrices,
    on clusters of different sizes.
    """
    rng = np.random.default_rng(2)
    clusters = rng.integers(0, 5, 17)
    design = np.stack([np.ones(17), rng.normal(size=17), rng.normal(size=17)], 1)
    y = rng.normal(size=17)
    inverse = np.linalg.inv(design.T @ design)
    kept = np.eye(17) - design @ inverse @ design.T
    columns = []
    for cluster in np.unique(clusters):
        chosen = np.eye(17)[clusters == cluster]
        root = linalg.fractional_matrix_power(chosen @ kept @ chosen.T, -0.5).real
        columns.append(kept @ chosen.T @ root @ chosen @ design @ inverse[1])
    form = np.array(columns) @ np.array(columns).T
    beta, found = least_squares(design, y, clusters, 1)
    assert beta == pytest.approx(np.linalg.lstsq(design, y, rcond=None)[0], rel=1e-10)
    assert found.standard_error**2 == pytest.approx(
        sum((column @ y) ** 2 for column in columns), rel=1e-8
    )
    assert found.degrees == pytest.approx(np.trace(form) ** 2 / (form**2).sum(), rel=1e-8)


@pytest.mark.parametrize(
    ("widths", "seeds", "words"),
    [
        (WIDTHS, SEEDS % 2, "no interval (needs 3 seeds)"),
        (np.minimum(WIDTHS, 300), SEEDS, "no interval (needs 4 widths)"),
        (np.minimum(WIDTHS, 300), SEEDS % 2, "no interval (needs 3 seeds and 4 widths)"),
    ],
)
def test_few_seeds_or_widths_give_no_interval_and_say_so(widths, seeds, words):
    law = fit_power_law(widths, widths**-0.5 * (1 + 0.1 * SEEDS), seeds=seeds)
    assert math.isnan(law.interval)
    assert remarks(law)[0] == words
    assert becomes_linear(law) == "undecided"


def test_local_slopes_and_bends_are_found():
    bent = WIDTHS**-0.5 / (1 + WIDTHS / 300) * (1 + 0.01 * SEEDS)
    law = fit_power_law(WIDTHS, bent, seeds=SEEDS)
    mean_slopes = np.diff(np.log(bent[SEEDS == 0])) / np.diff(np.log(WIDTHS[SEEDS == 0]))
    assert [each.slope for each in law.local] == pytest.approx(mean_slopes, rel=1e-9)
    assert [(each.low, each.high) for each in law.local] == [
        (30, 100),
        (100, 300),
        (300, 1000),
        (1000, 3000),
    ]
    assert (law.last.low, law.last.high) == (300, 3000)
    last = WIDTHS >= 300
    assert law.last.slope == pytest.approx(
        np.polyfit(np.log(WIDTHS[last]), np.log(bent[last]), 1)[0], rel=1e-9
    )
    assert law.bends
    assert not fit_power_law(WIDTHS, WIDTHS**-0.5, seeds=SEEDS).bends


def test_exponent_with_unconverged_runs_excludes_diverged_ones():
    values = WIDTHS**-1.0
    missed, diverged = (WIDTHS == 30) & (SEEDS > 1), np.arange(WIDTHS.size) == WIDTHS.size - 1
    values[missed], values[diverged] = 1.0, 1e30
    law = fit_power_law(WIDTHS, values, seeds=SEEDS, usable=~(missed | diverged), diverged=diverged)
    assert law.exponent == pytest.approx(-1)
    with_missed = np.polyfit(np.log(WIDTHS[~diverged]), np.log(values[~diverged]), 1)[0]
    assert law.with_all == pytest.approx(with_missed, rel=1e-9)
    assert condition(law) == f"over 17 converged runs, −{-with_missed:.2f} with the excluded ones"


def test_unusable_values_are_excluded_and_counted():
    values = 3 * WIDTHS**-1.0
    values[0], values[1], values[2] = math.nan, 0, 1e9
    fit = fit_power_law(WIDTHS, values, usable=[index != 2 for index in range(len(values))])
    assert fit.exponent == pytest.approx(-1)
    assert (fit.num_values, fit.num_excluded) == (17, 3)
    too_few: list[tuple[list[int], list[int]]] = [
        ([], []),
        ([10, 10, 10], [1, 2, 3]),
        ([10, 100], [1, 2]),
    ]
    assert [fit_power_law(*each) for each in too_few] == [None] * 3


def test_a_mean_comes_with_its_error_and_count():
    found = mean([1.0, 2.0, 4.0])
    assert found.value == pytest.approx(7 / 3)
    assert found.standard_error == pytest.approx(np.std([1, 2, 4], ddof=1) / math.sqrt(3))
    assert math.isnan(mean([1.0]).standard_error)
    assert (mean([]).count, math.isnan(mean([]).value)) == (0, True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (percent(0.43), "43%"),
        (percent(0.0042), "0.42%"),
        (percent(0.0123), "1.2%"),
        (percent(0.0996), "10%"),
        (percent(12.345), "1,234%"),
        (percent(-0.012), "−1.2%"),
        (percent(math.nan), "–"),
        (percent(math.inf), "∞"),
        (number(3.24e-8), "3.2·10⁻⁸"),
        (number(-0.5), "−0.5"),
        (signed(-0.001), "0.00"),
        (signed(-1.023), "−1.02"),
        (size(300), "300 bytes"),
        (size(1.5 * 2**20), "1.5 MiB"),
        (size(2.5 * 2**30), "2.5 GiB"),
        (duration(0.4), "under 1 s"),
        (duration(170), "3 min"),
        (duration(4800), "1 h 20 min"),
        (width_label(3000), "3,000"),
        (width_label(12_345), "12,345"),
        (width_label(3_000_000), "3·10⁶"),
        (key_words("input_dim=50"), "input dimension 50"),
        (key_words("width=1000,rate=0.00125"), "width 1,000, rate 0.00125"),
        (
            key_words("width=100_network=fully-connected-swish"),
            "width 100 network fully connected swish",
        ),
        (exponent_words(LAW), "−0.50 ± 0.03"),
        (law_words(LAW, "m"), "m^(−0.500 ± 0.030), 95% interval, 12 runs, 0 excluded"),
    ],
)
def test_numbers_shares_sizes_durations_keys_and_laws(words, expected):
    assert words == expected
