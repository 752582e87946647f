"""Kernel change against width: claims of Liu, Zhu & Belkin 2020, Fig. 1, and reporting of runs."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.plain_sweep import sweep_widths
from linearity_lab.experiments.kernel_change import compute as _kernel_change
from linearity_lab.experiments.kernel_change.point import kernel_change_summary
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.networks.build import build_network
from linearity_lab.runs import load_data, run, run_summary, spec_digest
from linearity_lab.runs.compiled_code import num_maps, release_compiled
from linearity_lab.runs.events import PointFinished
from linearity_lab.settings.grammar import with_settings
from ntk_core import ball_sup
from ntk_core.dynamics import Loss, kernel_velocity
from ntk_core.errors import TooLarge
from ntk_core.kernels import empirical_ntk, kernel_change
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress
from tests.running import Kept, result_of

SMALL = with_settings(
    KernelChangeSpec(),
    {"widths": [10, 20], "num_seeds": 2, "training.max_steps": 40, "training.num_records": 5},
)


def test_order_of_outputs_changes_no_number():
    one = {"widths": [10], "num_seeds": 1}
    found = []
    for outputs in (["linear", "softmax"], ["softmax", "linear"]):
        (point,) = result_of(with_settings(SMALL, {**one, "outputs": outputs})).points
        found.append({run.output: run.sup_change for run in point.runs})
    assert found[0] == found[1]
    assert found[0]["linear"] != found[0]["softmax"]


@pytest.mark.slow
def test_the_kernel_of_a_converged_softmax_vanishes():
    """ΔK near 1 does not suffice, since a kernel that doubles has it, too."""
    spec = with_settings(
        KernelChangeSpec(),
        {"widths": [1000], "num_seeds": 1, "outputs": ["linear", "softmax"], "keep_kernels": True},
    )
    (point,) = result_of(spec).points
    ratios = {
        each.output: each.final_eigenvalues[0] / each.initial_eigenvalues[0]
        for each in point.snapshots
    }
    assert [each.outcome for each in point.runs] == ["converged", "converged"]
    assert ratios["softmax"] < 0.01
    assert ratios["linear"] > 0.5


@pytest.mark.slow
def test_numbers_equal_those_of_a_plain_script():
    """The same measurement in plain JAX.

    Jacobian contraction, separate networks, losses and loop.
    """
    spec = with_settings(KernelChangeSpec(), {"widths": [100], "num_seeds": 1})
    data, training = load_data(spec), spec.training
    found = sweep_widths(
        data.x,
        data.y,
        [100],
        spec.num_seeds,
        training.loss_threshold,
        training.max_steps,
        training.num_records,
    )
    (point,) = result_of(spec).points
    for each in point.runs:
        change, steps = found[100, each.output, each.seed]
        # Two float32 trajectories of hundreds of steps may cross the threshold at
        # neighboring steps.
        assert each.sup_change == pytest.approx(change, rel=2e-2)
        assert abs(each.num_steps - steps) <= 0.01 * steps + 1
        assert (each.steps[0], each.change[0]) == (0, 0)
        assert (each.outcome == "converged") == (each.loss[-1] <= training.loss_threshold)
    # One set of parameters.
    for linear, softmax in zip(point.of("linear"), point.of("softmax"), strict=True):
        assert (linear.loss, linear.steps, linear.learning_rate) == (
            softmax.loss,
            softmax.steps,
            softmax.learning_rate,
        )
        assert linear.change != softmax.change


@pytest.mark.slow
def test_seeds_together_give_the_same_runs_as_one_after_another():
    data = load_data(SMALL)
    alone, together = (
        _kernel_change.compute(SMALL, data, "width=20", Progress(), seeds_together=k)
        for k in (1, 2)
    )
    for a, b in zip(alone.runs, together.runs, strict=True):
        assert (a.output, a.seed, a.steps, a.outcome) == (b.output, b.seed, b.steps, b.outcome)
        # float32 products in another order.
        np.testing.assert_allclose(a.change, b.change, rtol=2e-3, atol=1e-6)
        np.testing.assert_allclose(a.loss, b.loss, rtol=1e-4)


@pytest.mark.slow
def test_a_stopped_run_is_cancelled_and_resumes_with_its_points():
    points = Kept()
    calls = iter(range(1000))
    events = list(run(SMALL, points=points, should_stop=lambda: bool(points) and next(calls) > 2))
    assert events[-1].status == "cancelled"
    assert list(points) == ["width=10"]
    assert [point.width for point in events[-1].result.points] == [10]
    resumed = list(run(SMALL, points=points))
    finished = [event for event in resumed if isinstance(event, PointFinished)]
    assert [event.resumed for event in finished] == [True, False]
    assert resumed[-1].status == "completed"
    uninterrupted = result_of(SMALL)
    assert [p.runs for p in resumed[-1].result.points] == [p.runs for p in uninterrupted.points]


def test_divergence_and_exhausted_budgets_are_outcomes():
    lively = {
        "training.learning_rate": 1e5,
        "architecture.activation": "tanh",
        "outputs": ["linear", "quadratic"],
    }
    point = result_of(with_settings(SMALL, {**lively, "num_seeds": 1, "widths": [20]})).points[0]
    assert {each.outcome for each in point.runs} == {"diverged"}
    assert not any(each.loss[-1] <= each.loss[0] for each in point.of("linear"))
    assert all(
        math.isfinite(each.loss[0]) and not math.isfinite(each.loss[-1])
        for each in point.of("quadratic")
    )
    (point,) = result_of(with_settings(SMALL, {"training.max_steps": 3, "widths": [20]})).points
    assert {(each.outcome, each.num_steps) for each in point.runs} == {("over-budget", 3)}


def test_dead_networks_of_width_one_are_reported_dead():
    spec = with_settings(SMALL, {"widths": [1], "num_seeds": 8, "architecture.activation": "relu"})
    result = result_of(spec)
    runs = result.points[0].runs
    dead, trained = (
        [each for each in runs if (each.outcome == "dead") == is_dead] for is_dead in (True, False)
    )
    assert trained
    assert {(each.steps, each.learning_rate, each.sup_change) for each in dead} == {
        ((0,), math.inf, 0)
    }
    assert all(each.num_steps > 0 and math.isfinite(each.learning_rate) for each in trained)
    assert {row["learning_rate"] for row in result.rows() if row["outcome"] == "dead"} == {None}
    assert f"! {sum(each.output == 'linear' for each in dead)} dead" in run_summary(
        spec, result.points
    )


def test_samples_that_cannot_fit_at_any_width_are_named(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_MEMORY_GIB", "0.25")
    with pytest.raises(TooLarge) as caught:
        run(with_settings(SMALL, {"dataset.num_samples": 5000}))
    assert caught.value.field == "dataset.num_samples"
    assert 1 < caught.value.nearest < 5000


@pytest.mark.parametrize("start", ["symmetric", "subtracted"])
def test_outputs_starting_at_zero_learn_with_the_same_kernel(start):
    random, zero = (
        result_of(
            with_settings(
                SMALL, {"architecture.initial_output": each, "widths": [50], "outputs": ["linear"]}
            )
        )
        for each in ("random", start)
    )
    before, after = random.points[0].runs[0], zero.points[0].runs[0]
    # Softmax of zeros: the loss begins at log C. The kernel, and with it the automatic rate, is
    # that of the network.
    assert after.loss[0] == pytest.approx(math.log(3), rel=1e-5)
    assert before.loss[0] != pytest.approx(math.log(3), rel=1e-3)
    assert after.learning_rate == pytest.approx(before.learning_rate, rel=1e-4)
    assert after.loss[-1] < 0.5 * after.loss[0]


@pytest.mark.slow
def test_a_swept_bottleneck_changes_only_the_narrow_layer():
    settings = {
        "architecture.kind": "bottleneck",
        "architecture.depth": 3,
        "swept": "bottleneck_width",
        "hidden_width": 20,
        "widths": [2, 4],
        "outputs": ["linear"],
        "num_seeds": 1,
        "training.max_steps": 1,
    }
    spec = with_settings(SMALL, settings)
    narrow, wide = result_of(spec).points
    # Two more neurons: 20 weights in, 20 weights out and a bias for each.
    assert wide.num_params - narrow.num_params == 2 * (20 + 20 + 1)


def test_kernels_are_kept_for_one_seed_and_agree_with_the_run():
    spec = with_settings(SMALL, {"widths": [20], "keep_kernels": True, "infinite_width": True})
    point = result_of(spec).points[0]
    assert [(kept.output, kept.seed) for kept in point.snapshots] == [
        (output, spec.seed) for output in spec.outputs
    ]
    for kept in point.snapshots:
        num_outputs = len(kept.initial_eigenvalues) // len(kept.initial)
        # All in single precision.
        assert np.trace(kept.initial) * num_outputs == pytest.approx(
            sum(kept.initial_eigenvalues), rel=1e-6
        )
        assert np.trace(kept.final) * num_outputs == pytest.approx(
            sum(kept.final_eigenvalues), rel=1e-6
        )
        assert list(kept.final_eigenvalues) == sorted(kept.final_eigenvalues, reverse=True)
        assert (kept.infinite is None) == (kept.output != "linear")


def test_compiled_programs_are_released_at_a_limit():
    traced = []

    @jax.jit
    def double(x):
        traced.append(x)
        return 2 * x

    double(1.0)
    assert not release_compiled(most=10**9, most_bytes=math.inf)
    double(1.0)
    assert len(traced) == 1
    assert release_compiled(most=num_maps() - 1)
    assert double(1.0) == 2.0
    assert len(traced) == 2
    assert release_compiled(most=10**9, most_bytes=-math.inf)
    assert double(1.0) == 2.0
    assert len(traced) == 3


@pytest.mark.slow
def test_numbers_are_learned_by_square_loss_with_every_output(x64):
    """Against plain steps with automatic gradients in float64, from the same weights.

    Kernels differ by rounding.
    """
    settings = {
        "dataset.name": "sine",
        "outputs": ("linear", "tanh"),
        "widths": [6],
        "num_seeds": 1,
    }
    more = {
        "training.learning_rate": 0.05,
        "training.max_steps": 9,
        "training.loss_threshold": 1e-9,
    }
    spec = with_settings(KernelChangeSpec(), {**settings, **more, "keep_kernels": True})
    data = load_data(spec)
    (point,) = result_of(spec).points
    for output in spec.outputs:
        net = build_network(spec.architecture, 6, 1, output)
        start = w = net.init(initial_key(0, 6), data.input_shape)
        gradient = jax.jit(
            jax.grad(lambda w, net=net: 0.5 * jnp.mean((net.apply(w, data.x) - data.y) ** 2))
        )
        for _ in range(9):
            w = jax.tree.map(lambda weight, part: weight - 0.05 * part, w, gradient(w))
        before, after = (empirical_ntk(net, at, data.x) for at in (start, w))
        (run_of,) = point.of(output)
        assert run_of.change[-1] == pytest.approx(float(kernel_change(after, before)), rel=1e-3)
    assert len(point.snapshots[0].initial) == len(data.x)


FEW = {"dataset.num_samples": 6, "training.max_steps": 3, "training.num_records": 2}
TRAINED = with_settings(
    KernelChangeSpec(), {"widths": [8], "num_seeds": 2, "architecture.activation": "tanh", **FEW}
)
VELOCITY = with_settings(TRAINED, {"measured": "velocity"})


@pytest.mark.slow
def test_velocities_without_training_equal_those_with_it():
    result, data = result_of(VELOCITY), load_data(VELOCITY)
    groups = {
        "linear": ("linear", "softmax"),
        "softmax": ("linear", "softmax"),
        "swish": ("swish", "swish"),
    }
    for point in result.points:
        assert point.runs == ()
        assert [(each.output, each.seed) for each in point.at_start] == [
            (output, seed) for output in VELOCITY.outputs for seed in (0, 1)
        ]
        for each in point.at_start:
            drawn, loss = groups[each.output]
            net = build_network(VELOCITY.architecture, point.width, data.num_outputs, drawn)
            params = net.init(initial_key(each.seed, point.width), data.input_shape)
            expected = kernel_velocity(
                net.with_output(each.output), params, data.x, data.y, Loss(loss)
            )
            assert each.velocity == pytest.approx(float(expected), rel=1e-4)
            assert each.ball_change is None
    assert {row["kernel_velocity"] for row in result.rows()} == {
        each.velocity for point in result.points for each in point.at_start
    }
    assert "kernel velocity" in kernel_change_summary(VELOCITY, result.points)


@pytest.mark.slow
def test_velocity_and_ball_do_not_change_training():
    both = with_settings(
        TRAINED, {"widths": [8], "outputs": ["linear"], "measured": "both", "ball_radius": 0.5}
    )
    assert spec_digest(both) != spec_digest(with_settings(both, {"ball_radius": 0}))
    result, data = result_of(both), load_data(both)
    (point,) = result.points
    (plain,) = result_of(with_settings(both, {"measured": "training", "ball_radius": 0})).points
    assert (point.runs, plain.at_start) == (plain.runs, ())
    net = build_network(both.architecture, 8, data.num_outputs, "linear")
    params = net.init(initial_key(0, 8), data.input_shape)
    found = ball_sup(net, params, jnp.asarray(data.x), 0.5, "kernel", num_starts=3, num_steps=8)
    assert point.at_start[0].ball_change == pytest.approx(found.value, rel=1e-3)
    assert {"kernel_velocity", "ball_kernel_change", "sup_kernel_change"} <= set(result.rows()[0])
