"""Masked layers against dense ones of the same shape, and the kernel of a DenseNet with half of its edges dropped."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.measure import Settings, alternate, own, ratio
from ntk_core import DenseNet, empirical_ntk
from ntk_core.networks.architectures import Dense, Layer, MaskedDense

NUM_SAMPLES, WIDTH, INPUT_DIM, DEPTH, DROPPED = 60, 2000, 192, 3, 0.5
LIMIT = 1.5


def forward(layer: Layer, x: jax.Array) -> Any:
    """The compiled layer on its own draw."""
    params = layer.init(jax.random.key(0), x.shape[1:])
    apply = jax.jit(layer.apply)
    return lambda: apply(params, x)


def training_step(layer: Layer, x: jax.Array) -> Any:
    """One step of gradient descent on ½ mean ‖z‖², the weights handed over as in training."""
    params = layer.init(jax.random.key(0), x.shape[1:])
    fixed = {name: value for name, value in params.items() if name != "weight"}

    def step(weight: jax.Array, fixed: dict[str, jax.Array]) -> jax.Array:
        def loss(weight: jax.Array) -> jax.Array:
            return 0.5 * jnp.mean(layer.apply({**fixed, "weight": weight}, x) ** 2)

        return weight - 1e-3 * jax.grad(loss)(weight)

    compiled = jax.jit(step, donate_argnums=0)
    state = [params["weight"]]

    def work() -> jax.Array:
        state[0] = compiled(state[0], fixed)
        return state[0]

    return work


def measure(settings: Settings) -> dict[str, Any]:
    """Forward pass and training step of both layers in turn, then the kernel."""
    width = 20 if settings.quick else WIDTH
    x = jax.random.normal(jax.random.key(1), (NUM_SAMPLES, width))
    dense, masked = Dense(width), MaskedDense(width, DROPPED)
    rows: dict[str, Any] = {}
    for name, work in (("forward", forward), ("training_step", training_step)):
        times = alternate(
            {"dense": own(work(dense, x)), "masked": own(work(masked, x))}, repeats=3 if settings.quick else 31
        )
        rows[name] = {"times": times, "times_dense": ratio(times, "masked", "dense")}
    depth = 1 if settings.quick else DEPTH
    net = DenseNet(width=width, depth=depth, drop_probability=DROPPED, use_bias=False)
    params = net.init(jax.random.key(0), (INPUT_DIM,))
    inputs = jax.random.normal(jax.random.key(2), (NUM_SAMPLES, INPUT_DIM))
    kernel = alternate({"kernel": own(lambda: empirical_ntk(net, params, inputs))}, repeats=5)["kernel"]
    data = {"num_samples": NUM_SAMPLES, "width": width, "depth": depth, "drop_probability": DROPPED, "limit": LIMIT}
    return {**data, "layer": rows, "kernel": kernel}
