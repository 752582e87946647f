"""Outcomes of training beside the linear model.

Plateaus, dead networks, divergence, thresholds, stable rates.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.experiments.dynamics.point import departure
from ntk_core import Optimizer, train
from ntk_core.dynamics import (
    BesideLinear,
    HistoryMeasure,
    Loss,
    TrainData,
    TrainOptions,
    auto_learning_rate,
    largest_eigenvalue,
)
from ntk_core.dynamics._history import ended
from ntk_core.networks.architectures import FullyConnected
from ntk_core.progress import Progress, Stopped
from tests.dynamics.problems import NET, problem

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

STEPS = [0, *np.unique(np.geomspace(1, 5000, 24).round().astype(int)).tolist()]
PLATEAU = [0.19 + 0.8 / (1 + step) for step in STEPS]
SLOW = [0.8 / (1 + step) ** 0.2 for step in STEPS]
TINY_RATE = [1 - 1e-6 * step for step in STEPS]


def test_constant_loss_is_stuck_and_decreasing_is_over_budget():
    assert ended(STEPS, PLATEAU, 0.01) == "stuck"
    assert ended(STEPS, SLOW, 0.01) == "over-budget"
    # By 0.25% in the last half, but by half of all.
    assert ended(STEPS, TINY_RATE, 0.01) == "over-budget"
    # oscillating
    assert ended(STEPS, [0.5 + 0.2 * (-1) ** step for step in STEPS], 0.01) == "over-budget"
    assert ended(STEPS, PLATEAU, None) == "finished"
    assert ended(STEPS, PLATEAU, 0.5) == "converged"
    assert (
        ended(STEPS, [*PLATEAU[:-1], math.nan], 0.01)
        == ended(STEPS, PLATEAU[::-1], 0.01)
        == "diverged"
    )
    assert ended([0], [0.5], 0.01, dead=True) == "dead"


@pytest.mark.usefixtures("x64")
def test_swish_plateaus_are_stuck_and_slow_training_is_not():
    """One sample starts where swish decreases, so training drives its output to −∞.

    Without it all converge.
    """
    x, y = jnp.array([[3.0, 0.0], [0.0, 3.0]]), jnp.ones((2, 1))
    net = FullyConnected(width=16, num_outputs=1, activation="tanh", output="swish", use_bias=False)
    starts = {}
    for seed in range(12):
        params = net.init(jax.random.key(seed), (2,))
        starts[seed] = float(net.with_output("linear").apply(params, x).min()), params
    low, high = (pick(starts, key=lambda seed: starts[seed][0]) for pick in (min, max))
    assert starts[low][0] < -1.5
    assert starts[high][0] > -1
    settings = {"max_steps": 2000, "loss_threshold": 0.01, "kernels": False, "linearized": False}
    stuck = train(net, starts[low][1], x, y, learning_rate=1.0, **settings).network
    assert stuck.outcome == "stuck"
    assert stuck.loss[-1] > 0.2
    assert (
        train(net, starts[high][1], x, y, learning_rate=1.0, **settings).network.outcome
        == "converged"
    )
    slow = train(net, starts[high][1], x, y, learning_rate=1e-4, **settings).network
    assert slow.outcome == "over-budget"
    # An eigenvalue 2,000 times smaller than the largest: the loss decreases ever more slowly.
    features = jnp.array([[1.0, 0.0], [0.0, 0.022]])
    linear = train(
        lambda w, x: x @ w, jnp.zeros((2, 1)), features, y, learning_rate=0.5, **settings
    ).network
    assert linear.outcome == "over-budget"
    assert linear.loss[-1] < linear.loss[0] / 2


@pytest.mark.parametrize(
    "settings", [{}, {"learning_rate": 0.5}, {"optimizer": "adam"}], ids=["auto", "fixed", "adam"]
)
def test_a_dead_network_and_its_linear_model_are_dead(settings):
    params, x, y, _, _ = problem()
    dead = jax.tree.map(jnp.zeros_like, params)
    history = train(NET, dead, x, y, max_steps=9, num_records=3, loss_threshold=0.01, **settings)
    assert history.network.outcome == history.linearized.outcome == "dead"
    assert history.steps.tolist() == [0]
    assert math.isinf(history.learning_rate) == ("learning_rate" not in settings)
    assert history.network.loss.tolist() == [0.5]


@pytest.mark.usefixtures("x64")
def test_rate_of_mostly_dead_networks_is_that_of_half_alive_ones():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 5))
    full = np.einsum("if,jf->ij", features, features)[:, :, None, None]
    plain = 0.25 * 2 * 40 / np.linalg.eigvalsh(full[:, :, 0, 0])[-1]
    # Unchanged if all are alive.
    assert auto_learning_rate(full, Loss("linear")) == pytest.approx(plain, rel=1e-12)
    for live in (40, 21, 20, 10, 1):
        alive = np.arange(40) < live
        kernel = np.where((alive[:, None] & alive)[:, :, None, None], full, 0)
        largest = np.linalg.eigvalsh(kernel[:, :, 0, 0])[-1]
        expected = 0.25 * 2 * min(40, 2 * live) / largest
        assert auto_learning_rate(kernel, Loss("linear")) == pytest.approx(expected, rel=1e-12)
        noise = np.where((alive[:, None] & alive)[:, :, None, None], kernel, 1e-18)
        assert auto_learning_rate(noise, Loss("linear")) == pytest.approx(expected, rel=1e-12)
    one = np.zeros((60, 60, 1, 1))
    one[0, 0] = 4.26  # as for a ReLU network of width 1 that is alive at one input of 60
    # 7 if the others counted as permanently dead.
    assert auto_learning_rate(one, Loss("linear")) < 0.25
    assert math.isinf(auto_learning_rate(0 * one, Loss("linear")))
    assert math.isnan(auto_learning_rate(np.full_like(one, np.nan), Loss("linear")))


def test_largest_eigenvalue_is_found_when_ones_are_in_the_kernel():
    centered = (np.eye(6) - 1 / 6)[:, :, None, None]
    assert largest_eigenvalue(centered) == pytest.approx(1)
    exact = np.diag([2.0, 2.0, 0.0, 0.0, 1.0, 1.0]) - np.kron(
        np.diag([2.0, 0.0, 1.0]), [[0, 1], [1, 0]]
    )
    assert not (exact @ np.ones(6)).any()
    assert largest_eigenvalue(exact[:, :, None, None]) == pytest.approx(4)
    assert largest_eigenvalue(np.zeros((6, 6, 1, 1))) == 0
    assert largest_eigenvalue(np.full((6, 6, 1, 1), 1e-320)) >= 0


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "optimizer", [Optimizer(), Optimizer("momentum", momentum=0.5)], ids=lambda each: each.name
)
def test_the_stable_rate_separates_divergence_from_convergence(optimizer):
    net = FullyConnected(
        width=300, num_outputs=2, activation="tanh", trained="last", use_bias=False
    )
    params, x, y, _, _ = problem(net)
    settings = {"optimizer": optimizer, "max_steps": 3000, "num_records": 5, "kernels": False}
    stable = train(net, params, x, y, learning_rate=1e-3, **settings | {"max_steps": 1}).stable_rate
    below = train(net, params, x, y, learning_rate=0.99 * stable, **settings)
    assert below.network.outcome == below.linearized.outcome == "finished"
    above = train(net, params, x, y, learning_rate=1.1 * stable, **settings)
    assert above.network.outcome == above.linearized.outcome == "diverged"


def test_divergence_is_an_outcome_with_the_last_finite_step():
    params, x, y, _, _ = problem()
    history = train(NET, params, x, y, learning_rate=1e6, max_steps=1000, num_records=30)
    for path in (history.network, history.linearized):
        assert path.outcome == "diverged"
        finite = np.isfinite(path.loss)
        # Recorded losses are finite up to the reported step and not after it.
        assert finite.tolist() == (history.steps <= path.last_finite_step).tolist()
        assert not finite[-1]
        assert np.isnan(path.outputs[-1]).all()
    assert 0 < history.stable_rate < 1e6
    assert history.steps[-1] < 1000  # training ends once all models have diverged
    stable = train(
        NET, params, x, y, learning_rate=0.5 * history.stable_rate, max_steps=100, num_records=3
    )
    assert stable.linearized.outcome == "finished"


def test_training_stops_at_the_threshold_and_on_request():
    params, x, y, _, _ = problem()
    history = train(
        NET, params, x, y, learning_rate=0.5, max_steps=100_000, loss_threshold=0.15, kernels=False
    )
    assert history.network.outcome == history.linearized.outcome == "converged"
    assert history.network.loss[-1] <= 0.15 < history.network.loss[0]
    assert history.steps[-1] < 100_000
    # The crossing step is the last step of the network trained alone.
    alone = train(
        NET,
        params,
        x,
        y,
        learning_rate=0.5,
        max_steps=100_000,
        loss_threshold=0.15,
        linearized=False,
    )
    crossed = history.network.crossing_step
    assert crossed == alone.network.crossing_step == alone.steps[-1]
    before = train(NET, params, x, y, learning_rate=0.5, max_steps=int(crossed) - 2, kernels=False)
    assert before.network.loss[-1] > 0.15  # two steps earlier, since the loss is read one step late
    missed = train(
        NET, params, x, y, learning_rate=0.5, max_steps=2, loss_threshold=1e-6, kernels=False
    )
    assert missed.network.outcome == "over-budget"

    beside = BesideLinear(NET, params, TrainData(x, y), TrainOptions(max_steps=10**7))
    measure = HistoryMeasure(beside, kernels=False)
    with pytest.raises(Stopped):
        beside.descend([measure], Progress(should_stop=lambda: measure.steps[-1] > 50))
    assert 50 < measure.result().steps[-1] < 10**7


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_wide_networks_approach_the_infinite_width_prediction():
    x = jax.random.normal(jax.random.key(1), (8, 3))
    y = jax.nn.one_hot(np.arange(8) % 2, 2)
    apart = []
    for width in (100, 10_000):
        net = FullyConnected(width=width, num_outputs=2, activation="erf", use_bias=True)
        history = train(
            net,
            net.init(jax.random.key(0), (3,)),
            x[:6],
            y[:6],
            learning_rate=0.3,
            max_steps=50,
            x_test=x[6:],
            y_test=y[6:],
            infinite_width=True,
            kernels=False,
        )
        np.testing.assert_allclose(history.infinite.outputs[0], history.network.outputs[0])
        apart.append(
            np.abs(history.infinite.test_outputs[-1] - history.network.test_outputs[-1]).max()
        )
        assert np.isnan(history.infinite.largest_distance).all()
    assert apart[1] < apart[0] / 4  # a hundred times as wide: a tenth is expected


@pytest.mark.parametrize(
    ("values", "index"),
    [([0, 1, 0, 2, 3], 3), ([0, 0, 0.5], None), ([2, 3], 0), ([0, np.nan], 1), ([], None)],
)
def test_the_departure_is_where_a_difference_rises_for_good(values, index):
    assert departure(values, 0.5) == index
