"""The dial from lazy to rich: points, feature change against explicit training, exponents."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.data import load_dataset
from ntk_core.experiments.lazy import LazySpec
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import FullyConnected
from ntk_core.networks.build import initial_key
from ntk_core.settings.grammar import with_settings
from tests.running import point_of

FEW = {"widths": [6], "scales": [1], "richness": [0.5], "num_seeds": 1, "starts": ["subtracted"], "outputs": ["linear"]}
NETWORK = {"architecture": {"activation": "tanh", "use_bias": False, "depth": 2}}
SHORT = {"dataset.num_samples": 5, "dataset.input_dim": 3, "training.max_steps": 30, "training.num_records": 4}
SPEC = with_settings(LazySpec(), {**FEW, **NETWORK, **SHORT})


@pytest.mark.usefixtures("x64")
def test_change_of_features_is_that_of_training_written_out():
    """Two hidden tanh layers, F = m^(−1/2) (f − f₀), gradient descent on (1/2n) Σ ‖F − y‖² by hand in NumPy."""
    width, richness = 6, 0.5
    (found,) = point_of(SPEC, "width=6,scale=1.0,richness=0.5").runs
    data = load_dataset(SPEC.dataset.name, **SPEC.data_options())
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
    ended = {name: {"weight": jnp.asarray(each.reshape(drawn[name]["weight"].shape))} for name, each in weights.items()}
    kernels = [np.asarray(empirical_ntk(net, params, jnp.asarray(x))) for params in (drawn, ended)]
    change = np.linalg.norm(kernels[1] - kernels[0]) / np.linalg.norm(kernels[0])
    assert found.last_change == pytest.approx(change, rel=1e-9)
