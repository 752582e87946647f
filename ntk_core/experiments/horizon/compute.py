"""Networks and their linear models in float64, until they separate; one width and regime at a time."""

import math
from collections.abc import Generator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.data import Dataset
from ntk_core.dynamics import Loss, Model, NetworkModel, Origin, TangentModel
from ntk_core.experiments.horizon import REGIMES, HorizonPoint, HorizonRun, HorizonSpec, departure
from ntk_core.kernels import pre_output_ntk
from ntk_core.networks.architectures import Network, NetworkParams, ScaledNetwork, Subtracted, merge
from ntk_core.networks.build import build_network, initial_key
from ntk_core.runs import Progress

NORMALIZED_STEP = 0.2  # of the largest K(x, x), in a step along −∇ log L; our choice
NUM_KEPT = 48  # records of a path that are kept
TARGET_SHIFT = 1.0  # of ±1 above the stable rate: balanced ones are nearly orthogonal to the top eigenvector of K₀


def compute(spec: HorizonSpec, data: Dataset, key: str) -> Generator[Progress, None, HorizonPoint]:
    """All rates and seeds of one width and regime; yields (fraction, message) between stretches of work."""
    rates = spec.rates_of(spec.value_of(key)[1])
    return HorizonPoint(**(yield from spec.every_run(_run, data, key, rates)))


def _run(spec: HorizonSpec, data: Dataset, key: str, rate: float, seed: int) -> Generator[Progress, None, HorizonRun]:
    width, name = spec.value_of(key)
    words = f"width {width:,}: {name.replace('-', ' ')}, seed {seed}"
    yield 0.0, f"{words}, initial kernel"
    net = Subtracted(ScaledNetwork(build_network(spec.architecture, width, data.num_outputs, "linear"), spec.scale))
    params = net.init(initial_key(seed, width), data.input_shape)  # in float32, as in every other experiment
    with jax.enable_x64(True):
        pair = _Pair(spec, data, name, rate, net, params)
    while not pair.outcome:
        with jax.enable_x64(True):
            pair.advance()
        yield math.log1p(pair.step) / math.log1p(spec.most_steps(name)), f"{words}, step {pair.step:,}"
    return pair.run(seed)


class _Seen(NamedTuple):
    """Weights, log L and f − f₀ at the test points of both models, and K of the network as a matrix."""

    weights: tuple[NetworkParams, NetworkParams]
    log_losses: tuple[Array, Array]
    outputs: tuple[Array, Array]
    kernel: Array


class _Pair:
    """A network and its linear model from the same w₀, with the records of both."""

    def __init__(self, spec: HorizonSpec, data: Dataset, name: str, rate: float, net: Network, params: NetworkParams):
        self.spec, self.name, self.rate, self.net = spec, name, rate, net
        self.step, self.outcome, self.is_log = 0, "", name == "cross-entropy"
        self.decay = spec.decay if name == "weight-decay" else 0.0
        x, x_test, y = (np.asarray(each, np.float64) for each in (data.x, data.x_test, data.y))
        y = 2 * y - 1 if self.is_log and data.num_outputs > 1 else y + TARGET_SHIFT * (name == "large-rate")
        self.points = (x, x_test, y)
        self.origin, self.fixed = net.partition(jax.tree.map(_in_float64, params))
        self.weights, self.rates = (self.origin, self.origin), (0.0, 0.0)
        self.rows: list[tuple[float, float, float, float]] = []  # clock, ΔK, difference of outputs, log L
        self.beside: list[tuple[float, np.ndarray]] = []  # (log L, f − f₀) of the linear model under cross-entropy
        seen = self._after(0, 0)
        self.first = np.asarray(seen.kernel)
        if self.first.any():
            self.rates = (self._rate(self.first),) * 2
            self._record(seen)
        else:
            self.outcome = "dead"

    def advance(self) -> None:
        """Train both to the next record, and measure there."""
        count = min(REGIMES[self.name].stretch(self.step), self.spec.most_steps(self.name) - self.step)
        self.step += count
        self._record(self._after(count, count))

    def _after(self, *counts: int) -> _Seen:
        """Take ``counts`` steps of the network and of its linear model, then measure."""
        given = (self.origin, self.fixed, self.points, self.rates, self.decay, counts)
        seen = _advance(self.net, self.is_log, self.weights, *given)
        self.weights = seen.weights
        return seen

    def _rate(self, kernel: np.ndarray) -> float:
        if self.is_log:
            return NORMALIZED_STEP / float(kernel.diagonal().max())
        return self.rate * len(self.points[0]) / float(np.linalg.eigvalsh(kernel)[-1])

    def _record(self, seen: _Seen) -> None:
        """Note clock, ΔK, difference of outputs and loss, and whether the run is over."""
        kernel, outputs, linear = map(np.asarray, (seen.kernel, *seen.outputs))
        loss, is_alive = float(seen.log_losses[0]), kernel.any()  # else nothing moves any further
        if not (np.isfinite(kernel).all() and np.isfinite(outputs).all() and math.isfinite(loss)):
            self.outcome = "diverged"
            return
        if self.is_log:
            self.rates = (self._rate(kernel) if is_alive else self.rates[0], self.rates[1])
            linear = self._linear_at(loss, seen)
        clock = {"large-rate": float(self.step), "weight-decay": self.decay * self.step}.get(self.name, -loss)
        change = float(np.linalg.norm(kernel - self.first) / np.linalg.norm(self.first))
        size = float(np.linalg.norm(linear))
        self.rows.append((clock, change, size and float(np.linalg.norm(outputs - linear)) / size, loss))
        self.outcome = self._end() if is_alive else "over-budget"

    def _linear_at(self, loss: float, seen: _Seen) -> np.ndarray:
        """The linear model's f − f₀ at the test points when its log L was this, between two of its records."""
        every = REGIMES[self.name].every
        self.beside.append((float(seen.log_losses[1]), np.asarray(seen.outputs[1])))
        while self.beside[-1][0] > loss and len(self.beside) <= self.spec.max_steps // every:  # only it is behind
            seen = self._after(0, every)
            self.beside.append((float(seen.log_losses[1]), np.asarray(seen.outputs[1])))
        at = next((index for index in reversed(range(len(self.beside))) if self.beside[index][0] >= loss), 0)
        (high, before), (low, after) = self.beside[at], self.beside[min(at + 1, len(self.beside) - 1)]
        if low > loss:
            return after * math.nan  # it did not get there
        share = (high - loss) / (high - low) if high > low else 0.0
        return before + share * (after - before)

    def _end(self) -> str:
        """How the run ends here; empty if it continues."""
        spec, (clock, *_, loss) = self.spec, self.rows[-1]
        if self.name == "square" and loss <= math.log(spec.loss_threshold):
            return "converged"
        is_over = self.step >= spec.most_steps(self.name) or (self.is_log and clock >= spec.max_log_loss)
        if self.name in ("large-rate", "weight-decay"):  # it has left for good
            _, change, difference, _ = map(max, zip(*self.rows, strict=True))
            is_over |= change > spec.kernel_threshold and difference > spec.output_threshold
        return "over-budget" if is_over else ""

    def run(self, seed: int) -> HorizonRun:
        """What was recorded, thinned out, with both departures."""
        table = np.asarray(self.rows).reshape(-1, 4)
        clock, change, difference, losses = table.T.tolist()
        kept = sorted({round(at) for at in np.linspace(0, len(clock) - 1, min(len(clock), NUM_KEPT))})
        path = dict(zip(("clock", "change", "difference"), table[kept].T.tolist(), strict=False))
        return HorizonRun(
            regime=self.name, rate=self.rate, seed=seed, num_steps=self.step, **path,
            kernel=departure(clock, change, self.spec.kernel_threshold, self.outcome),
            outputs=departure(clock, difference, self.spec.output_threshold, self.outcome),
            log_loss=losses[-1] if losses else math.nan,
        )  # fmt: skip


def _in_float64(weights: Array) -> Array:
    return weights.astype(jnp.float64) if jnp.issubdtype(weights.dtype, jnp.floating) else weights


def log_loss(f: Array, y: Array) -> Array:
    """log of the mean of log(1 + e^(−yf)), also where that is below the least number of its type."""
    margins = y * f
    is_large = margins > 30  # there log(1 + e^(−margin)) is e^(−margin)
    each = jnp.where(is_large, -margins, jnp.log(jnp.logaddexp(0.0, -jnp.where(is_large, 0.0, margins))))
    return jax.nn.logsumexp(each) - math.log(each.size)


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    net: Network, is_log: bool, weights: tuple[NetworkParams, NetworkParams], origin: NetworkParams,
    fixed: NetworkParams, points: tuple[Array, Array, Array], rates: tuple[float, float], decay: float,
    counts: tuple[int, int],
) -> _Seen:  # fmt: skip
    """Steps of the network and of its linear model, then what is measured of both; one program for all of a run."""
    x, x_test, y = points
    network = NetworkModel(net, Loss("linear"))

    def after(model: Model, stays: Any, start: NetworkParams, rate: float, count: int) -> tuple[Any, Array, Array]:
        def objective(w: NetworkParams) -> Array:
            f = model.outputs(w, stays, x)
            return log_loss(f, y) if is_log else jnp.sum((f - y) ** 2) / (2 * len(y))

        def step(_: Array, w: NetworkParams) -> NetworkParams:
            return jax.tree.map(lambda each, g: (1 - decay) * each - rate * g, w, jax.grad(objective)(w))

        trained = jax.lax.fori_loop(0, count, step, start)
        loss = objective(trained)
        return trained, loss if is_log else jnp.log(loss), model.outputs(trained, stays, x_test)

    one = after(network, fixed, weights[0], rates[0], counts[0])
    linear = after(TangentModel(network), Origin(origin, fixed), weights[1], rates[1], counts[1])
    kernel, f, _ = pre_output_ntk(net, merge(one[0], fixed), x)
    matrix = kernel.transpose(0, 2, 1, 3).reshape(f.size, f.size)
    return _Seen((one[0], linear[0]), (one[1], linear[1]), (one[2], linear[2]), matrix)
