"""Horizons of linearity: all four regimes against explicit Jacobians,
and detection of departures.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.experiments.departures import departure
from linearity_lab.experiments.horizon.compute import NORMALIZED_STEP, TARGET_SHIFT
from linearity_lab.experiments.horizon.point import REGIMES, HorizonSpec
from linearity_lab.networks.build import build_network
from linearity_lab.runs import load_data
from linearity_lab.settings.grammar import with_settings
from ntk_core.dynamics import log_loss
from ntk_core.networks.keys import initial_key
from tests import running

SMALL = {
    "widths": [8],
    "num_seeds": 1,
    "num_test": 7,
    "dataset.num_samples": 6,
    "max_log_loss": 2.0,
    "max_steps": 300,
}
LIMITS = {"large-rate": 4, "weight-decay": 60, "square": 300, "cross-entropy": 2000}


def result_of(**settings):
    return running.result_of(with_settings(HorizonSpec(), {**SMALL, **settings}))


class Naive:
    """A two-layer ReLU network in float64 as three loops, with an explicit Jacobian."""

    def __init__(self, spec, data, width):
        net = build_network(spec.architecture, width, 1, "linear")
        leaves = jax.tree.leaves(net.init(initial_key(spec.seed, width), data.input_shape))
        (hidden,) = [
            np.asarray(leaf, np.float64)
            for leaf in leaves
            if leaf.shape == (data.x.shape[1], width)
        ]
        (output,) = [np.asarray(leaf, np.float64) for leaf in leaves if leaf.shape == (width, 1)]
        self.scale, self.shape = spec.scale, hidden.shape
        self.weights = np.concatenate([hidden.ravel(), output.ravel()])

    def outputs(self, w, x):
        hidden, output = w[: -self.shape[1]].reshape(self.shape), w[-self.shape[1] :]
        z = x @ hidden / math.sqrt(self.shape[0])
        return self.scale * np.maximum(z, 0) @ output / math.sqrt(self.shape[1])

    def jacobian(self, w, x):
        hidden, output = w[: -self.shape[1]].reshape(self.shape), w[-self.shape[1] :]
        d, m = self.shape
        rows = []
        for each in x:
            z = each @ hidden / math.sqrt(d)
            inner = np.outer(each, (z > 0) * output) / math.sqrt(d * m)
            rows.append(
                self.scale * np.concatenate([inner.ravel(), np.maximum(z, 0) / math.sqrt(m)])
            )
        return np.array(rows)


def naive_path(spec, regime, count):
    """(ΔK, difference) after ``count`` steps.

    The linear model by its dual, at equal loss under cross-entropy.
    """
    data = load_data(spec)
    x, x_test, y = (np.asarray(each, np.float64) for each in (data.x, data.x_test, data.y[:, 0]))
    y = y + TARGET_SHIFT * (regime == "large-rate")
    naive, n = Naive(spec, data, spec.widths[0]), len(x)
    w0 = w = naive.weights
    first, first_test = naive.jacobian(w0, x), naive.jacobian(w0, x_test)
    k0 = first @ first.T
    decay = spec.decay if regime == "weight-decay" else 0.0
    is_log = regime == "cross-entropy"

    def slope(f):
        if not is_log:
            return (f - y) / n
        return -y / (1 + np.exp(y * f)) / np.log1p(np.exp(-y * f)).sum()  # of log L

    def loss(f):
        return math.log(np.log1p(np.exp(-y * f)).mean())

    (rate,) = spec.rates_of(regime)
    eta = eta0 = (
        NORMALIZED_STEP / k0.diagonal().max() if is_log else rate * n / np.linalg.eigvalsh(k0)[-1]
    )
    for step in range(count):
        if is_log and step % REGIMES[regime].stretch(0) == 0:
            jacobian = naive.jacobian(w, x)
            eta = NORMALIZED_STEP / (jacobian**2).sum(axis=1).max()
        gradient = naive.jacobian(w, x).T @ slope(naive.outputs(w, x) - naive.outputs(w0, x))
        w = (1 - decay) * w - eta * gradient
    reached = loss(naive.outputs(w, x) - naive.outputs(w0, x)) if is_log else None
    dual, shrunk, seen, step = np.zeros(n), 0.0, [], 0
    while True:
        f, f_test = (j @ (first.T @ dual - shrunk * w0) for j in (first, first_test))
        if is_log and step % REGIMES[regime].stretch(0) == 0:
            seen.append((loss(f), f_test))
            if seen[-1][0] <= reached:
                break
        if not is_log and step == count:
            break
        dual, shrunk = (1 - decay) * dual - eta0 * slope(f), (1 - decay) * shrunk + decay
        step += 1
    if is_log and len(seen) > 1:
        (high, before), (low, after) = seen[-2:]
        f_test = before + (high - reached) / (high - low) * (after - before)
    moved = naive.outputs(w, x_test) - naive.outputs(w0, x_test)
    now = naive.jacobian(w, x)
    change = np.linalg.norm(now @ now.T - k0) / np.linalg.norm(k0)
    return change, np.linalg.norm(moved - f_test) / np.linalg.norm(f_test), reached


@pytest.mark.parametrize("regime", LIMITS)
def test_paths_equal_a_naive_oracle(regime):
    result = result_of(
        regimes=[regime],
        max_steps=LIMITS[regime],
        decay=0.01,
        kernel_threshold=10,
        output_threshold=10,
    )
    (point,) = result.points
    (found,) = point.runs
    change, difference, reached = naive_path(result.spec, regime, found.num_steps)
    assert found.num_steps > 3
    assert found.change[-1] == pytest.approx(change, rel=1e-7)
    assert found.difference[-1] == pytest.approx(difference, rel=1e-6)
    if reached is not None:
        assert found.log_loss == pytest.approx(reached, rel=1e-9)
        assert found.clock[-1] == -found.log_loss


def test_log_loss_keeps_its_digits_below_the_least_float():
    with jax.enable_x64(True):
        f, y = jnp.array([[3.0], [-1.0], [12.0]]), jnp.array([[1.0], [-1.0], [1.0]])
        naive = math.log(np.log1p(np.exp(-np.asarray(y * f))).mean())
        assert float(log_loss(f, y)) == pytest.approx(naive, rel=1e-13)
        assert float(log_loss(1e4 * jnp.ones((4, 1)), jnp.ones((4, 1)))) == pytest.approx(
            -1e4, rel=1e-15
        )
        slopes = jax.grad(log_loss)(jnp.array([[800.0], [801.0]]), jnp.ones((2, 1)))
        np.testing.assert_allclose(
            -slopes.ravel(), np.exp([0, -1]) / np.exp([0, -1]).sum(), rtol=1e-12
        )


def test_departures_are_interpolated_or_bounded():
    clock = [0.0, 1.0, 2.0, 3.0]
    crossed = departure(clock, [0.0, 0.01, 1.0, 0.001], 0.1, "over-budget")
    assert (crossed.outcome, crossed.at) == ("departed", pytest.approx(1.5))
    assert departure(clock, [0.0, 0.4, 0.5, 0.6], 0.1, "over-budget").at == pytest.approx(0.25)
    bounds = {"over-budget": "beyond", "converged": "never", "diverged": "diverged"}
    for ended, outcome in bounds.items():
        kept = departure(clock, [0.0, 0.01, 0.02, 0.03], 0.1, ended)
        assert (kept.outcome, kept.at) == (outcome, 3.0)
        assert math.isnan(kept.horizon)
    assert departure([], [], 0.1, "dead").outcome == "dead"


@pytest.mark.slow
def test_short_budgets_give_lower_bounds():
    result = result_of(
        regimes=["cross-entropy", "weight-decay"],
        max_steps=5,
        kernel_threshold=10,
        output_threshold=10,
    )
    for point in result.points:
        (found,) = point.runs
        assert found.kernel.outcome == found.outputs.outcome == "beyond"
        assert found.kernel.at == found.clock[-1]
    assert result.provenance.dtype == "float64"


@pytest.mark.slow
def test_dead_networks_are_named():
    result = result_of(
        **{
            "widths": [1],
            "num_seeds": 12,
            "regimes": ["square"],
            "dataset.num_samples": 1,
            "dataset.num_classes": 2,
        }
    )
    outcomes = {
        (run.kernel.outcome == "dead", len(run.clock) == 0)
        for point in result.points
        for run in point.runs
    }
    assert outcomes == {(True, True), (False, False)}
