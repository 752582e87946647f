"""Hessian norms against width: numbers of the core, for the same networks as those trained."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.data import load_dataset
from linearity_lab.experiments.hessian import compute as _hessian
from linearity_lab.experiments.hessian.compute import _network
from linearity_lab.experiments.hessian.network import TEMPLATES, templates
from linearity_lab.experiments.hessian.point import BallBound, HessianResult
from linearity_lab.experiments.hessian.spec import HessianSpec, hidden_and_output
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.networks.build import build_network
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import PRESETS, check_size, counts_of, estimate, peak_bytes, run_summary
from linearity_lab.settings.grammar import with_settings
from ntk_core.errors import TooLarge
from ntk_core.hessians import hessian_norm, vector_hessian_norm
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.keys import initial_key
from tests.running import result_of

LINEAR, NONLINEAR = "fully-connected", "fully-connected-swish"
FEW = {
    "widths": [8],
    "num_seeds": 2,
    "num_trained": 0,
    "num_inputs": 2,
    "bounds": False,
    "blocks": False,
}
SHORT = {"dataset.num_samples": 6, "training.max_steps": 20, "training.num_records": 3}
SMALL = with_settings(HessianSpec(networks=templates(LINEAR, layers=1)), {**FEW, **SHORT})


def compared(*names, **shared) -> list[dict]:
    """Settings of networks by name, as in a spec."""
    return [network.model_dump() for network in templates(*names, **shared)]


@pytest.fixture(name="linear", scope="module")
def _linear() -> HessianResult:
    """A linear output with all its measurements, and a nonlinear one."""
    changed = {
        "networks": compared(LINEAR, NONLINEAR, layers=1),
        "num_trained": 1,
        "bounds": True,
        "blocks": True,
    }
    return result_of(with_settings(SMALL, {**changed, "output_index": 1}))


def of_seed(spec, seed, width=8):
    """Network, parameters, inputs and output index of the first point for one seed."""
    data = load_dataset(spec.dataset.name, **spec.dataset.options())
    net, x, output_index = _network(spec, data, width, spec.networks[0])
    return net, net.init(initial_key(seed, width), data.input_shape), x, output_index


def test_norm_and_kernel_are_those_of_the_seeded_network(linear):
    point = linear.points[0]
    for found in point.runs:
        net, params, x, output_index = of_seed(linear.spec, found.seed)
        norms = hessian_norm(net, params, x[:2], output_index, tolerance=1e-3)
        assert found.norm == pytest.approx(float(norms.value.mean()), rel=1e-4)
        jacobian = jax.jit(jax.jacobian(lambda params, net=net, x=x: net.apply(params, x)))(params)
        squares = sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(jacobian))
        assert found.kernel == pytest.approx(squares / (len(x) * net.num_outputs), rel=1e-4)
        assert found.converged
    assert point.num_params == net.num_params(x.shape[1:])


def test_kernel_change_equals_that_of_its_experiment(linear):
    spec = linear.spec
    network = ArchitectureSpec(depth=1, activation="tanh", use_bias=False)
    settings = {"dataset": spec.dataset, "training": spec.training, "widths": (8,), "num_seeds": 1}
    same = KernelChangeSpec(architecture=network, outputs=("linear", "swish"), **settings)
    for point, alone in zip(linear.points, result_of(same).points[0].runs, strict=True):
        trained, untrained = point.runs
        assert untrained.trained is None
        assert trained.trained.sup_change == pytest.approx(alone.sup_change, rel=1e-4)
        assert (trained.trained.outcome, trained.trained.num_steps) == (
            alone.outcome,
            alone.num_steps,
        )


def test_bounds_and_blocks_enclose_the_norm(linear):
    below, behind = linear.points
    for found in below.runs:
        assert found.bound.bound >= found.norm
        assert found.bound.q_inf == pytest.approx(max(found.bound.b_max), rel=1e-4)
        assert found.parts is None
    for found in behind.runs:
        assert (
            found.parts.lower <= found.norm <= found.parts.gradient_part + found.parts.linear_part
        )
        assert found.bound is None
    net, params, x, output_index = of_seed(linear.spec, 0)
    first, _ = hessian_norm(net, params, x[:2], output_index, tolerance=1e-3).value
    blocks = below.blocks  # of the first seed
    norms = np.asarray(blocks.norms)
    assert blocks.layers == ("hidden1", "output")
    np.testing.assert_array_equal(norms, norms.T)
    assert norms[1, 1] == 0  # the output layer is linear
    assert norms.max() / (1 + 1e-4) <= first <= norms.sum()


def test_all_outputs_use_the_same_network_and_are_counted():
    spec = with_settings(SMALL, {"vector": True, "num_seeds": 1, "num_inputs": 1})
    (found,) = result_of(spec).points[0].runs
    net, params, x, _ = of_seed(spec, 0)
    assert found.vector.norm == pytest.approx(
        vector_hessian_norm(net, params, x[0], tolerance=1e-3).value, rel=1e-3
    )
    assert found.norm <= found.vector.norm * (1 + 1e-3) <= found.vector.upper * (1 + 2e-3)
    assert estimate(spec).seconds > estimate(with_settings(spec, {"vector": False})).seconds


@pytest.mark.slow
def test_closed_forms_are_the_norm_and_a_block_below_it():
    spec = with_settings(SMALL, {"networks": compared("shallow", "quadratic-bottleneck")})
    shallow, narrow = result_of(spec).points
    for found in shallow.runs:
        assert found.exact == pytest.approx(found.norm, rel=1e-4)
    for found in narrow.runs:
        assert found.exact <= found.norm * (1 + 1e-4)
    assert narrow.min_width == 1


# Slow: compiles ascents in balls.
@pytest.mark.slow
def test_infimum_of_the_bottleneck_is_below_its_norm():
    spec = PRESETS["liu-theorem41-ball"].spec
    changed = {"widths": [6], "num_seeds": 4, "num_ball_seeds": 4, "radii": [0.5, 2.0]}
    (point,) = result_of(with_settings(spec, {**changed, "num_starts": 1})).points
    for run in point.runs:
        small, large = run.balls
        assert (large.hessian_least == 0) == (run.zero_distance <= 2.0)
        assert large.hessian_least <= small.hessian_least <= small.hessian
        assert run.norm <= small.hessian


# Slow: compiles ascents in balls and the layer quantities.
@pytest.mark.long
def test_layer_quantities_of_a_ball_are_measured_with_bounds():
    changed = {"widths": [8], "num_seeds": 1, "num_ball_seeds": 1, "num_starts": 1, "radii": [1e-6]}
    (point,) = result_of(with_settings(PRESETS["liu-lemma31"].spec, changed)).points
    (run,) = point.runs
    (ball,) = run.balls
    # In a tiny ball they are those of w₀.
    found = [ball.q_inf, ball.q_l, ball.q_221]
    assert found == pytest.approx([run.bound.q_inf, run.bound.q_l, run.bound.q_221], rel=1e-3)
    assert ball.hessian_least is None


def test_unconverged_norms_are_marked(monkeypatch):
    monkeypatch.setattr(_hessian, "MAX_MATVECS", 2)
    result = result_of(SMALL)
    assert not any(found.converged for found in result.points[0].runs)
    text = run_summary(result.spec, result.points)
    assert "! 2 unconverged" in text
    assert "excluded from means" in text
    assert "no exponent in m fitted" in text


@pytest.mark.parametrize("name", TEMPLATES)
def test_sizes_are_counted_as_the_network_has_them(name):
    (network,) = templates(name, use_bias=True, bottleneck_width=2)
    tokens = {"patch_size": 1} if network.uses("num_heads") else {}
    spec = HessianSpec(networks=(network,), dataset={"name": "digits", "num_samples": 20, **tokens})
    data = load_dataset(spec.dataset.name, **spec.dataset.options())
    net, x, _ = _network(spec, data, 100, network)
    counted = sum(layer.num_params for layer in hidden_and_output(spec, network, 100))
    assert counted == net.num_params(x.shape[1:])
    assert network.at(100)[1] == (8 if network.relative_width < 1 else 100)


def test_summary_shows_the_remaining_gain_of_every_ball():
    balls = [
        BallBound(
            radius=radius,
            hessian=radius,
            hessian_random=radius / 2,
            kernel_change=radius / 4,
            kernel_change_random=radius / 8,
            converged=True,
            hessian_last_gain=gain,
            kernel_change_last_gain=None,
        )
        for radius, gain in ((1.0, 0.0004), (4.0, 0.115))
    ]
    result = result_of(SMALL)
    before = run_summary(SMALL, result.points)
    assert "Balls" not in before
    point = result.points[0]
    runs = [run.model_copy(update={"balls": balls}) for run in point.runs]
    text = run_summary(SMALL, [point.model_copy(update={"runs": tuple(runs)})])
    _, table = text.split("Balls around w₀")
    small, large = (line.split() for line in table.splitlines()[2:4])
    expected = str(len(runs))
    assert small[-7:] == ["1", "1", "0.04%", "0.25", "not", "recorded", expected]
    assert large[-7:] == ["4", "4", "12%", "1", "not", "recorded", expected]


def test_ball_counts_six_copies_and_refuses_before_tracing(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_MEMORY_GIB", "1")
    wide = with_settings(SMALL, {"networks": compared(LINEAR), "widths": [4000]})
    check_size(wide)
    (key,) = wide.point_keys()
    searched = with_settings(wide, {"radii": [1.0]})
    assert (
        peak_bytes(counts_of(searched, key)) - peak_bytes(counts_of(wide, key)) > 4.9 * 4 * 4000**2
    )
    with pytest.raises(TooLarge) as refused:
        check_size(with_settings(searched, {"widths": [100, 8000]}))
    assert refused.value.field == "widths"
    assert refused.value.nearest > 4000
    assert estimate(searched).num_points == 1


@pytest.mark.slow
def test_length_sweep_uses_data_of_every_length():
    changed = {
        "dataset.name": "random-sequences",
        "dataset.num_tokens": 7,
        "dataset.input_dim": 3,
        "swept": "num_tokens",
        "widths": [2, 4],
        "fixed_width": 5,
        "shares": True,
        "num_seeds": 1,
        "networks": [{"kind": "attention", "num_heads": 2}],
    }
    result = result_of(with_settings(SMALL, changed))
    for point in result.points:
        assert (point.place, point.num_tokens, point.wide_width) == (point.width, point.width, 5)
        assert point.num_params == 10 * (3 * 3 + 1)
        data = load_dataset("random-sequences", num_samples=6, num_tokens=point.width, input_dim=3)
        net = build_network(*point.network.at(5), 1, "linear")
        (found,) = point.runs
        params = net.init(initial_key(found.seed, point.width), data.input_shape)
        parts = empirical_ntk(net, params, data.x, per_layer=True)
        traces = [float(jnp.einsum("iicc->", part)) for part in parts.values()]
        assert [each.layer for each in found.shares] == ["queries", "keys", "values", "output"]
        np.testing.assert_allclose(
            [each.share for each in found.shares], np.array(traces) / sum(traces), rtol=1e-4
        )
    assert "share_queries" in result.rows()[0]


def test_norms_of_a_run_ignore_what_was_asked_before():
    before = result_of(SMALL).points[0]
    net, params, x, output_index = of_seed(SMALL, 0)
    for _ in range(5):  # the last ones run in optimized stretches
        hessian_norm(net, params, x[:2], output_index, tolerance=1e-3, batched=True)
    assert [run.norm for run in result_of(SMALL).points[0].runs] == [
        run.norm for run in before.runs
    ]
