"""A network and its linear model: claims of Liu, Zhu & Belkin 2020, §2, and reporting of runs."""

import numpy as np
import pytest

from linearity_lab.experiments.dynamics import compute as _dynamics
from linearity_lab.experiments.dynamics.point import DynamicsSpec
from linearity_lab.runs import load_data, run_summary
from linearity_lab.settings.grammar import with_settings
from ntk_core.dynamics.choices import METHODS
from tests.running import result_of

FEW = {
    "widths": [20],
    "num_seeds": 1,
    "outputs": ["linear"],
    "num_test": 5,
    "architecture.activation": "tanh",
}
SHORT = {"dataset.num_samples": 12, "training.max_steps": 40, "training.num_records": 5}
SMALL = with_settings(DynamicsSpec(), {**FEW, **SHORT})


@pytest.mark.long
def test_a_point_keeps_outputs_of_the_first_seed_only():
    settings = {"widths": [16, 64], "num_seeds": 2, "outputs": ["linear", "swish"]}
    result = result_of(with_settings(SMALL, settings))
    for each in (each for point in result.points for each in point.runs):
        kept = each.seed == result.spec.seed
        assert len(each.network.outputs) == len(each.steps) * kept
        assert len(each.linearized.test_outputs) == len(each.steps) * kept
        assert (each.infinite is not None) == (each.output == "linear")
        if kept:
            assert np.shape(each.network.outputs) == (len(each.steps), result.spec.num_followed, 3)
    assert len(result.rows()) == 8
    assert "linear output, gradient descent: ‖F − F_lin‖ / ‖F_lin‖ ∝ m^(" in run_summary(
        result.spec, result.points
    )


def test_linear_model_diverges_above_the_stable_rate():
    methods = ["gradient-descent", "large-rate", "beyond-stable"]
    spec = with_settings(
        SMALL,
        {
            "methods": methods,
            "widths": [300],
            "training.max_steps": 400,
            "infinite_width": False,
            "loss": "square",
        },
    )
    plain, large, beyond = result_of(spec).points[0].runs
    # Auto is a quarter of the stable rate of a linear output under square loss.
    assert plain.learning_rate == pytest.approx(plain.stable_rate / 4, rel=1e-3)
    assert large.learning_rate == pytest.approx(
        METHODS["large-rate"].rate_factor * plain.learning_rate
    )
    assert plain.linearized.outcome != "diverged" != large.linearized.outcome
    assert beyond.learning_rate > beyond.stable_rate
    assert beyond.linearized.outcome == "diverged"
    assert 0 < beyond.linearized.last_finite_step < 400
    assert beyond.outcome != "diverged"
    assert beyond.sup_distance > 2 * plain.sup_distance  # it leaves the ball
    assert beyond.sup_change > 5 * plain.sup_change


def test_a_curve_is_kept_whole_with_its_inputs():
    spec = with_settings(SMALL, {"dataset.name": "sine", "dataset.num_samples": 6, "num_test": 9})
    point = result_of(spec).points[0]
    assert np.shape(point.x) == (6, 1)
    np.testing.assert_allclose(np.ravel(point.x_test), np.linspace(-3, 3, 9), atol=1e-3)
    assert np.shape(point.runs[0].network.test_outputs)[1:] == (9, 1)
    assert point.runs[0].network.accuracy == ()


def test_the_logistic_loss_takes_signs_as_targets():
    point = result_of(with_settings(SMALL, {"loss": "logistic"})).points[0]
    assert {value for row in point.y for value in row} == {-1.0, 1.0}
    assert point.runs[0].network.loss[-1] < point.runs[0].network.loss[0]


def test_followed_points_take_turns_among_the_classes():
    spec = DynamicsSpec(num_followed=5)
    data = load_data(spec)
    found = _dynamics._followed(data.labels, len(data.x), spec)
    assert [int(data.labels[index]) for index in found] == [0, 1, 2, 0, 1]
    for count, first in ((9, [0, 1, 2, 3]), (2, [0, 1])):  # the first ones without classes
        assert _dynamics._followed(np.zeros(0, int), count, DynamicsSpec(num_followed=4)) == first
