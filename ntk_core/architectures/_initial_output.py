"""Models that start at zero because their initial output is subtracted."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import Array

from ntk_core.architectures._network import Network, NetworkParams


def subtract_initial_output(net: Network, params: NetworkParams) -> Callable[[NetworkParams, Array], Array]:
    """``apply(w, x)`` = net(w; x) − net(w₀; x), (n, C), with w₀ = ``params``: exactly 0 at the start, same kernel.

    The other way to start at zero is ``symmetric=True``, which needs no second forward pass (but duplicates a layer).
    """

    def apply(current: NetworkParams, x: Array) -> Array:
        return net.apply(current, x) - jax.lax.stop_gradient(net.apply(params, x))

    return apply
