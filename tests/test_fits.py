"""A slope is never without its interval, and the interval is right."""

import math

import numpy as np
import pytest

from ntk_core.fits import fit_power_law
from ntk_core.runs import mean

WIDTHS = np.repeat([30, 100, 300, 1000, 3000], 4)


def test_an_exact_power_law_is_found_with_a_vanishing_interval():
    fit = fit_power_law(WIDTHS, 7 * WIDTHS**-0.5)
    assert fit.exponent == pytest.approx(-0.5, abs=1e-12)
    assert fit.prefactor == pytest.approx(7)
    assert fit.interval < 1e-12
    assert fit(400) == pytest.approx(7 / 20)


def test_the_interval_covers_the_true_exponent_as_often_as_it_says():
    rng = np.random.default_rng(0)
    covered = 0
    trials = 2000
    for _ in range(trials):
        values = WIDTHS**-0.7 * np.exp(rng.normal(0, 0.3, WIDTHS.size))
        fit = fit_power_law(WIDTHS, values, confidence=0.9)
        covered += abs(fit.exponent + 0.7) <= fit.interval
    # Five standard errors of a binomial share.
    assert abs(covered / trials - 0.9) < 5 * math.sqrt(0.9 * 0.1 / trials)


def test_unusable_values_are_excluded_and_counted():
    values = 3 * WIDTHS**-1.0
    values[0], values[1], values[2] = math.nan, 0, 1e9
    fit = fit_power_law(WIDTHS, values, usable=[index != 2 for index in range(len(values))])
    assert fit.exponent == pytest.approx(-1)
    assert (fit.num_values, fit.num_excluded) == (17, 3)


@pytest.mark.parametrize(("widths", "values"), [([], []), ([10, 10, 10], [1, 2, 3]), ([10, 100], [1, 2])])
def test_too_few_values_give_no_slope(widths, values):
    assert fit_power_law(widths, values) is None


def test_a_mean_comes_with_its_error_and_count():
    found = mean([1.0, 2.0, 4.0])
    assert found.value == pytest.approx(7 / 3)
    assert found.standard_error == pytest.approx(np.std([1, 2, 4], ddof=1) / math.sqrt(3))
    assert math.isnan(mean([1.0]).standard_error)
    assert (mean([]).count, math.isnan(mean([]).value)) == (0, True)
