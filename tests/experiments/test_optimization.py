"""Convergence without linearity: Theorem 5.1 of Liu, Zhu & Belkin 2020 with its measured constant."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

from ntk_core import train
from ntk_core.dynamics import Loss, eigenvalues
from ntk_core.experiments.optimization import OptimizationSpec
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected, output_function
from ntk_core.networks.choices import OUTPUTS
from ntk_core.runs import run, run_summary
from ntk_core.settings.grammar import with_settings

SMALL = with_settings(
    OptimizationSpec(),
    {
        "widths": [100],
        "num_seeds": 1,
        "rates": [2, 1e4],
        "outputs": ["leaky_softplus"],
        "training.num_records": 12,
        "dataset.num_samples": 9,
    },
)


@pytest.fixture(scope="module")
def result():
    *_, ended = run(SMALL)
    return ended.result


@pytest.mark.parametrize("output", [name for name, term in OUTPUTS.items() if term.min_slope])
@pytest.mark.usefixtures("x64")
def test_the_stated_slope_is_the_least_one_of_the_output(output):
    slopes = jax.vmap(jax.grad(output_function(output)))(np.linspace(-50, 50, 4001))
    # At f = −50 the slopes are within e^(−50) of their limits.
    assert float(np.abs(slopes).min()) == pytest.approx(OUTPUTS[output].min_slope, rel=1e-12)


def test_the_loss_stays_below_the_bound_while_the_kernel_moves(result):
    (point,) = result.points
    (found,) = point.of("leaky_softplus", 2.0)
    bound = found.bound(point.num_samples)
    assert bound is not None
    assert bound[-1] < 0.95 * bound[0]  # the bound is not vacuous
    assert all(loss <= limit * (1 + 1e-6) for loss, limit in zip(found.loss, bound, strict=True))
    assert all(loss <= limit * (1 + 1e-6) for loss, limit in zip(found.loss, found.pl_bound(), strict=True))
    assert found.outcome == "converged"
    assert found.sup_change > 0.1


def test_the_pl_ratio_is_above_the_eigenvalues_that_bound_it(result):
    (point,) = result.points
    (found,) = point.of("leaky_softplus", 2.0)
    for ratio, smallest, pre in zip(found.pl_ratio, found.smallest, found.pre_output_smallest, strict=True):
        # Each has four digits.
        assert ratio >= smallest / point.num_samples * (1 - 2e-3)
        assert smallest >= OUTPUTS["leaky_softplus"].min_slope ** 2 * pre * (1 - 2e-3)


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


@pytest.mark.usefixtures("x64")
def test_recorded_spectrum_is_that_of_initial_kernels():
    net = FullyConnected(width=40, num_outputs=2, activation="tanh", output="leaky_softplus", use_bias=True)
    x = jax.random.normal(jax.random.key(1), (5, 3))
    y = jax.nn.one_hot(np.arange(5) % 2, 2)
    params = net.init(jax.random.key(0), (3,))
    history = train(net, params, x, y, loss=Loss("leaky_softplus", "square"), max_steps=3, linearized=False)
    kernel, pre = empirical_ntk(net, params, x), empirical_ntk(net.with_output("linear"), params, x)
    np.testing.assert_allclose(history.kernel.smallest[0], eigenvalues(kernel)[-1], rtol=1e-9)
    np.testing.assert_allclose(history.kernel.pre_output_smallest[0], eigenvalues(pre)[-1], rtol=1e-9)
    assert history.kernel.pre_output_change[0] == 0
    # The stable rate is computed from λ_max at w₀.
    assert history.stable_rate == pytest.approx(2 * 5 / eigenvalues(kernel)[0])


def test_a_number_to_be_learned_keeps_below_the_bound_too():
    curve = {"dataset.name": "sine", "dataset.num_samples": 6, "widths": [100], "rates": [2], "training.max_steps": 60}
    *_, ended = run(with_settings(SMALL, curve))
    (found,) = ended.result.points[0].runs
    assert found.loss[-1] < 0.9 * found.loss[0]
    assert all(loss <= limit * (1 + 1e-6) for loss, limit in zip(found.loss, found.bound(6), strict=True))


def test_softmax_has_no_guarantee_and_a_zero_eigenvalue():
    spec = with_settings(SMALL, {"widths": [100], "rates": [2], "outputs": ["softmax"], "training.max_steps": 20})
    *_, ended = run(spec)
    (found,) = ended.result.points[0].runs
    assert found.bound(9) is None
    assert max(found.smallest) < 1e-5 * min(found.largest)  # zero up to float32 rounding
