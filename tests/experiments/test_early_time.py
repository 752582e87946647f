"""The experiment on early time: records, progress, refusals, failures."""

import math

import jax
import numpy as np
import pytest

from linearity_lab.experiments.early_time import compute
from linearity_lab.experiments.early_time import spec as early_time_spec
from linearity_lab.experiments.early_time.point import EarlyPoint, EarlyRun, ModelCurve
from linearity_lab.experiments.early_time.spec import EarlyTimeSpec
from linearity_lab.runs import parse_spec, run, run_summary
from linearity_lab.runs.events import PointFinished, PointProgress
from linearity_lab.settings.grammar import with_settings
from ntk_core import early_time
from ntk_core.networks.keys import initial_key
from tests.running import result_of

SMALL = parse_spec(
    {
        "experiment": "early_time",
        "swept": "input_dim",
        "values": [8, 16],
        "width": 32,
        "num_seeds": 2,
        "dataset": {"num_samples": 200, "num_test": 60, "target": "norm"},
        "network": {"activations": ["softplus"]},
        "training": {"max_steps": 30, "num_records": 6},
        "kernel_samples": 50,
    }
)
IMAGES = parse_spec(
    {
        "experiment": "early_time",
        "values": [3],
        "dataset": {"name": "cifar2", "num_samples": 40, "num_test": 210},
        "network": {"kind": "convnet", "depth": 2},
        "training": {"max_steps": 6, "num_records": 4, "batch_size": 10},
    }
)


@pytest.fixture(scope="module")
def events():
    return list(run(SMALL))


def test_a_run_gives_every_point_seed_and_kernel(events):
    result = events[-1].result
    assert result.status == "completed"
    # 32 · 2^1.5, even.
    assert [(point.input_dim, point.width) for point in result.points] == [
        (8, 32),
        (16, 90),
    ]
    for point in result.points:
        assert [(each.activation, each.seed) for each in point.runs] == [
            ("softplus", 0),
            ("softplus", 1),
        ]
        assert [each.seed for each in point.kernels] == [0, 1]
        assert point.span_dimension == point.input_dim
        assert point.constants["softplus"].zeta == pytest.approx(0.5)
        assert point.inputs is not None
        for each in point.runs:
            assert each.path is None  # the kernel is that of fewer inputs
            assert each.distance[0] == 0
            assert each.network.test_loss[0] == pytest.approx(each.target_power / 2, rel=1e-4)
            assert each.linear.test_loss[0] == each.naive.test_loss[0] == each.network.test_loss[0]
            for curve in (each.network, each.linear, each.naive):
                both = np.add(curve.span_loss, curve.complement_loss)
                np.testing.assert_allclose(both, curve.test_loss, rtol=1e-9)
            assert each.naive != each.linear
            assert min(each.linear.train_loss) > 0.99 * each.optimal_train_loss
    first, second = result.points[0].runs
    assert (first.steps[0], first.steps[-1]) == (0, 30)
    assert (len(first.targets), second.targets) == (5, ())
    assert len(result.rows()) == sum(
        len(each.steps) for point in result.points for each in point.runs
    )


def test_curves_grow_while_a_point_is_computed(events):
    growing = [
        e.point for e in events if isinstance(e, PointProgress) and isinstance(e.point, EarlyPoint)
    ]
    assert growing
    lengths = [
        sum(len(each.steps) for each in point.runs) for point in growing if point.input_dim == 8
    ]
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]
    finished = next(
        e.point for e in events if isinstance(e, PointFinished) and isinstance(e.point, EarlyPoint)
    )
    last = [point for point in growing if point.input_dim == 8][-1]
    assert last.runs == finished.runs


def test_a_rate_beyond_stability_is_an_outcome_and_no_error():
    spec = with_settings(
        SMALL,
        {"values": [8], "num_seeds": 1, "training.learning_rate": 1000.0, "kernel_samples": 0},
    )
    result = result_of(spec)
    assert [each.outcome for each in result.points[0].runs] == ["diverged"]
    assert "! diverged" in run_summary(spec, result.points)


@pytest.mark.slow
def test_images_and_convolutions_are_trained_on_minibatches():
    (point,) = result_of(IMAGES).points
    (each,) = point.runs
    assert (point.input_dim, point.span_dimension, each.outcome) == (192, 191, "completed")
    # A linear function of the inputs stays in their span, so its loss outside is that of the
    # targets.
    assert len({round(loss, 5) for loss in each.linear.complement_loss}) == 1
    assert each.network.complement_loss[-1] != each.network.complement_loss[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"network.kind": "convnet-1d", "dataset.name": "rademacher", "infinite_width": True},
        {"training.rate_hidden": 0.0, "network.start": "subtracted"},
    ],
    ids=["convnet-1d", "output layer"],
)
def test_kernels_are_compared_without_training(changes):
    spec = with_settings(
        SMALL, {"training.max_steps": 0, "num_seeds": 1, "dataset.target": "linear", **changes}
    )
    result = result_of(spec)
    for point in result.points:
        assert point.runs == ()
        (each,) = point.kernels
        assert 0 < each.difference < each.kernel
        assert each.difference <= each.frobenius_difference * (1 + 1e-6)
    assert len(result.rows()) == 2


def test_first_step_moves_by_the_kernel():
    rates = {"training.rate_hidden": 1.0, "training.rate_output": 0.25}
    changes = {"values": [8], "num_seeds": 1, "kernel_samples": 200, **rates}
    few_steps = {"training.learning_rate": 1e-2, "training.max_steps": 2}
    spec = with_settings(SMALL, changes | few_steps)
    result = result_of(spec)
    (each,) = result.points[0].runs
    data = compute.load(spec)[8]
    params, net = _drawn(spec)
    kernel = early_time.weighted_kernel(net, params, data.x, 1.0, 0.25)
    constants = early_time.activation_constants("softplus")
    linear = early_time.two_layer_features(constants, 8, 1.0, 1.0, 0.25).kernel(data.x)
    y = data.y[:, 0].astype(np.float64)
    # One step of gradient descent: Δu = (η/n) K y and ‖Δθ‖² = (η/n)² yᵀ K y.
    step = 1e-2 / len(y)
    distance = np.linalg.norm(step * (kernel - linear) @ y) / math.sqrt(len(y))
    path = each.path
    assert path.movement[:2] == pytest.approx((0.0, step * math.sqrt(y @ kernel @ y)), rel=1e-3)
    assert path.distance[:2] == pytest.approx((0.0, distance), rel=2e-2)
    assert path.kernel_error == pytest.approx(np.linalg.norm(kernel - linear, 2), rel=1e-4)
    assert each.distance_bounds[1] == pytest.approx(
        step * path.kernel_error * math.sqrt(np.mean(y**2)), rel=1e-6
    )
    assert 0 < each.distance_share <= 1
    assert 0 < each.movement_share <= 1


def _drawn(spec):
    net = compute._network(spec, "softplus", 32, 8)
    return net.init(initial_key(0, 32, 8), (8,)), net


def made_run(network, linear):
    def curve(losses):
        return ModelCurve(
            train_loss=losses, test_loss=losses, span_loss=losses, complement_loss=losses
        )

    flat = tuple(0.1 for _ in network)
    ends = {
        "activation": "erf",
        "seed": 0,
        "learning_rate": 0.5,
        "outcome": "completed",
        "target_power": 2.0,
    }
    return EarlyRun(
        **ends,
        steps=tuple(range(len(network))),
        network=curve(network),
        linear=curve(linear),
        naive=curve(linear),
        distance=(0.0, 0.2, *flat[2:-1], 5.0),
        naive_distance=flat,
        linear_power=(0.0, *flat[1:]),
        optimal_train_loss=0.4,
        optimal_test_loss=0.4,
    )


def test_departure_is_where_the_network_is_five_percent_better():
    each = made_run(network=(1.0, 0.82, 0.55, 0.44, 0.3), linear=(1.0, 0.8, 0.5, 0.45, 0.45))
    assert each.departure_step == 4
    assert each.loss_gap == pytest.approx(0.1)
    assert each.share_together == pytest.approx(0.5 / 0.6)  # the network is 10 % worse there
    assert each.steps[each.linear_phase] == 2  # 80 % of the way from 1 to 0.4 is 0.52
    assert each.discrepancy == pytest.approx(0.1)  # 0.2 / 2, not the 5.0 after the linear phase
    assert math.isnan(each.relative_error[0])
    assert made_run(network=(1.0, 0.9, 0.8), linear=(1.0, 0.8, 0.8)).departure_step is None


@pytest.mark.parametrize(
    ("kind", "data", "start"),
    [
        ("fully-connected", "gaussian", "symmetric"),
        ("convnet", "cifar2", "subtracted"),
        ("convnet-1d", "gaussian", "symmetric"),
    ],
)
def test_layers_are_counted_on_the_network_that_is_computed(kind, data, start):
    deeper = {} if kind == "convnet-1d" else {"network.depth": 2}
    changes = {
        "network.kind": kind,
        "network.start": start,
        "dataset.name": data,
        "values": [8],
        **deeper,
    }
    spec = with_settings(EarlyTimeSpec(), changes)
    (key,) = spec.point_keys()
    d = spec.dim_at(key)
    params = jax.eval_shape(
        lambda random: compute._network(spec, "erf", 8, d).init(random, spec.seen_shape(d)),
        jax.random.key(0),
    )
    copies = 2 if spec.network.is_doubled else 1
    counted = sum(layer.num_params for layer in early_time_spec._layers(spec, key))
    assert copies * counted == sum(leaf.size for leaf in jax.tree.leaves(params))
