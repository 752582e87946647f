"""Training to a loss threshold with measured kernels: stopping and records."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.dynamics import (
    KernelChangeMeasure,
    Loss,
    TrainOptions,
    descend,
    network_of_seeds,
)
from ntk_core.dynamics._kernel_change import followed_rows
from ntk_core.kernels import empirical_ntk, kernel_change
from ntk_core.progress import Progress
from tests.dynamics.problems import NET, problem

LOSS = Loss("linear")
RATE = 0.3


def trained(params, threshold, rate=RATE, max_steps=40, num_records=4, outputs=("linear",)):
    """Records of one seed per first index of the parameters, up to its end."""
    _, x, y, _, _ = problem()
    options = TrainOptions(
        learning_rate=rate,
        loss_threshold=threshold,
        max_steps=max_steps,
        num_records=num_records,
        together=True,
    )
    change = KernelChangeMeasure(outputs)
    shares: list[float] = []
    progress = Progress(lambda share, message: shares.append(share))
    descend(*network_of_seeds(NET, params, x, y, LOSS), options, [change], progress)
    assert shares == sorted(shares)
    return change.result()


def one_seed(params):
    return jax.tree.map(lambda leaf: leaf[None], params)


def plain(params, x, y, rate, num_steps):
    """w_0 … w_T of a plain loop, and their losses."""
    value = jax.jit(jax.value_and_grad(lambda w: LOSS(NET.pre_outputs(w, x), y)))
    found = []
    for _ in range(num_steps + 1):
        loss, gradient = value(params)
        found.append((params, float(loss)))
        params = jax.tree.map(lambda w, g: w - rate * g, params, gradient)
    return found


@pytest.mark.usefixtures("x64")
def test_training_stops_after_the_threshold_with_its_kernel():
    params, x, y, _, _ = problem()
    path = plain(params, x, y, RATE, 40)
    threshold = (path[22][1] + path[23][1]) / 2
    assert all(loss > threshold for _, loss in path[:23])
    (found,) = trained(one_seed(params), threshold)["linear"]
    assert found.outcome == "converged"
    assert found.steps == (0, 1, 3, 12, 24)  # the loop reads a step's loss during the next step
    first, last = (empirical_ntk(NET, w, x) for w in (params, path[24][0]))
    assert found.change[-1] == pytest.approx(float(kernel_change(last, first)), rel=1e-8)
    np.testing.assert_allclose(found.loss, [path[step][1] for step in found.steps], rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_followed_outputs_are_those_of_the_network():
    params, x, y, _, _ = problem()
    training = trained(
        one_seed(params), 0.0, max_steps=5, num_records=2, outputs=("linear", "swish")
    )
    path, rows = plain(params, x, y, RATE, 5), followed_rows(len(y))
    assert 1 <= len(y[rows]) <= 4
    for output, image in (("linear", lambda f: f), ("swish", jax.nn.swish)):
        (found,) = training[output]
        expected = [
            [
                image(NET.pre_outputs(path[step][0], x))[row, int(np.argmax(y[row]))]
                for row in range(len(y))[rows]
            ]
            for step in found.steps
        ]
        np.testing.assert_allclose(found.followed, expected, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_loss_above_the_threshold_again_is_trained_further():
    """The loss is below the threshold before the last step and above it afterwards."""
    params, x, y, _, _ = problem()
    rate = 6.0  # too large, so that the loss oscillates
    losses = [loss for _, loss in plain(params, x, y, rate, 60)]
    dip = next(t for t in range(3, 60) if losses[t] < min(losses[:t]) and losses[t + 1] > losses[t])
    threshold = (losses[dip] + min(*losses[:dip], losses[dip + 1])) / 2
    (found,) = trained(one_seed(params), threshold, rate, 60, 5)["linear"]
    assert dip + 1 in found.steps  # recorded at the apparent end
    assert len(set(found.steps)) == len(found.steps)
    assert found.steps[-1] > dip + 1
    assert found.outcome == "converged" or found.steps[-1] == 60
    np.testing.assert_allclose(found.loss, [losses[step] for step in found.steps], rtol=1e-6)


@pytest.mark.parametrize("rate", ["auto", RATE])
def test_a_network_without_a_kernel_is_dead_and_takes_no_step(rate):
    params = problem()[0]
    together = jax.tree.map(lambda leaf: jnp.stack([jnp.zeros_like(leaf), leaf]), params)
    dead, alive = trained(together, 0.01, rate, 9, 3)["linear"]
    assert (dead.outcome, dead.steps, dead.change) == ("dead", (0,), (0.0,))
    assert dead.learning_rate == (math.inf if rate == "auto" else RATE)
    assert (alive.outcome, alive.steps[-1]) == ("over-budget", 9)
