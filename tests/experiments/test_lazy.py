"""Two routes to linearity: scale and width (Chizat, Oyallon & Bach 2019; Liu, Zhu & Belkin 2020, §1.1)."""

from __future__ import annotations

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.data import load_dataset
from ntk_core.experiments.lazy import LazyPoint, LazyResult, LazySpec, law, lazy_summary
from ntk_core.experiments.lazy.compute import INPUTS_OF_A_CLASS, laziness
from ntk_core.networks.architectures import FullyConnected, ScaledNetwork
from ntk_core.runs import run, run_summary
from ntk_core.settings.grammar import with_settings

SPEC = with_settings(
    LazySpec(),
    {
        "widths": [64, 512],
        "scales": [32],
        "num_seeds": 2,
        "starts": ["random", "subtracted"],
        "outputs": ["linear"],
        "dataset.num_samples": 6,
        "training.num_records": 6,
    },
)


@pytest.fixture(scope="module")
def points() -> tuple[LazyPoint, ...]:
    *_, ended = run(SPEC)
    assert isinstance(ended.result, LazyResult)
    return ended.result.points


@pytest.mark.slow
def test_scale_makes_training_lazy_by_moving_weights_less(points):
    for of in (lambda run: run.kappa, lambda run: run.distance, lambda run: run.largest_distance):
        found = law(points, "scale", "linear", "subtracted", of)
        # Exactly 1/α in the limit, and close to it at 32.
        assert found.exponent == pytest.approx(-1, abs=max(0.1, found.interval))
    change = law(points, "scale", "linear", "subtracted", lambda run: run.sup_change)
    assert all(each.slope < -0.8 for each in change.local)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kappa", "distance", "sup_change"])
def test_scale_leaves_the_order_of_what_does_not_start_at_zero(points, name):
    """The scale reduces |f(w₀) − y| only to |f(w₀)|; with f(w₀) = 0 it divides all values by 32."""
    unscaled, scaled = points[0], points[1]
    assert (unscaled.scale, scaled.scale) == (1, 32)
    for start, lowest, highest in (("random", 0.15, 3.0), ("subtracted", 0.8 / 32, 1.5 / 32)):
        for before, after in zip(unscaled.of("linear", start), scaled.of("linear", start), strict=True):
            assert lowest < getattr(after, name) / getattr(before, name) < highest


@pytest.mark.slow
@pytest.mark.parametrize("start", ["random", "subtracted"])
def test_width_makes_linear_while_the_distance_stays(points, start):
    distance = law(points, "width", "linear", start, lambda run: run.distance)
    assert abs(distance.exponent) < 0.15
    largest = law(points, "width", "linear", start, lambda run: run.largest_distance)
    assert -0.7 < largest.exponent < -0.3
    for of in (lambda run: run.kappa, lambda run: run.sup_change):
        found = law(points, "width", "linear", start, of)
        assert found.exponent < -0.25


def test_kernel_of_f_is_constant_while_that_of_swish_changes():
    spec = with_settings(SPEC, {"widths": [512], "scales": [1], "num_seeds": 1, "outputs": ["swish"]})
    *_, ended = run(spec)
    for found in ended.result.points[0].runs:
        assert found.outcome == "converged"
        assert found.pre_output_change < 0.1
        assert found.sup_change > 0.3
        of_one, of_all = found.least_distance
        # Not sharp here, because the kernel of swish is larger along the path.
        assert 0.3 * found.distance < of_one < of_all < found.distance


def kappa_of(output, flat, x, target):
    """|f − y| ‖H‖ / ‖∇f‖² of one input, by the full Hessian."""

    @jax.jit
    def derivatives(flat, x):
        return output(flat, x), jax.grad(output)(flat, x), jax.hessian(output)(flat, x)

    value, gradient, hessian = map(np.asarray, derivatives(flat, jnp.asarray(x, float)))
    return abs(float(value) - target) * np.abs(np.linalg.eigvalsh(hessian)).max() / (gradient @ gradient)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("output", [pytest.param("linear", marks=pytest.mark.slow), "swish"])
def test_kappa_is_that_of_full_hessians_and_gradients(output):
    data = load_dataset("gaussian-mixture", num_samples=4, num_classes=2, input_dim=3, noise=0.5, num_test=0, seed=0)
    net = ScaledNetwork(FullyConnected(width=4, num_outputs=2, activation="tanh", output=output, use_bias=True), 3.0)
    params = net.init(jax.random.key(0), (3,))
    flat, restore = jax.flatten_util.ravel_pytree(params)
    kappas = [
        kappa_of(lambda w, x, label=label: net.apply(restore(w), x[None])[0, label], flat, x, 1)
        for label in range(2)
        for x in data.x[data.labels == label][:INPUTS_OF_A_CLASS]
    ]
    found = laziness(net, params, data)
    assert found["hessian_converged"]
    # Norms stop at a residual of √eps; the error is its square.
    assert found["kappa"] == pytest.approx(np.mean(kappas), rel=1e-7)


@pytest.mark.usefixtures("x64")
def test_kappa_equals_full_hessians_and_gradients():
    data = load_dataset("sine", num_samples=5, num_test=0, seed=0)
    net = FullyConnected(width=4, num_outputs=1, activation="tanh", use_bias=True)
    params = net.init(jax.random.key(0), data.input_shape)
    flat, restore = jax.flatten_util.ravel_pytree(params)
    kappas = [
        kappa_of(lambda w, x: net.apply(restore(w), x[None])[0, 0], flat, x, float(y[0]))
        for x, y in list(zip(data.x, data.y, strict=True))[:INPUTS_OF_A_CLASS]
    ]
    # as above
    assert laziness(net, params, data)["kappa"] == pytest.approx(np.mean(kappas), rel=1e-7)


@pytest.mark.slow
def test_summary_has_the_exponents_of_both_sweeps(points):
    words = run_summary(SPEC, points)
    assert "linear output, subtracted start, κ ∝ α^(−1.0" in words
    assert "∝ m^(" in words


def test_summary_reports_almost_everywhere_relu():
    spec = with_settings(LazySpec(), {"architecture.activation": "relu", "outputs": ["linear", "leaky_relu"]})
    assert spec.almost_everywhere.startswith("With ReLU and leaky ReLU output, ‖H‖ is that of the almost-everywhere")
    assert spec.almost_everywhere in lazy_summary(spec, ())
    assert LazySpec().almost_everywhere == ""
