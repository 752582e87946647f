"""A network and its linear model in float64, compared at equal step or equal loss."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree
from numpy.linalg import norm

from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import Model, NetworkModel, Origin, TangentModel
from ntk_core.dynamics._rates import kernel_matrix
from ntk_core.kernels import pre_output_ntk
from ntk_core.networks.architectures import Network, NetworkParams, merge

Rates = tuple[float, float]  # of the network and of its linear model


class LinearPair:
    """A network and its linear model, trained by w ← (1 − decay) w − η ∇L in float64.

    Attributes:
        kernel: K(w) of the network as a matrix.
        first: the same at w₀.
        outputs: of the network at the test points ``x_test``.
        log_loss: log L of the network.
    """

    def __init__(
        self,
        net: Network,
        params: PyTree,
        x: ArrayLike,
        y: ArrayLike,
        x_test: ArrayLike,
        is_log: bool,
        decay: float,
    ):
        """Start both at ``params``; ``is_log`` minimizes :func:`log_loss` instead of the square loss."""
        self._net, self._is_log, self._decay = net, is_log, decay
        self._points = tuple(np.asarray(each, np.float64) for each in (x, x_test, y))
        with jax.enable_x64(True):
            origin, self._fixed = net.partition(jax.tree.map(_in_float64, params))
        self._origin, self._weights = origin, (origin, origin)
        self._records: list[tuple[float, np.ndarray]] = []  # log L and outputs of the linear model
        self.advance((0.0, 0.0), 0, 0)
        self.first = self.kernel

    def advance(self, rates: Rates, *counts: int) -> None:
        """Take ``counts`` steps of the network and of its linear model, at these rates."""
        with jax.enable_x64(True):
            self._weights, losses, outputs, kernel = _advance(
                self._net, self._is_log, self._weights, self._origin, self._fixed, self._points, rates, self._decay,
                counts,
            )  # fmt: skip
        self.kernel, self.outputs, self.log_loss = (
            kernel_matrix(kernel),
            np.asarray(outputs[0]),
            float(losses[0]),
        )
        self._linear = float(losses[1]), np.asarray(outputs[1])

    @property
    def is_finite(self) -> bool:
        """Whether kernel, outputs and loss of the network are finite."""
        return bool(
            np.isfinite(self.kernel).all()
            and np.isfinite(self.outputs).all()
            and math.isfinite(self.log_loss)
        )

    @property
    def change(self) -> float:
        """ΔK = ‖K(w) − K(w₀)‖_F / ‖K(w₀)‖_F."""
        return float(norm(self.kernel - self.first) / norm(self.first))

    def linear_outputs(self) -> np.ndarray:
        """Record and return outputs of the linear model at the test points."""
        self._records.append(self._linear)
        return self._linear[1]

    def linear_at_equal_loss(self, rates: Rates, count: int, most: int) -> np.ndarray:
        """Return the linear model's outputs at the network's loss, interpolated between records; else NaN.

        A linear model with a larger loss takes ``count`` steps at a time, up to ``most`` records in all.
        """
        loss, records = self.log_loss, self._records
        self.linear_outputs()
        while records[-1][0] > loss and len(records) <= most:
            self.advance(rates, 0, count)
            self.linear_outputs()
        at = next(
            (index for index in reversed(range(len(records))) if records[index][0] >= loss), 0
        )
        (high, before), (low, after) = records[at], records[min(at + 1, len(records) - 1)]
        share = math.nan if low > loss else (high - loss) / (high - low) if high > low else 0.0
        return before + share * (after - before)


def _in_float64(weights: Array) -> Array:
    return weights.astype(jnp.float64) if jnp.issubdtype(weights.dtype, jnp.floating) else weights


def log_loss(f: Array, y: Array) -> Array:
    """Return the log of the mean of log(1 + e^(−yf)), even if the mean underflows."""
    margins = y * f
    is_large = margins > 30  # there log(1 + e^(−margin)) is e^(−margin)
    each = jnp.where(
        is_large, -margins, jnp.log(jnp.logaddexp(0.0, -jnp.where(is_large, 0.0, margins)))
    )
    return jax.nn.logsumexp(each) - math.log(each.size)


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    net: Network, is_log: bool, weights: tuple[NetworkParams, ...], origin: NetworkParams, fixed: NetworkParams,
    points: tuple[Array, ...], rates: tuple[ArrayLike, ...], decay: ArrayLike, counts: tuple[ArrayLike, ...],
) -> tuple[tuple[NetworkParams, ...], tuple[Array, ...], tuple[Array, ...], Array]:  # fmt: skip
    """Train both, then return weights, log L, test outputs and the network's K; one program per run."""
    x, x_test, y = points
    network = NetworkModel(net, Loss("linear"))

    def after(
        model: Model, stays: PyTree, start: NetworkParams, rate: ArrayLike, count: ArrayLike
    ) -> tuple[NetworkParams, Array, Array]:
        def objective(w: NetworkParams) -> Array:
            f = model.outputs(w, stays, x)
            return log_loss(f, y) if is_log else jnp.sum((f - y) ** 2) / (2 * len(y))

        def step(_: Array, w: NetworkParams) -> NetworkParams:
            return jax.tree.map(
                lambda each, g: (1 - decay) * each - rate * g, w, jax.grad(objective)(w)
            )

        trained = jax.lax.fori_loop(0, count, step, start)
        loss = objective(trained)
        return trained, loss if is_log else jnp.log(loss), model.outputs(trained, stays, x_test)

    one = after(network, fixed, weights[0], rates[0], counts[0])
    linear = after(TangentModel(network), Origin(origin, fixed), weights[1], rates[1], counts[1])
    kernel, _, _ = pre_output_ntk(net, merge(one[0], fixed), x)
    return (one[0], linear[0]), (one[1], linear[1]), (one[2], linear[2]), kernel
