"""Kernel velocities and balls in ``kernel_change``: measured with or without training."""

from __future__ import annotations

import jax
import pytest

from ntk_core import ball_sup
from ntk_core.dynamics import Loss, kernel_velocity
from ntk_core.experiments.kernel_change import kernel_change_summary
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.networks.build import build_network, initial_key
from ntk_core.runs import PRESETS, estimate, load_data, spec_digest
from ntk_core.settings.grammar import with_settings
from tests.running import result_of

SHORT = {"dataset.num_samples": 6, "training.max_steps": 3, "training.num_records": 2}
TRAINED = with_settings(KernelChangeSpec(), {"widths": [8], "num_seeds": 2, "architecture.activation": "tanh", **SHORT})
VELOCITY = with_settings(TRAINED, {"measured": "velocity"})


@pytest.mark.slow
def test_velocities_without_training_equal_those_with_it():
    result, data = result_of(VELOCITY), load_data(VELOCITY)
    groups = {"linear": ("linear", "softmax"), "softmax": ("linear", "softmax"), "swish": ("swish", "swish")}
    for point in result.points:
        assert point.runs == ()
        assert [(each.output, each.seed) for each in point.at_start] == [
            (output, seed) for output in VELOCITY.outputs for seed in (0, 1)
        ]
        for each in point.at_start:
            drawn, loss = groups[each.output]
            net = build_network(VELOCITY.architecture, point.width, data.num_outputs, drawn)
            params = net.init(initial_key(each.seed, point.width), data.input_shape)
            expected = kernel_velocity(net.with_output(each.output), params, data.x, data.y, Loss(loss))
            assert each.velocity == pytest.approx(float(expected), rel=1e-4)
            assert each.ball_change is None
    assert {row["kernel_velocity"] for row in result.rows()} == {
        each.velocity for point in result.points for each in point.at_start
    }
    assert "kernel velocity" in kernel_change_summary(VELOCITY, result.points)


def test_velocity_and_ball_do_not_change_training():
    both = with_settings(TRAINED, {"widths": [8], "outputs": ["linear"], "measured": "both", "ball_radius": 0.5})
    assert spec_digest(both) != spec_digest(with_settings(both, {"ball_radius": 0}))
    result, data = result_of(both), load_data(both)
    (point,) = result.points
    (plain,) = result_of(with_settings(both, {"measured": "training", "ball_radius": 0})).points
    assert (point.runs, plain.at_start) == (plain.runs, ())
    net = build_network(both.architecture, 8, data.num_outputs, "linear")
    params = net.init(initial_key(0, 8), data.input_shape)
    found = ball_sup(net, params, jax.numpy.asarray(data.x), 0.5, "kernel", num_starts=3, num_steps=8)
    assert point.at_start[0].ball_change == pytest.approx(found.value, rel=1e-3)
    assert {"kernel_velocity", "ball_kernel_change", "sup_kernel_change"} <= set(result.rows()[0])


def test_a_velocity_costs_less_than_training():
    spec = with_settings(PRESETS["kernel-velocity"].spec, {"widths": [10_000]})
    assert estimate(spec).seconds < estimate(with_settings(spec, {"measured": "training"})).seconds / 2
