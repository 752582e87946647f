"""Training a network with a rate of its own for hidden and output layers, beside its linear model."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ntk_core.data import stream
from ntk_core.networks.architectures import Network, NetworkParams, merge

EVALUATED_ROWS = 1000  # inputs at a time when outputs are looked at; bounds the memory of convolutions
_OUTPUT_LAYER = "output"


class EarlyTraining:
    """Descent on (1/2n) Σ (f(x_i) − y_i)² of a network with one output, from f = 0.

    A network that does not start at 0 has its initial outputs subtracted on every input, which leaves its kernel as it
    is (Hu, Xiao, Adlam & Pennington 2020, §3, App. A). Rates: ``rate_hidden`` for every layer but the last.

    Attributes:
        step: steps taken.
    """

    def __init__(
        self,
        net: Network,
        params: NetworkParams,
        x: NDArray,
        y: NDArray,
        *,
        rate_hidden: float,
        rate_output: float,
        batches: NDArray | None = None,
    ):
        self.net, self.step = net, 0
        self._trained, self._fixed = net.partition(jax.tree.map(jnp.copy, params))
        self._initial = jax.tree.map(jnp.copy, params)
        self._x = jnp.asarray(x)
        # ½(f − f₀ − y)² is the loss of f with targets y + f₀: the subtraction costs nothing while training.
        self._targets = jnp.asarray(y).reshape(-1) + self._raw_outputs(self._initial, x)
        self._rates = {
            name: jnp.asarray(rate_output if name.endswith(_OUTPUT_LAYER) else rate_hidden) for name in self._trained
        }
        self._batches = None if batches is None else jnp.asarray(batches, jnp.int32)

    def advance(self, num_steps: int) -> None:
        """Take ``num_steps`` steps in one compiled call of dynamic length."""
        self._trained = _descend(
            self.net,
            self._trained,
            self._fixed,
            self._rates,
            self._x,
            self._targets,
            self._batches,
            self.step,
            self.step + num_steps,
        )
        self.step += num_steps

    @property
    def params(self) -> NetworkParams:
        """w_t."""
        return merge(self._trained, self._fixed)

    def initial_outputs(self, x: NDArray) -> NDArray[np.float64]:
        """f(w₀; x), (n,): what :meth:`outputs` subtracts."""
        return np.asarray(self._raw_outputs(self._initial, x), np.float64)

    def outputs(self, x: NDArray, initial: NDArray) -> NDArray[np.float64]:
        """f(w_t; x) − f(w₀; x), (n,), with ``initial`` from :meth:`initial_outputs` on the same inputs."""
        return np.asarray(self._raw_outputs(self.params, x), np.float64) - initial

    def _raw_outputs(self, params: NetworkParams, x: NDArray) -> Array:
        blocks = [x[first : first + EVALUATED_ROWS] for first in range(0, len(x), EVALUATED_ROWS)]
        return jnp.concatenate([_outputs(self.net, params, jnp.asarray(block)) for block in blocks])


def batch_order(n: int, batch_size: int, num_steps: int, seed: int) -> NDArray[np.int32]:
    """Sample indices of each step, (num_steps, batch_size): the training set in a new random order every epoch."""
    needed = num_steps * batch_size
    epochs = [
        np.argsort(stream(seed, epoch).random(n, dtype=np.float32), kind="stable").astype(np.int32)
        for epoch in range(-(-needed // n))
    ]
    return np.concatenate(epochs)[:needed].reshape(num_steps, batch_size)


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def _descend(
    net: Network,
    trained: NetworkParams,
    fixed: NetworkParams,
    rates: dict[str, Array],
    x: Array,
    targets: Array,
    batches: Array | None,
    first: Array,
    until: Array,
) -> NetworkParams:
    def loss(w: NetworkParams, x: Array, targets: Array) -> Array:
        return 0.5 * jnp.mean((net.apply(merge(w, fixed), x)[:, 0] - targets) ** 2)

    def one(step: Array, w: NetworkParams) -> NetworkParams:
        rows = slice(None) if batches is None else batches[step]
        gradient = jax.grad(loss)(w, x[rows], targets[rows])
        return {name: jax.tree.map(lambda a, g, rate=rates[name]: a - rate * g, w[name], gradient[name]) for name in w}

    return jax.lax.fori_loop(first, until, one, trained)


@partial(jax.jit, static_argnums=0)
def _outputs(net: Network, params: NetworkParams, x: Array) -> Array:
    return net.apply(params, x)[:, 0]
