"""Two routes to linearity, scale and width (Chizat, Oyallon & Bach 2019),
and the dial from lazy to rich.
"""

from __future__ import annotations

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from linearity_lab.data import load_dataset
from linearity_lab.experiments.lazy.compute import INPUTS_OF_A_CLASS, laziness
from linearity_lab.experiments.lazy.point import LazySpec
from linearity_lab.runs import run_summary
from linearity_lab.settings.grammar import with_settings
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected, ScaledNetwork
from ntk_core.networks.keys import initial_key
from tests.running import point_of, result_of

# Each test runs with its first case in the fast tier.
pytestmark = pytest.mark.first_cases(1)

FEW = {
    "widths": [64],
    "scales": [1, 32],
    "num_seeds": 2,
    "starts": ["random", "subtracted"],
    "outputs": ["linear"],
}
SPEC = with_settings(LazySpec(), {**FEW, "dataset.num_samples": 6, "training.num_records": 6})


@pytest.mark.long
def test_scale_makes_lazy_only_what_starts_at_zero():
    """The scale reduces |f(w₀) − y| only to |f(w₀)|.

    With f(w₀) = 0 it divides all values by about 32.
    """
    result = result_of(SPEC)
    unscaled, scaled = result.points
    assert (unscaled.scale, scaled.scale) == (1, 32)
    for start, lowest, highest in (("random", 0.15, 3.0), ("subtracted", 0.8 / 32, 1.5 / 32)):
        for before, after in zip(
            unscaled.of("linear", start), scaled.of("linear", start), strict=True
        ):
            for name in ("kappa", "distance", "sup_change"):
                assert lowest < getattr(after, name) / getattr(before, name) < highest
    assert "linear output, subtracted start, κ ∝ α^(−1.0" in run_summary(result.spec, result.points)


def test_scaled_labels_lead_to_the_same_weights():
    """A wrong rate, scale or number of steps would leave a difference of order 1."""
    few = {"num_seeds": 1, "outputs": ["linear", "swish"], "starts": ["random"], "scales": [1, 3]}
    result = result_of(with_settings(SPEC, {**few, "training.max_steps": 50}))
    unscaled, scaled = result.points
    assert [run.label_difference for run in unscaled.runs] == [None, None]
    (linear,) = scaled.of("linear", "random")
    (swish,) = scaled.of("swish", "random")
    assert linear.distance > 0
    assert 0 < linear.label_difference < 1e-3  # float32
    assert swish.label_difference is None  # φ(α f) is no scale of labels


def kappa_of(net, params, x, target, index):
    """|f − y| ‖H‖ / ‖∇f‖² of one input, by the full Hessian."""
    flat, restore = jax.flatten_util.ravel_pytree(params)

    @jax.jit
    def derivatives(flat, x):
        def output(w):
            return net.apply(restore(w), x[None])[0, index]

        return output(flat), jax.grad(output)(flat), jax.hessian(output)(flat)

    value, gradient, hessian = map(np.asarray, derivatives(flat, jnp.asarray(x, float)))
    return (
        abs(float(value) - target)
        * np.abs(np.linalg.eigvalsh(hessian)).max()
        / (gradient @ gradient)
    )


CLASSES = {
    "name": "gaussian-mixture",
    "num_samples": 4,
    "num_classes": 2,
    "input_dim": 3,
    "noise": 0.5,
}
CURVE = {"name": "sine", "num_samples": 5}


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("options", "output"), [(CLASSES, "swish"), (CURVE, "linear")])
def test_kappa_is_that_of_full_hessians_and_gradients(options, output):
    data = load_dataset(**options, num_test=0, seed=0)
    plain = FullyConnected(
        width=4, num_outputs=data.num_outputs, activation="tanh", output=output, use_bias=True
    )
    net = ScaledNetwork(plain, 3.0)
    params = net.init(jax.random.key(0), data.input_shape)
    rows = (
        [data.labels == label for label in range(data.num_outputs)]
        if data.num_outputs > 1
        else [slice(None)]
    )
    targets = [
        (x, float(y[label]), label)
        for label, of_class in enumerate(rows)
        for x, y in list(zip(data.x[of_class], data.y[of_class], strict=True))[:INPUTS_OF_A_CLASS]
    ]
    found = laziness(net, params, data)
    assert found["hessian_converged"]
    # Norms stop at a residual of √eps; the error is its square.
    kappas = [kappa_of(net, params, x, y, label) for x, y, label in targets]
    assert found["kappa"] == pytest.approx(np.mean(kappas), rel=1e-7)


DIAL = {
    "widths": [6],
    "scales": [1],
    "richness": [0.5],
    "num_seeds": 1,
    "starts": ["subtracted"],
    "outputs": ["linear"],
}
NETWORK = {"architecture": {"activation": "tanh", "use_bias": False, "depth": 2}}
SHORT = {
    "dataset.num_samples": 5,
    "dataset.input_dim": 3,
    "training.max_steps": 30,
    "training.num_records": 4,
}
RICH = with_settings(LazySpec(), {**DIAL, **NETWORK, **SHORT})


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_change_of_features_is_that_of_training_written_out():
    """Two hidden tanh layers, F = m^(−1/2) (f − f₀),
    gradient descent on (1/2n) Σ ‖F − y‖² by hand in NumPy.
    """
    width, richness = 6, 0.5
    (found,) = point_of(RICH, "width=6,scale=1.0,richness=0.5").runs
    data = load_dataset(RICH.dataset.name, **RICH.data_options())
    x, y = np.asarray(data.x, float), np.asarray(data.y, float)
    net = FullyConnected(width=width, depth=2, num_outputs=2, activation="tanh", use_bias=False)
    drawn = net.init(initial_key(0, width), x.shape[1:])
    first, second, last = (
        np.asarray(drawn[name]["weight"], float).reshape(rows, -1)
        for name, rows in (("hidden1", x.shape[1]), ("hidden2", width), ("output", width))
    )
    factor = width**-richness

    def forward():
        h1 = x @ first / np.sqrt(x.shape[1])
        h2 = np.tanh(h1) @ second / np.sqrt(width)
        return h1, h2, np.tanh(h2) @ last / np.sqrt(width)

    begun1, begun2, start = forward()
    for _ in range(found.num_steps):
        h1, h2, outputs = forward()
        error = factor * (factor * (outputs - start) - y) / len(x)
        back2 = error @ last.T / np.sqrt(width) * (1 - np.tanh(h2) ** 2)
        back1 = back2 @ second.T / np.sqrt(width) * (1 - np.tanh(h1) ** 2)
        last = last - found.learning_rate * np.tanh(h2).T @ error / np.sqrt(width)
        second = second - found.learning_rate * np.tanh(h1).T @ back2 / np.sqrt(width)
        first = first - found.learning_rate * x.T @ back1 / np.sqrt(x.shape[1])
    h1, h2, _ = forward()
    naive = (np.abs(h1 - begun1).mean(), np.abs(h2 - begun2).mean())
    assert min(naive) > 0.05
    # Sums in a different order over some dozen steps.
    assert found.hidden_change == pytest.approx(naive, rel=1e-9)
    weights = {"hidden1": first, "hidden2": second, "output": last}
    ended = {
        name: {"weight": jnp.asarray(each.reshape(drawn[name]["weight"].shape))}
        for name, each in weights.items()
    }
    kernels = [np.asarray(empirical_ntk(net, params, jnp.asarray(x))) for params in (drawn, ended)]
    change = np.linalg.norm(kernels[1] - kernels[0]) / np.linalg.norm(kernels[0])
    assert found.last_change == pytest.approx(change, rel=1e-9)
