"""ΔK of softmax(f_lin) against a linearized network that takes the same steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.charts.figure import Shown
from linearity_lab.experiments.architectures.figures import FIGURES as ARCHITECTURES_FIGURES
from linearity_lab.experiments.architectures.point import ArchitecturesSpec
from linearity_lab.experiments.kernel_change.linear_model import LINEAR_MODEL_TITLE
from linearity_lab.experiments.optimization.figures import FIGURES as OPTIMIZATION_FIGURES
from linearity_lab.experiments.optimization.point import OptimizationSpec
from linearity_lab.settings.grammar import with_settings
from ntk_core.dynamics import linearize, softmax_changes
from ntk_core.dynamics._linear_path import PADDED_TO
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected
from tests.running import result_of

RATE, STEPS = 0.5, (0, 1, 4)


# Slow: takes Jacobians of a linearized network in float64.
@pytest.mark.slow
@pytest.mark.parametrize("loss_name", ["cross-entropy", "square"])
def test_softmax_of_linear_model_equals_plain_training(loss_name):
    with jax.enable_x64(True):
        net = FullyConnected(width=7, depth=1, activation="tanh", num_outputs=3)
        x = jax.random.normal(jax.random.key(1), (4, 5), jnp.float64)
        y = jnp.eye(3)[jnp.array([0, 1, 2, 0])]
        params = net.init(jax.random.key(0), (5,))
        params = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), params)
        f_lin = linearize(net, params)

        def loss(w):
            if loss_name == "square":
                return jnp.sum((jax.nn.softmax(f_lin(w, x)) - y) ** 2) / 2 / len(x)
            return -jnp.sum(jax.nn.log_softmax(f_lin(w, x)) * y) / len(x)

        def kernel(w):
            jacobian = jax.jacobian(lambda at: jax.nn.softmax(f_lin(at, x)))(w)
            rows = jnp.concatenate([leaf.reshape(12, -1) for leaf in jax.tree.leaves(jacobian)], 1)
            return rows @ rows.T

        w, expected = params, []
        for step in range(STEPS[-1] + 1):
            if step in STEPS:
                change = jnp.linalg.norm(kernel(w) - kernel(params))
                expected.append(float(change / jnp.linalg.norm(kernel(params))))
            w = jax.tree.map(lambda leaf, slope: leaf - RATE * slope, w, jax.grad(loss)(w))
        given = empirical_ntk(net, params, x), net.apply(params, x), y
        assert softmax_changes(*given, RATE, STEPS, loss_name) == pytest.approx(expected, rel=1e-9)


def test_trained_linear_model_loses_its_softmax_kernel():
    kernel = np.eye(4)[:, :, None, None] * np.eye(2)
    y = np.eye(2)[[0, 1, 0, 1]]
    found = softmax_changes(kernel, np.zeros((4, 2)), y, 4.0, (0, 10, 1000))
    assert found[0] == 0
    assert found[1] < found[2]
    assert found[2] == pytest.approx(1, abs=0.05)


def test_trainings_of_other_lengths_share_one_program():
    kernel = np.eye(4)[:, :, None, None] * np.eye(2)
    y = np.eye(2)[[0, 1, 0, 1]]
    steps = tuple(range(PADDED_TO))
    jax.clear_caches()
    programs: list[str] = []

    def note(event: str, _: float, **about: str) -> None:
        if "backend_compile" in event:
            programs.append(about["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(note)
    try:
        longest = softmax_changes(kernel, np.zeros((4, 2)), y, 4.0, steps)
        shorter = softmax_changes(kernel, np.zeros((4, 2)), y, 4.0, steps[:5])
    finally:
        jax.monitoring.unregister_event_duration_listener(note)
    assert len(longest) == PADDED_TO
    assert shorter == longest[:5]
    assert len(programs) == 1


def _legend(result, figure, *chosen):
    drawn = figure.draw(Shown(result.spec, result.points), *chosen)
    (chart,) = drawn if isinstance(drawn, list) else [drawn]
    return [trace.name for trace in chart.figure.data if trace.name]


# Slow: trains a wide network.
@pytest.mark.slow
def test_wide_network_has_the_softmax_of_its_linear_model():
    few = {"widths": [2000], "outputs": ["softmax"], "rates": [2.0], "num_seeds": 1}
    result = result_of(
        with_settings(
            OptimizationSpec(),
            {**few, "dataset.num_samples": 4, "dataset.num_classes": 2, "training.max_steps": 200},
        )
    )
    (run,) = result.points[0].runs
    assert run.sup_change > 0.1
    assert run.linear_model_change[0] == 0
    assert run.linear_model_sup == pytest.approx(run.sup_change, rel=0.05)
    assert any(LINEAR_MODEL_TITLE in name for name in _legend(result, OPTIMIZATION_FIGURES[1]))


# Slow: trains two networks at two widths.
@pytest.mark.slow
def test_compared_networks_show_softmax_of_linear_models():
    few = {"widths": [4, 6], "num_seeds": 1, "training.max_steps": 20, "outputs": ["softmax"]}
    result = result_of(with_settings(ArchitecturesSpec(), {**few, "dataset.num_samples": 6}))
    names = _legend(result, ARCHITECTURES_FIGURES[0], "softmax")
    assert sum(LINEAR_MODEL_TITLE in name for name in names) == 2
