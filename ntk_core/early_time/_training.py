"""Descent of a network from f = 0, with a rate of its own for hidden and output layers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ntk_core.data import stream
from ntk_core.dynamics import Descent, Loss, NetworkModel, Optimizer
from ntk_core.networks.architectures import Network, NetworkParams

EVALUATED_ROWS = 1000  # inputs at a time when outputs are looked at; bounds the memory of convolutions
_OUTPUT_LAYER = "output"


def early_descent(
    net: Network,
    params: NetworkParams,
    x: NDArray,
    y: NDArray,
    *,
    rate_hidden: float,
    rate_output: float,
    batches: NDArray | None = None,
) -> Descent:
    """Descent on (1/2n) Σ (f(x_i) − f₀(x_i) − y_i)² of a network with one output.

    The subtraction of the initial outputs f₀ leaves the kernel as it is (Hu, Xiao, Adlam & Pennington 2020, §3,
    App. A). Rates: ``rate_hidden`` for every layer but the last.

    Args:
        params: w₀, which stays with the caller.
        batches: sample indices of each step, see :func:`batch_order`; all samples where left out.
    """
    trained, fixed = net.partition(jax.tree.map(jnp.copy, params))
    # ½(f − f₀ − y)² is the loss of f with targets y + f₀: the subtraction costs nothing while training.
    targets = jnp.asarray(y).reshape(-1) + _in_blocks(net, params, x)
    rates = {name: jnp.asarray(rate_output if name.endswith(_OUTPUT_LAYER) else rate_hidden) for name in trained}
    order = None if batches is None else jnp.asarray(batches, jnp.int32)
    return Descent(
        NetworkModel(net, Loss("linear")), Optimizer(), trained, fixed, jnp.asarray(x), targets[:, None], rates,
        batches=order,
    )  # fmt: skip


def outputs_in_blocks(net: Network, params: NetworkParams, x: NDArray) -> NDArray[np.float64]:
    """f(x), (n,), of a network with one output."""
    return np.asarray(_in_blocks(net, params, x), np.float64)


def _in_blocks(net: Network, params: NetworkParams, x: NDArray) -> Array:
    blocks = [x[first : first + EVALUATED_ROWS] for first in range(0, len(x), EVALUATED_ROWS)]
    return jnp.concatenate([_outputs(net, params, jnp.asarray(block)) for block in blocks])


def batch_order(n: int, batch_size: int, num_steps: int, seed: int) -> NDArray[np.int32]:
    """Sample indices of each step, (num_steps, batch_size): the training set in a new random order every epoch."""
    needed = num_steps * batch_size
    epochs = [
        np.argsort(stream(seed, epoch).random(n, dtype=np.float32), kind="stable").astype(np.int32)
        for epoch in range(-(-needed // n))
    ]
    return np.concatenate(epochs)[:needed].reshape(num_steps, batch_size)


@partial(jax.jit, static_argnums=0)
def _outputs(net: Network, params: NetworkParams, x: Array) -> Array:
    return net.apply(params, x)[:, 0]
