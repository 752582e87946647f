"""Hessian norms against width: the numbers are those of the core, on the networks that are trained beside them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.data import load_dataset
from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.experiments.hessian import compute as _hessian
from ntk_core.experiments.hessian.compute import _network
from ntk_core.experiments.hessian.costs import hidden_and_output, peak_bytes
from ntk_core.experiments.hessian.result import HessianResult
from ntk_core.experiments.hessian.spec import HESSIAN_NETWORK_PARTS, HessianSpec, Series
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.hessians import hessian_norms
from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.runs import check_size, estimate, run, summary
from ntk_core.runs.events import Ended, PointProgress
from ntk_core.settings.grammar import InvalidSpec, with_settings
from ntk_core.settings.vocabulary import HESSIAN_NETWORKS

SMALL = with_settings(
    HessianSpec(),
    {
        "networks": ["linear"],
        "widths": [8],
        "num_seeds": 2,
        "num_trained": 0,
        "num_inputs": 2,
        "depth": 1,
        "bounds": False,
        "blocks": False,
        "dataset.num_samples": 6,
        "training.max_steps": 20,
        "training.num_records": 3,
    },
)
LINEAR = Series("linear", "ntk")


def result_of(spec) -> HessianResult:
    *_, last = run(spec)
    assert isinstance(last, Ended), last
    assert isinstance(last.result, HessianResult), last.reason
    return last.result


@pytest.fixture(name="linear", scope="module")
def _linear() -> HessianResult:
    """A linear output with everything that is measured there, and the nonlinear one beside it."""
    changed = {"networks": ["linear", "nonlinear-output"], "num_trained": 1, "bounds": True, "blocks": True}
    return result_of(with_settings(SMALL, {**changed, "output_index": 1}))


def test_norm_and_kernel_are_those_of_the_network_drawn_with_the_seed(linear):
    spec = linear.spec
    data = load_dataset(spec.dataset.name, **spec.dataset.options())
    point = linear.points[0]
    net, x, output_index = _network(spec, data, 8, LINEAR)
    assert x.shape == data.x.shape
    for found in point.runs:
        params = net.init(jax.random.key(found.seed), data.input_shape)
        norms = hessian_norms(net, params, x[:2], output_index, tolerance=1e-3)
        assert found.norm == pytest.approx(float(norms.value.mean()), rel=1e-4)
        jacobian = jax.jacobian(lambda params, net=net: net.apply(params, x))(params)
        squares = sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(jacobian))
        assert found.kernel == pytest.approx(squares / (len(x) * data.num_outputs), rel=1e-4)
        assert found.converged
    assert point.num_params == net.num_params(data.input_shape)


def test_kernel_change_is_that_of_the_experiment_of_kernel_change(linear):
    spec = linear.spec
    architecture = ArchitectureSpec(depth=1, activation="tanh", use_bias=False)
    same = KernelChangeSpec(
        dataset=spec.dataset,
        widths=(8,),
        num_seeds=1,
        architecture=architecture,
        outputs=("linear", "swish"),
        training=spec.training,
    )
    *_, ended = run(same)
    for point, alone in zip(linear.points, ended.result.points[0].runs, strict=True):
        trained, untrained = point.runs
        assert untrained.trained is None
        assert trained.trained.sup_change == pytest.approx(alone.sup_change, rel=1e-4)
        assert trained.trained.outcome == alone.outcome
        assert trained.trained.num_steps == alone.num_steps


def test_bounds_hold_on_both_sides(linear):
    below, behind = linear.points
    for found in below.runs:
        assert found.bound.bound >= found.norm
        assert found.bound.q_inf == pytest.approx(max(found.bound.b_max), rel=1e-4)
        assert found.parts is None
    for found in behind.runs:
        assert found.parts.lower <= found.norm <= found.parts.gradient_part + found.parts.linear_part
        assert found.bound is None


def test_blocks_are_those_of_the_first_seed_and_input_and_lie_around_its_norm(linear):
    data = load_dataset(linear.spec.dataset.name, **linear.spec.dataset.options())
    net, x, output_index = _network(linear.spec, data, 8, LINEAR)
    params = net.init(jax.random.key(0), data.input_shape)
    first, _ = hessian_norms(net, params, x[:2], output_index, tolerance=1e-3).value
    blocks = linear.points[0].blocks
    norms = np.asarray(blocks.norms)
    assert blocks.layers == ("hidden1", "output")
    np.testing.assert_array_equal(norms, norms.T)
    assert norms[1, 1] == 0  # the output layer is linear
    assert norms.max() <= first * (1 + 1e-4)
    assert first <= norms.sum()


def test_numbers_survive_the_round_trip_and_every_row_has_the_same_columns(linear):
    assert HessianResult.model_validate_json(linear.model_dump_json()) == linear
    rows = linear.rows()
    assert len(rows) == 4
    assert len({tuple(row) for row in rows}) == 1
    assert tuple(point.key for point in linear.points) == linear.spec.point_keys()


def test_closed_forms_are_the_norm_and_a_block_below_it():
    spec = with_settings(SMALL, {"networks": ["shallow", "quadratic-bottleneck"]})
    shallow, narrow = result_of(spec).points
    for found in shallow.runs:
        assert found.exact == pytest.approx(found.norm, rel=1e-4)
    for found in narrow.runs:
        assert found.exact <= found.norm * (1 + 1e-4)
    assert narrow.min_width == 1


def test_sups_over_balls_beat_the_center_and_random_directions_and_rise_with_the_radius():
    spec = with_settings(SMALL, {"radii": [0.5, 2.0], "num_starts": 1, "num_ball_seeds": 1})
    searched, plain = result_of(spec).points[0].runs
    assert plain.balls == ()
    small, large = searched.balls
    assert small.hessian <= large.hessian
    assert small.kernel_change <= large.kernel_change
    for ball in (small, large):
        assert ball.hessian >= ball.hessian_random
        assert ball.kernel_change >= ball.kernel_change_random > 0


def test_lecun_parameterization_multiplies_kernel_and_hessian_by_the_width():
    spec = with_settings(SMALL, {"parameterizations": ["ntk", "lecun"]})
    plain, scaled = result_of(spec).points
    for before, after in zip(plain.runs, scaled.runs, strict=True):
        assert after.norm == pytest.approx(8 * before.norm, rel=1e-3)
        assert after.kernel == pytest.approx(8 * before.kernel, rel=1e-3)
        assert after.relative_norm == pytest.approx(before.relative_norm, rel=1e-3)


def test_norms_that_did_not_converge_are_said_to_be_so(monkeypatch):
    monkeypatch.setattr(_hessian, "MAX_MATVECS", 2)
    result = result_of(SMALL)
    assert not any(found.converged for found in result.points[0].runs)
    text = summary(result.spec, result.points)
    assert "! 2 unconverged" in text
    assert "not in the mean" in text
    assert "no exponent fitted" in text


def test_progress_is_told_before_every_seed_and_between_stretches_of_training():
    spec = with_settings(SMALL, {"num_trained": 1})
    told = [event.message for event in run(spec) if isinstance(event, PointProgress)]
    assert [message for message in told if message.endswith(("seed 0", "seed 1"))] == [
        "width 8: linear output, seed 0",
        "width 8: linear output, seed 1",
    ]
    assert sum("step" in message for message in told) >= 2


def test_run_stops_between_two_seeds():
    asked = iter([False, False, True])
    *_, last = run(with_settings(SMALL, {"num_seeds": 5}), should_stop=lambda: next(asked))
    assert last.status == "cancelled"
    assert last.result.points == ()


@pytest.mark.parametrize("network", HESSIAN_NETWORKS)
@pytest.mark.parametrize("parameterization", ["ntk", "lecun"])
def test_sizes_are_counted_as_the_network_has_them(network, parameterization):
    spec = HessianSpec(networks=(network,), parameterizations=(parameterization,), use_bias=True, bottleneck_width=2)
    data = load_dataset(spec.dataset.name, **spec.dataset.options())
    series = Series(network, parameterization)
    net, x, _ = _network(spec, data, 100, series)
    counted = sum(layer.num_params for layer in hidden_and_output(spec, series, 100))
    assert counted == net.num_params(x.shape[1:])
    if HESSIAN_NETWORK_PARTS[network].is_convolutional:
        assert spec.wide_width(network, 100) == 8


def test_a_ball_counts_six_copies_of_the_weights_and_too_much_is_refused_before_tracing(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_MEMORY_GIB", "1")
    wide = with_settings(SMALL, {"depth": 2, "widths": [4000]})
    check_size(wide)
    (key,) = wide.point_keys()
    searched = with_settings(wide, {"radii": [1.0]})
    assert peak_bytes(searched, key) - peak_bytes(wide, key) > 4.9 * 4 * 4000**2
    with pytest.raises(TooLarge) as refused:
        check_size(with_settings(searched, {"widths": [100, 8000]}))
    assert refused.value.field == "widths"
    assert refused.value.nearest > 4000
    assert estimate(searched).num_points == 1


REFUSED = [
    ("activation", {"activation": "relu"}, "0 almost everywhere"),
    ("activation", {"activation": "leaky_relu"}, "tanh, erf, sigmoid, softplus, swish, gelu"),
    ("output", {"output": "relu"}, "0 almost everywhere"),
    ("output", {"output": "linear", "networks": ["nonlinear-output"]}, "a nonlinear one"),
    ("networks", {"networks": ["convnet"], "dataset.name": "gaussian-mixture"}, "images only"),
    ("networks", {"networks": ["linear"] * 13}, "1 to 12 values"),
    ("output_index", {"output_index": 3}, "0 to 2"),
    ("num_inputs", {"num_inputs": 7}, "1 to 6"),
    ("radii", {"radii": [0]}, "a number above 0"),
]


@pytest.mark.parametrize(("field", "change", "words"), REFUSED, ids=[f"{row[0]}-{k}" for k, row in enumerate(REFUSED)])
def test_what_has_no_hessian_is_refused_in_one_sentence(field, change, words):
    with pytest.raises(InvalidSpec) as refused:
        with_settings(SMALL, change)
    (problem,) = [each for each in refused.value.problems if each.field == field]
    assert isinstance(problem, InvalidInput)
    assert words in problem.allowed
