"""Training losses: means over the n samples, so that rates do not depend on n."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from ntk_core.architectures import output_function

# max |φ'| where it is not 1: swish and GELU overshoot, erf has slope 2/√π at 0.
_MAX_SLOPES = {"sigmoid": 0.25, "erf": 2 / math.sqrt(math.pi), "swish": 1.0998, "gelu": 1.129}


@dataclass(frozen=True)
class Loss:
    """The loss of a network with output φ, as a function of its pre-outputs f.

    ``softmax``: cross-entropy −(1/n) Σ_i log softmax(f_i)·y_i, also for the linear output that shares its parameters
    (Liu, Zhu & Belkin 2020, Eq. 46). Any other φ: (1/2n) Σ_i ‖φ(f_i) − y_i‖² (Eq. 47).
    """

    output: str

    def __call__(self, f: Array, y: Array) -> Array:
        """The mean loss, a scalar, for pre-outputs and targets of shape (n, C)."""
        if self.output == "softmax":
            return -jnp.mean(jnp.sum(jax.nn.log_softmax(f) * y, axis=-1))
        return 0.5 * jnp.mean(jnp.sum((output_function(self.output)(f) - y) ** 2, axis=-1))

    @property
    def curvature(self) -> float:
        """β: bound of the Gauss–Newton curvature of one sample's loss in f: ½ for cross-entropy, max |φ'|² for squares.

        For the unbounded slope of a quadratic output this is the curvature at |φ'| = 1, an assumption.
        """
        if self.output == "softmax":
            return 0.5
        return _MAX_SLOPES.get(self.output, 1.0) ** 2
