"""Analyze an Equinox model: its tangent kernel, and how much training changes it.

    PYTHONPATH=. python examples/own_model_equinox.py

With Equinox's default initialization the kernel grows with the width, so the step size is
computed from the kernel. A model is a callable ``apply(params, x) -> (n, C)`` and a tree
of parameter arrays.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

import ntk_core


def main(width: int = 256, num_steps: int = 200) -> float:
    """Train an MLP on y = sin(3 x₁) and return its kernel change ΔK."""
    model_key, data_key = jax.random.split(jax.random.key(0))
    model = eqx.nn.MLP(
        in_size=2, out_size=1, width_size=width, depth=2, activation=jnp.tanh, key=model_key
    )
    params, structure = eqx.partition(model, eqx.is_inexact_array)

    def apply(params: eqx.nn.MLP, x: jax.Array) -> jax.Array:
        return jax.vmap(eqx.combine(params, structure))(x)

    x = jax.random.normal(data_key, (20, 2))
    y = jnp.sin(3 * x[:, :1])

    before = ntk_core.empirical_ntk(apply, params, x)  # (20, 20, 1, 1)
    learning_rate = len(x) / jnp.linalg.eigvalsh(before[..., 0, 0])[-1]

    @jax.jit
    def step(params: eqx.nn.MLP) -> eqx.nn.MLP:
        gradient = jax.grad(lambda params: 0.5 * jnp.mean((apply(params, x) - y) ** 2))(params)
        return jax.tree.map(lambda w, g: w - learning_rate * g, params, gradient)

    for _ in range(num_steps):
        params = step(params)
    change = ntk_core.kernel_change(ntk_core.empirical_ntk(apply, params, x), before).item()
    print(f"width {width}: kernel change {change:.3f} after {num_steps} steps")
    return change


if __name__ == "__main__":
    for width in (64, 256, 1024):
        main(width)
