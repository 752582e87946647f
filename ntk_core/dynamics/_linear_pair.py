"""A network and its linear model in float64, compared at equal step or equal loss."""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped
from numpy.linalg import norm

from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import (
    Decay,
    DecayedModel,
    NetworkModel,
    Origin,
    TangentModel,
)
from ntk_core.dynamics._optimizer import Optimizer
from ntk_core.dynamics._rates import kernel_matrix
from ntk_core.dynamics._steps import advance, start
from ntk_core.kernels import pre_output_ntk
from ntk_core.networks.architectures import Network, NetworkParams, merge

Rates = tuple[float, float]  # of the network and of its linear model


class LinearPair:
    """A network and its linear model, trained by w ← (1 − decay) w − η ∇L in float64.

    The steps are those of every training (:func:`advance`). The loop around them is not
    :func:`descend`: the rate follows the kernel, and the linear model takes further steps alone
    until its loss is the network's.

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
        """Start both at ``params``.

        ``is_log`` minimizes :func:`log_loss` instead of the square loss.
        """
        network = NetworkModel(net, _LogLoss("linear") if is_log else Loss("linear"))
        self._models = DecayedModel(network), DecayedModel(TangentModel(network))
        self._decay = decay
        with jax.enable_x64(True):
            self._points = tuple(jnp.asarray(each, jnp.float64) for each in (x, x_test, y))
            origin, fixed = net.partition(jax.tree.map(_in_float64, params))
            self._fixed = fixed, Origin(origin, fixed)
            # Steps overwrite their weights, so each model has its own w₀.
            self._states = [
                start(model, Optimizer(), jax.tree.map(jnp.copy, origin), len(self._points[2]))
                for model in self._models
            ]
        self._records: list[tuple[float, np.ndarray]] = []  # log L and outputs of the linear model
        self._measure_network()
        self._measure_linear()
        self.first = self.kernel

    def advance(self, rates: Rates, *counts: int) -> None:
        """Take ``counts`` steps of the network and of its linear model, at these rates."""
        x, _, y = self._points
        with jax.enable_x64(True):
            for index, (rate, count) in enumerate(zip(rates, counts, strict=True)):
                model = self._models[index]
                state = self._states[index]
                fixed = Decay(self._fixed[index], self._decay / rate)
                until = state.step + count
                self._states[index] = advance(model, Optimizer(), state, fixed, x, y, rate, until)
        if counts[0]:
            self._measure_network()
        self._measure_linear()

    def _measure_network(self) -> None:
        """Record log L, outputs and kernel of the network."""
        self.log_loss, self.outputs, kernel = self._measured(0)
        assert kernel is not None
        self.kernel = kernel_matrix(kernel)

    def _measure_linear(self) -> None:
        """Record log L and outputs of the linear model."""
        loss, outputs, _ = self._measured(1)
        self._linear = loss, outputs

    def _measured(self, index: int) -> tuple[float, np.ndarray, Array | None]:
        model = self._models[index].model
        with jax.enable_x64(True):
            loss, outputs, kernel = _measured(
                model, self._states[index].trained, self._fixed[index], *self._points
            )
        return float(loss), np.asarray(outputs), kernel

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
        """Return the linear model's outputs at the network's loss.

        They are interpolated between records; without such a loss they are NaN.

        A linear model with a larger loss takes ``count`` steps at a time, up to
        ``most`` records in all.
        """
        loss = self.log_loss
        records = self._records
        self.linear_outputs()
        while records[-1][0] > loss and len(records) <= most:
            self.advance(rates, 0, count)
            self.linear_outputs()
        # The last record with at least the network's loss, and the one after it.
        at = 0
        for index, (recorded, _) in enumerate(records):
            if recorded >= loss:
                at = index
        high, before = records[at]
        low, after = records[min(at + 1, len(records) - 1)]
        if low > loss:
            share = math.nan
        elif high > low:
            share = (high - loss) / (high - low)
        else:
            share = 0.0
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


@dataclass(frozen=True)
class _LogLoss(Loss):
    """log L of the logistic loss, whose gradient keeps its size as L vanishes."""

    def of_model(self, outputs: Float[Array, "n C"], y: Shaped[Array, "n C"]) -> Float[Array, ""]:
        return log_loss(outputs, y)


@partial(jax.jit, static_argnums=0)
def _measured(
    model: NetworkModel | TangentModel,
    trained: NetworkParams,
    fixed: PyTree,
    x: Array,
    x_test: Array,
    y: Array,
) -> tuple[Array, Array, Array | None]:
    """Return log L, outputs at the test points, and the kernel of a network."""
    loss = model.loss.of_model(model.outputs(trained, fixed, x), y)
    is_log = isinstance(model.loss, _LogLoss)
    kernel = None
    if isinstance(model, NetworkModel):
        kernel, _, _ = pre_output_ntk(model.net, merge(trained, fixed), x)
    return loss if is_log else jnp.log(loss), model.outputs(trained, fixed, x_test), kernel
