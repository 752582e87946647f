"""Lower bounds of the distance of weights.

They follow from the change of outputs (Liu, Zhu & Belkin 2020, Eq. 2).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ntk_core.kernels._arrays import refuse_traced
from ntk_core.kernels._empirical import unchecked_ntk
from ntk_core.kernels._generic import as_function
from ntk_core.kernels._outputs import as_matrix
from ntk_core.traced import Inputs, Model, accepted, like_params
from ntk_core.usual_settings import with_usual_settings

# Points between start and end at which the kernel is computed; our choice.
SHARES = (
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
)
# Share of the largest eigenvalue of K(w₀) below which others are excluded from its inverse.
SMALLEST = 1e-6


class LeastDistance(NamedTuple):
    """Lower bounds of ‖w − w₀‖₂.

    Attributes:
        one_input: from a single output at a single input, the largest of these.
        all_inputs: from all outputs at all inputs.
    """

    one_input: float
    all_inputs: float


@with_usual_settings
def least_distance(net: Model, start: PyTree, end: PyTree, x: Inputs) -> LeastDistance:
    """Return lower bounds of the distance between two weights.

    Bounds ‖w − w₀‖₂ by the change of the outputs F at x, (n, ...), from ``start`` w₀ to ``end`` w.

    For every vector u, ‖w − w₀‖ ≥ |uᵀ(F(w) − F(w₀))| / sup √(uᵀK u), the supremum along the segment
    from w₀ to w; here it is the largest at five points of it. u = e_i gives Eq. 2,
    |F_i(w) − F_i(w₀)| / sup ‖∇F_i‖; u = K(w₀)⁺(F(w) − F(w₀)) gives the exact distance if the model
    is linear and w − w₀ is in the span of its gradients. Untrained weights are excluded. NaN if an
    output or a kernel is not finite.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=8, activation="tanh")
    >>> params = net.init(jax.random.key(0), (3,))
    >>> least_distance(net, params, params, jnp.ones((2, 3)))
    LeastDistance(one_input=0.0, all_inputs=0.0)

    Args:
        net: a network, or any callable ``apply(params, x)``.
        start, end: w₀ and w.
        x: inputs (n, *input_shape).

    Returns:
        The bounds from one input and from all inputs.

    Source: Liu, Zhu & Belkin 2020, Eq. 2; derivation in docs/math/distance.md.
    """
    refuse_traced((start, end, x), "x")
    net, x, _ = accepted(net, start, x)
    like_params(end, start, "end")
    apply = as_function(net)
    rows = jnp.asarray(x)
    outputs_end = np.asarray(apply(end, rows), np.float64)
    outputs_start = np.asarray(apply(start, rows), np.float64)
    moved = outputs_end.ravel() - outputs_start.ravel()
    if not np.isfinite(moved).all():
        return LeastDistance(math.nan, math.nan)
    kernels = []  # on the way from w₀ to w, each (n C, n C)
    for share in SHARES:
        between = jax.tree.map(lambda w0, w, s=share: w0 + s * (w - w0), start, end)
        kernel = np.asarray(unchecked_ntk(net, between, x), np.float64)
        kernels.append(as_matrix(kernel))
    if not all(np.isfinite(each).all() for each in kernels):
        return LeastDistance(math.nan, math.nan)
    squares = np.max([np.diagonal(kernel) for kernel in kernels], axis=0)
    one = np.divide(np.abs(moved), np.sqrt(squares), out=np.zeros_like(moved), where=squares > 0)
    u = np.linalg.pinv(kernels[0], rcond=SMALLEST, hermitian=True) @ moved
    largest = max(float(u @ kernel @ u) for kernel in kernels)
    together = abs(float(u @ moved)) / math.sqrt(largest) if largest > 0 else 0.0
    return LeastDistance(float(one.max()), together)
