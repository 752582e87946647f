"""Linear model, quadratic model and network at rates below and above the stable one,
against plain loops.
"""

import math

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.charts.figure import shown_result
from linearity_lab.data import load_dataset
from linearity_lab.experiments.learning_rate.compute import GROWN_STEPS
from linearity_lab.experiments.learning_rate.figures import edge
from linearity_lab.experiments.learning_rate.point import (
    LearningRateResult,
    LearningRateSpec,
    rate_outcome,
)
from linearity_lab.networks.build import build_network
from linearity_lab.runs import run, run_summary
from linearity_lab.runs.events import PointProgress
from linearity_lab.settings.grammar import with_settings
from ntk_core.dynamics import eigenvalues, linearize, quadratic_model
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.keys import initial_key
from tests.running import result_of

FEW = {
    "widths": [100],
    "rates": [1.5, 3.0],
    "num_seeds": 2,
    "max_steps": 40,
    "dataset.num_samples": 6,
}
SMALL = with_settings(LearningRateSpec(), {**FEW, "keep_paths": True})


@pytest.fixture(scope="module")
def result() -> LearningRateResult:
    return result_of(SMALL)


@pytest.mark.slow
def test_each_model_takes_the_steps_of_a_plain_loop(result, x64):
    data = load_dataset(SMALL.dataset.name, **SMALL.data_options())
    x, y = jnp.asarray(data.x, float), jnp.asarray(data.y, float)
    assert y.shape == (6, 1)
    assert set(np.unique(y)) <= {-1.0, 1.0}
    net = build_network(SMALL.architecture, 100, 1, "linear")
    jax.config.update("jax_enable_x64", False)
    # The weights of the run, in its precision.
    drawn = net.init(initial_key(0, 100), data.input_shape)
    jax.config.update("jax_enable_x64", True)
    params = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), float), drawn)
    models = {
        "network": net.apply,
        "linear": linearize(net, params),
        "quadratic": quadratic_model(net, params),
    }
    unit = 6 / eigenvalues(empirical_ntk(net, params, x))[0]
    gradients = {
        name: jax.jit(jax.value_and_grad(lambda w, f=f: 0.5 * jnp.mean((f(w, x) - y) ** 2)))
        for name, f in models.items()
    }
    for found in result.points[0].runs:
        if found.seed:
            continue
        assert found.learning_rate == pytest.approx(found.rate * unit, rel=1e-4)
        w, losses = params, []
        for _ in range(9):
            loss, slope = gradients[found.model](w)
            losses.append(float(loss))
            w = jax.tree.map(
                lambda weight, part, rate=found.learning_rate: weight - rate * part, w, slope
            )
        assert found.path.steps[:9] == tuple(range(9))
        np.testing.assert_allclose(found.path.loss[:9], losses, rtol=2e-3)


def test_curvature_distance_and_change_begin_where_they_must(result):
    for found in result.points[0].runs:
        if found.path is None:
            assert found.seed == 1
            continue
        assert found.path.curvature[0] == pytest.approx(found.rate, rel=1e-4)
        assert found.path.distance[0] == 0 == found.path.change[0]
        assert found.path.distance[1] > 0
        assert found.curvature == pytest.approx(found.path.curvature[-1], nan_ok=True)
        if found.model == "linear":
            assert all(
                value in (0.0, found.rate) or math.isnan(value)
                for value in found.path.change + found.path.curvature
            )


def test_above_two_only_the_linear_model_diverges(result):
    outcomes = {(each.model, each.rate): each for each in result.points[0].runs}
    assert outcomes["linear", 1.5].outcome == "monotone"
    assert outcomes["linear", 3.0].outcome == "diverged"
    for model in ("network", "quadratic"):
        assert outcomes[model, 3.0].outcome in ("monotone", "catapult")
        assert outcomes[model, 3.0].curvature < 2
    words = run_summary(result.spec, result.points)
    assert "2 diverged" in words
    assert len(result.rows()) == 12


@pytest.mark.slow
def test_kept_paths_are_reported_while_they_grow():
    spec = with_settings(
        SMALL, {"rates": [3.0], "num_seeds": 1, "max_steps": 20, "models": ["network"]}
    )
    events = [
        each for each in run(spec) if isinstance(each, PointProgress) and each.point is not None
    ]
    lengths = [len(event.point.runs[0].path.steps) for event in events]
    assert lengths[: 20 // GROWN_STEPS] == [
        steps + 1 for steps in range(GROWN_STEPS, 21, GROWN_STEPS)
    ]


@pytest.mark.parametrize(
    ("losses", "dead", "outcome"),
    [
        ([1, 0.5, 0.1], False, "monotone"),
        ([1, 1.04, 0.1], False, "monotone"),
        ([1, 40, 0.1], False, "catapult"),
        ([1, 40, 0.5], True, "dead"),
        ([1, 40, 1.2], False, "diverged"),
        ([1, math.inf, math.nan], True, "diverged"),
    ],
)
def test_outcomes_follow_from_losses(losses, dead, outcome):
    assert rate_outcome(losses, dead) == outcome


@pytest.mark.slow
def test_batches_and_other_outputs_run_too():
    changes = {
        "method": "sgd",
        "batch_size": 3,
        "output": "swish",
        "rates": [1.0],
        "num_seeds": 1,
        "max_steps": 4,
    }
    runs = result_of(with_settings(SMALL, changes)).points[0].runs
    assert [each.model for each in runs] == list(SMALL.models)
    assert all(each.num_steps == 4 and math.isfinite(each.last_loss) for each in runs)


EDGE = {
    "dataset.name": "single-index",
    "dataset.degree": 1,
    "dataset.num_samples": 6,
    "dataset.input_dim": 4,
    "architecture.activation": "tanh",
    "models": ["network"],
    "rates": [0.4, 1.2, 1.7],
    "keep_curvature": True,
    "loss_threshold": 0.01,
    "max_steps": 100,
}


@pytest.mark.slow
def test_largest_curvature_is_that_of_a_loop_in_float64():
    spec = with_settings(LearningRateSpec(), {**FEW, **EDGE, "widths": [12]})
    data = load_dataset(spec.dataset.name, **spec.data_options())
    x, y = np.asarray(data.x, np.float64), np.asarray(data.y, np.float64)
    net = build_network(spec.architecture, 12, 1, "linear")
    runs = result_of(spec).points[0].runs
    for found in runs:
        leaves = jax.tree.leaves(net.init(initial_key(found.seed, 12), data.input_shape))
        shapes = [(4, 12), (12, 1)]
        w, v = (
            next(np.asarray(leaf, np.float64) for leaf in leaves if leaf.shape == shape)
            for shape in shapes
        )
        largest = []
        for _ in range(found.num_steps + 1):
            h = np.tanh(x @ w / 2)  # √4 = 2
            slopes = (1 - h**2) * v[:, 0] / np.sqrt(12)  # ∂f/∂z
            jacobian_w = np.einsum("nd,nm->ndm", x / 2, slopes)
            jacobian = np.concatenate([jacobian_w.reshape(6, -1), h / np.sqrt(12)], axis=1)
            largest.append(np.linalg.eigvalsh(jacobian @ jacobian.T)[-1])
            residual = (h @ v / np.sqrt(12) - y) / 6
            w = w - found.learning_rate * np.einsum("n,ndm->dm", residual[:, 0], jacobian_w)
            v = v - found.learning_rate * h.T @ residual / np.sqrt(12)
        growth = max(largest) / largest[0] - 1
        assert found.growth == pytest.approx(growth, rel=2e-3, abs=1e-5)
        if found.rate == 0.4:
            assert found.converged
            assert found.predicted_peak is None
            slow = growth
        else:
            assert found.predicted_peak == pytest.approx(found.rate * (1 + slow), rel=2e-3)
            assert found.should_meet_edge == (found.predicted_peak > 2)
    assert {run.rate for run in runs} == {0.4, 1.2, 1.7}


@pytest.mark.parametrize(
    ("rate", "peak", "predicted", "expected"),
    [
        (1.8, 2.1, 2.5, 1.0),
        (1.8, 1.9, 2.5, 0.0),
        (1.2, 1.3, 1.3, 1.0),
        (1.8, 2.1, 2.15, None),  # too close to the border
        (1.8, 2.1, None, None),
        (2.2, 2.3, 2.9, None),  # above the edge from the start
    ],
)
def test_only_runs_off_the_border_are_judged(result, rate, peak, predicted, expected):
    changes = {"rate": rate, "peak_curvature": peak, "predicted_peak": predicted}
    run = result.points[0].runs[0].model_copy(update=changes)
    assert run.as_predicted == expected


def test_slow_runs_that_do_not_converge_predict_nothing():
    spec = with_settings(LearningRateSpec(), {**FEW, **EDGE, "widths": [12], "max_steps": 2})
    found = result_of(spec)
    runs = found.points[0].runs
    sentence = edge(shown_result(found)).finding
    assert "did not converge" in sentence
    assert "within" not in sentence
    assert all(run.predicted_peak is None for run in runs)
    assert all(run.growth is not None for run in runs)
