"""Convergence without linearity.

Theorem 5.1 of Liu, Zhu & Belkin 2020 with its measured constant.
"""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from linearity_lab.experiments.optimization.point import OptimizationSpec
from linearity_lab.runs import run_summary
from linearity_lab.settings.grammar import with_settings
from ntk_core.networks.architectures import output_function
from ntk_core.networks.choices import OUTPUTS
from tests.running import point_of, result_of

FEW = {"widths": [100], "num_seeds": 1, "rates": [2, 1e4], "outputs": ["leaky_softplus"]}
SMALL = with_settings(
    OptimizationSpec(), {**FEW, "training.num_records": 12, "dataset.num_samples": 9}
)


@pytest.fixture(scope="module")
def result():
    return result_of(SMALL)


@pytest.mark.parametrize("output", [name for name, term in OUTPUTS.items() if term.min_slope])
@pytest.mark.usefixtures("x64")
def test_the_stated_slope_is_the_least_one_of_the_output(output):
    slopes = jax.vmap(jax.grad(output_function(output)))(np.linspace(-50, 50, 4001))
    # At f = −50 the slopes are within e^(−50) of their limits.
    assert float(np.abs(slopes).min()) == pytest.approx(OUTPUTS[output].min_slope, rel=1e-12)


@pytest.mark.slow
def test_losses_and_ratios_keep_bounds_while_the_kernel_moves(result):
    (point,) = result.points
    (found,) = point.of("leaky_softplus", 2.0)
    bound = found.bound(point.num_samples)
    assert bound[-1] < 0.95 * bound[0]  # the bound is not vacuous
    for limits in (bound, found.pl_bound()):
        assert all(
            loss <= limit * (1 + 1e-6) for loss, limit in zip(found.loss, limits, strict=True)
        )
    for ratio, smallest, pre in zip(
        found.pl_ratio, found.smallest, found.pre_output_smallest, strict=True
    ):
        # Each has four digits.
        assert ratio >= smallest / point.num_samples * (1 - 2e-3)
        assert smallest >= OUTPUTS["leaky_softplus"].min_slope ** 2 * pre * (1 - 2e-3)
    assert found.outcome == "converged"
    assert found.sup_change > 0.1


def test_divergent_rate_ends_finite_with_a_stable_rate(result):
    (point,) = result.points
    (lost,) = point.of("leaky_softplus", 1e4)
    assert lost.outcome == "diverged"
    finite = [math.isfinite(loss) for loss in lost.loss]
    assert finite == [step <= lost.last_finite_step for step in lost.steps]
    (stable,) = point.of("leaky_softplus", 2.0)
    assert stable.learning_rate < lost.stable_rate < lost.learning_rate
    assert lost.bound(point.num_samples) is None
    words = run_summary(SMALL, result.points)
    assert "! 1 diverged" in words
    assert "last finite step" in words
    assert "stable rate" in words


@pytest.mark.slow  # trains a second time
def test_numbers_keep_the_bound_and_softmax_has_none():
    curve = {
        "dataset.name": "sine",
        "dataset.num_samples": 6,
        "rates": [2],
        "training.max_steps": 60,
    }
    (found,) = point_of(with_settings(SMALL, curve)).runs
    assert found.loss[-1] < 0.9 * found.loss[0]
    assert all(
        loss <= limit * (1 + 1e-6) for loss, limit in zip(found.loss, found.bound(6), strict=True)
    )
    (found,) = point_of(
        with_settings(SMALL, {"rates": [2], "outputs": ["softmax"], "training.max_steps": 20})
    ).runs
    assert found.bound(9) is None
    assert max(found.smallest) < 1e-5 * min(found.largest)  # zero up to float32 rounding
