"""Outcomes of training beside the linear model: rates of convergence, statuses, refusals."""

import jax
import numpy as np
import pytest

from ntk_core import Optimizer, train
from ntk_core.dynamics import Training
from ntk_core.experiments.dynamics import departure
from ntk_core.networks.architectures import FullyConnected
from tests.dynamics.problems import NET, problem


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("optimizer", [Optimizer(), Optimizer("momentum", momentum=0.5)], ids=lambda each: each.name)
def test_the_stable_rate_separates_divergence_from_convergence(optimizer):
    net = FullyConnected(width=300, num_outputs=2, activation="tanh", trained="last", use_bias=False)
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
    stable = train(NET, params, x, y, learning_rate=0.5 * history.stable_rate, max_steps=100, num_records=3)
    assert stable.linearized.outcome == "finished"


def test_training_stops_at_the_threshold_and_on_request():
    params, x, y, _, _ = problem()
    history = train(NET, params, x, y, learning_rate=0.5, max_steps=100_000, loss_threshold=0.15, kernels=False)
    assert history.network.outcome == history.linearized.outcome == "converged"
    assert history.network.loss[-1] <= 0.15 < history.network.loss[0]
    assert history.steps[-1] < 100_000
    # The crossing step is the last step of the network trained alone.
    alone = train(NET, params, x, y, learning_rate=0.5, max_steps=100_000, loss_threshold=0.15, linearized=False)
    crossed = history.network.crossing_step
    assert crossed == alone.network.crossing_step == alone.steps[-1]
    before = train(NET, params, x, y, learning_rate=0.5, max_steps=int(crossed) - 2, kernels=False)
    assert before.network.loss[-1] > 0.15  # two steps earlier, since the loss is read one step late
    missed = train(NET, params, x, y, learning_rate=0.5, max_steps=2, loss_threshold=1e-6, kernels=False)
    assert missed.network.outcome == "over-budget"

    training = Training(NET, params, x, y, max_steps=10**7, kernels=False)
    reached = next(step for step in training.stretches() if step > 50)
    assert training.history().steps[-1] <= reached < 10**7


@pytest.mark.usefixtures("x64")
def test_wide_networks_approach_the_infinite_width_prediction():
    x = jax.random.normal(jax.random.key(1), (8, 3))
    y = jax.nn.one_hot(np.arange(8) % 2, 2)
    apart = []
    for width in (100, 10_000):
        net = FullyConnected(width=width, num_outputs=2, activation="erf", use_bias=True)
        history = train(
            net, net.init(jax.random.key(0), (3,)), x[:6], y[:6], learning_rate=0.3, max_steps=50, x_test=x[6:],
            y_test=y[6:], infinite_width=True, kernels=False,
        )  # fmt: skip
        np.testing.assert_allclose(history.infinite.outputs[0], history.network.outputs[0])
        apart.append(np.abs(history.infinite.test_outputs[-1] - history.network.test_outputs[-1]).max())
        assert np.isnan(history.infinite.largest_distance).all()
    assert apart[1] < apart[0] / 4  # a hundred times as wide: a tenth is expected


def test_accuracy_is_of_classes_only():
    params, x, _, _, _ = problem(FullyConnected(width=4, num_outputs=1, use_bias=False))
    net = FullyConnected(width=4, num_outputs=1, use_bias=False)
    signs = np.where(np.arange(8)[:, None] % 2, 1.0, -1.0)
    settings = {"max_steps": 1, "learning_rate": 0.01, "kernels": False, "linearized": False}
    path = train(net, params, x, signs, loss="logistic", **settings).network
    expected = np.mean((np.asarray(net.apply(params, x)) > 0) == (signs > 0))
    assert path.accuracy[0] == pytest.approx(expected)
    assert np.isnan(train(net, params, x, 0.3 * signs, **settings).network.accuracy).all()


@pytest.mark.parametrize(
    ("values", "index"), [([0, 1, 0, 2, 3], 3), ([0, 0, 0.5], None), ([2, 3], 0), ([0, np.nan], 1), ([], None)]
)
def test_the_departure_is_where_a_difference_rises_for_good(values, index):
    assert departure(values, 0.5) == index
