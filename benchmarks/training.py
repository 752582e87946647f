"""A step of training against plain ``jax.grad`` in a loop."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from benchmarks.measure import Settings, alternate, own, ratio
from ntk_core import FullyConnected
from ntk_core.dynamics import Loss, NetworkModel, Optimizer, advance, start

NUM_SAMPLES, INPUT_DIM, NUM_OUTPUTS = 60, 10, 3
RATE, STEPS = 1e-3, 100
SIZES = ((1_000, 1), (10_000, 1), (100_000, 1), (1_000, 3))
QUICK_SIZES = ((20, 1),)


def compare(width: int, depth: int) -> dict[str, Any]:
    """Times of ``STEPS`` steps of gradient descent both ways, and how far the weights then differ (float32)."""
    net = FullyConnected(width=width, depth=depth, num_outputs=NUM_OUTPUTS, activation="relu", use_bias=True)
    params = net.init(jax.random.key(0), (INPUT_DIM,))
    x = jax.random.normal(jax.random.key(1), (NUM_SAMPLES, INPUT_DIM))
    y = jax.nn.one_hot(jnp.arange(NUM_SAMPLES) % NUM_OUTPUTS, NUM_OUTPUTS)
    loss = Loss("linear")
    model, optimizer = NetworkModel(net, loss), Optimizer()
    steps = STEPS if width <= 10_000 and depth == 1 else STEPS // 5

    @jax.jit
    def plain(params: Any, x: Array, y: Array) -> Any:
        def step(_: Array, params: Any) -> Any:
            gradient = jax.grad(lambda w: loss(net.apply(w, x), y))(params)
            return jax.tree.map(lambda w, g: w - RATE * g, params, gradient)

        return jax.lax.fori_loop(0, steps, step, params)

    def ours(copy: Any) -> Any:
        trained, fixed = net.partition(copy)
        first = start(model, optimizer, trained, NUM_SAMPLES)
        return advance(model, optimizer, first, fixed, x, y, RATE, steps, 0.0).trained

    # What is handed over is used up: each call gets a copy, made before the clock starts.
    copies = [jax.tree.map(jnp.copy, params) for _ in range(12)]
    rows = alternate(
        {"ours": own(lambda: ours(copies.pop())), "plain_grad": own(lambda: plain(params, x, y))}, repeats=9
    )
    difference = max(
        float(jnp.abs(a - b).max())
        for a, b in zip(
            jax.tree.leaves(ours(copies.pop())), jax.tree.leaves(net.partition(plain(params, x, y))[0]), strict=True
        )
    )
    return {
        "width": width,
        "hidden_layers": depth,
        "steps": steps,
        "step_s": {name: row["median_s"] / steps for name, row in rows.items()},
        "times": rows,
        "times_faster": ratio(rows, "plain_grad", "ours"),
        "largest_difference": difference,
    }


def measure(settings: Settings) -> dict[str, Any]:
    """Every size in turn."""
    rows = [compare(*size) for size in (QUICK_SIZES if settings.quick else SIZES)]
    return {"num_samples": NUM_SAMPLES, "num_outputs": NUM_OUTPUTS, "against_plain_grad": rows}
