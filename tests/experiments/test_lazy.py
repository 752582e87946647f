"""Two routes to linearity: scale and width (Chizat, Oyallon & Bach 2019; Liu, Zhu & Belkin 2020, §1.1)."""

from __future__ import annotations

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest

from ntk_core.data import load_dataset
from ntk_core.experiments.lazy import LazySpec, lazy_summary
from ntk_core.experiments.lazy.compute import INPUTS_OF_A_CLASS, laziness
from ntk_core.networks.architectures import FullyConnected, ScaledNetwork
from ntk_core.runs import run_summary
from ntk_core.settings.grammar import with_settings
from tests.running import result_of

FEW = {"widths": [64], "scales": [1, 32], "num_seeds": 2, "starts": ["random", "subtracted"], "outputs": ["linear"]}
SPEC = with_settings(LazySpec(), {**FEW, "dataset.num_samples": 6, "training.num_records": 6})


@pytest.mark.slow
def test_scale_makes_lazy_only_what_starts_at_zero():
    """The scale reduces |f(w₀) − y| only to |f(w₀)|; with f(w₀) = 0 it divides all values by about 32."""
    result = result_of(SPEC)
    unscaled, scaled = result.points
    assert (unscaled.scale, scaled.scale) == (1, 32)
    for start, lowest, highest in (("random", 0.15, 3.0), ("subtracted", 0.8 / 32, 1.5 / 32)):
        for before, after in zip(unscaled.of("linear", start), scaled.of("linear", start), strict=True):
            for name in ("kappa", "distance", "sup_change"):
                assert lowest < getattr(after, name) / getattr(before, name) < highest
    assert "linear output, subtracted start, κ ∝ α^(−1.0" in run_summary(result.spec, result.points)


def kappa_of(net, params, x, target, index):
    """|f − y| ‖H‖ / ‖∇f‖² of one input, by the full Hessian."""
    flat, restore = jax.flatten_util.ravel_pytree(params)

    @jax.jit
    def derivatives(flat, x):
        def output(w):
            return net.apply(restore(w), x[None])[0, index]

        return output(flat), jax.grad(output)(flat), jax.hessian(output)(flat)

    value, gradient, hessian = map(np.asarray, derivatives(flat, jnp.asarray(x, float)))
    return abs(float(value) - target) * np.abs(np.linalg.eigvalsh(hessian)).max() / (gradient @ gradient)


CLASSES = {"name": "gaussian-mixture", "num_samples": 4, "num_classes": 2, "input_dim": 3, "noise": 0.5}
CURVE = {"name": "sine", "num_samples": 5}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("options", "output"), [(CLASSES, "swish"), (CURVE, "linear")])
def test_kappa_is_that_of_full_hessians_and_gradients(options, output):
    data = load_dataset(**options, num_test=0, seed=0)
    plain = FullyConnected(width=4, num_outputs=data.num_outputs, activation="tanh", output=output, use_bias=True)
    net = ScaledNetwork(plain, 3.0)
    params = net.init(jax.random.key(0), data.input_shape)
    rows = [data.labels == label for label in range(data.num_outputs)] if data.num_outputs > 1 else [slice(None)]
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


def test_summary_reports_almost_everywhere_relu():
    spec = with_settings(LazySpec(), {"architecture.activation": "relu", "outputs": ["linear", "leaky_relu"]})
    assert spec.almost_everywhere.startswith("With ReLU and leaky ReLU output, ‖H‖ is that of the almost-everywhere")
    assert spec.almost_everywhere in lazy_summary(spec, ())
    assert LazySpec().almost_everywhere == ""
