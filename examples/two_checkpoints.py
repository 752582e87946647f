"""Train one network at a stable and at a catapulting learning rate.

Also save its weights before and after.

python examples/two_checkpoints.py
linearity-lab report examples/two_checkpoints.py:network before.npz stable.npz --set width=256
linearity-lab report examples/two_checkpoints.py:network before.npz catapult.npz --set width=256
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from linearity_lab.data import load_dataset
from ntk_core import empirical_ntk
from ntk_core.kernels import as_matrix

Params = dict[str, Any]
Apply = Callable[[Params, Any], Array]
RATES = {"stable": 0.5, "catapult": 3.0}  # c = ηλ/n; the linear model diverges above 2


def network(width: int, key: Array) -> tuple[Apply, Params]:
    """Return apply(params, x) and params of a network with one hidden layer."""
    first, last = jax.random.split(key)
    params = {
        "first": jax.random.normal(first, (10, width)),
        "last": jax.random.normal(last, (width, 3)),
    }
    return lambda p, x: jnp.tanh(x @ p["first"] / 10**0.5) @ p["last"] / width**0.5, params


def trained(apply: Apply, params: Params, x: Any, y: Any, c: float, num_steps: int = 300) -> Params:
    """Return params after gradient descent on ½ mean ‖f − y‖² at the rate ηλ/n = c."""
    top = jnp.linalg.eigvalsh(as_matrix(empirical_ntk(apply, params, x)))[-1] / len(x)
    gradient = jax.grad(lambda p: jnp.sum((apply(p, x) - y) ** 2) / (2 * len(x)))
    step = jax.jit(lambda p: jax.tree.map(lambda w, g: w - c / top * g, p, gradient(p)))
    for _ in range(num_steps):
        params = step(params)
    return params


def main(width: int = 256) -> None:
    """Write before.npz, stable.npz and catapult.npz."""
    data = load_dataset("gaussian-mixture", num_samples=20)
    apply, params = network(width, jax.random.key(0))
    np.savez("before.npz", **params)
    for name, c in RATES.items():
        np.savez(f"{name}.npz", **trained(apply, params, data.x, data.y, c))


if __name__ == "__main__":
    main()
