"""Networks and their linear models in float64, until they separate; one width and regime at a time."""

import itertools
import math
from collections.abc import Generator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.data import Dataset
from ntk_core.dynamics import Loss, NetworkModel, Origin, TangentModel
from ntk_core.experiments.horizon.result import HorizonPoint, HorizonRun, departure
from ntk_core.experiments.horizon.spec import DECAY_END, HorizonSpec, stretch
from ntk_core.kernels import pre_output_ntk
from ntk_core.networks.architectures import Network, ScaledNetwork, merge
from ntk_core.networks.build import build_network, initial_key
from ntk_core.runs import Progress, one_after_another

NORMALIZED_STEP = 0.2  # of the largest K(x, x), in a step along −∇ log L; our choice
NUM_KEPT = 48  # records of a path that are kept
RECORDED = ("clock", "change", "difference", "log_loss")
TARGET_SHIFT = 1.0  # of ±1 above the stable rate: balanced ones are nearly orthogonal to the top eigenvector of K₀


def compute(spec: HorizonSpec, data: Dataset, key: str) -> Generator[Progress, None, HorizonPoint]:
    """All rates and seeds of one width and regime; yields (fraction, message) between stretches of work."""
    width, regime = spec.value_of(key)
    net = ScaledNetwork(build_network(spec.architecture, width, data.num_outputs, "linear"), spec.scale)
    plan = itertools.product(spec.rates_of(regime), spec.seeds)
    words = f"width {width:,}: {regime.replace('-', ' ')}"
    runs = yield from one_after_another(
        [_run(spec, data, net, regime, rate, (seed, width), words) for rate, seed in plan]
    )
    num_params = net.num_params(data.input_shape, only_trained=True)
    return HorizonPoint(width=width, regime=regime, num_params=num_params, runs=tuple(runs))


def _run(
    spec: HorizonSpec, data: Dataset, net: Network, regime: str, rate: float, drawn: tuple[int, int], words: str
) -> Generator[Progress, None, HorizonRun]:
    yield 0.0, f"{words}, seed {drawn[0]}, first kernel"
    params = net.init(initial_key(*drawn), data.input_shape)  # in float32, as in every other experiment
    with jax.enable_x64(True):
        pair = _Pair(spec, data, net, regime, rate, params)
    while not pair.outcome:
        with jax.enable_x64(True):
            pair.advance()
        yield (
            math.log1p(pair.step) / math.log1p(spec.most_steps(regime)),
            f"{words}, seed {drawn[0]}, step {pair.step:,}",
        )
    return pair.run(drawn[0])


class _Seen(NamedTuple):
    """What is measured of both models: log L, f − f₀ at training and test points, and K of the network as a matrix."""

    losses: tuple[float, float]
    outputs: np.ndarray
    test: tuple[np.ndarray, np.ndarray]
    kernel: np.ndarray


class _Pair:
    """A network and its linear model from the same w₀, with the records of both."""

    def __init__(self, spec: HorizonSpec, data: Dataset, net: Network, regime: str, rate: float, params: Any):
        self.spec, self.net, self.regime, self.rate = spec, net, regime, rate
        self.step, self.is_log = 0, regime == "cross-entropy"
        self.columns: dict[str, list[float]] = {name: [] for name in RECORDED}
        trained, self.fixed = jax.tree.map(
            lambda w: np.asarray(w, np.float64 if jnp.issubdtype(w.dtype, jnp.floating) else None),
            net.partition(params),
        )
        self.origin, self.weights = trained, (trained, trained)
        y = 2 * data.y - 1 if self.is_log and data.num_outputs > 1 else data.y
        x, x_test, targets = (np.asarray(each, np.float64) for each in (data.x, data.x_test, y))
        self.points = (x, x_test, targets + TARGET_SHIFT * (regime == "large-rate"))
        self.start = (np.zeros(y.shape), np.zeros((len(x_test), y.shape[1])))
        self.decay = spec.decay if regime == "weight-decay" else 0.0
        self.rates = (0.0, 0.0)
        seen = self._seen(0, 0)
        self.start, self.first = (seen.outputs, seen.test[0]), seen.kernel
        self.outcome = "" if self.first.any() else "dead"
        if not self.outcome:
            self.rates = (self._rate(self.first),) * 2
            seen = self._seen(0, 0)
            self.beside = [(seen.losses[1], seen.test[1])]  # of the linear model under cross-entropy
            self._record(seen)

    def _seen(self, *counts: int) -> _Seen:
        """Take ``counts`` steps of the network and of its linear model, then measure."""
        given = (self.origin, self.fixed, self.points, self.start, self.rates, self.decay, counts)
        self.weights, found = _advance(self.net, self.is_log, self.weights, *given)
        losses, outputs, test, kernel = jax.tree.map(np.asarray, found)
        return _Seen((float(losses[0]), float(losses[1])), outputs, test, kernel)

    def _rate(self, kernel: np.ndarray) -> float:
        if self.is_log:
            return NORMALIZED_STEP / float(kernel.diagonal().max())
        return self.rate * len(self.points[0]) / float(np.linalg.eigvalsh(kernel)[-1])

    def advance(self) -> None:
        """Train both to the next record, and measure there."""
        count = min(stretch(self.regime, self.step), self.spec.most_steps(self.regime) - self.step)
        self.step += count
        self._record(self._seen(count, count))

    def _record(self, seen: _Seen) -> None:
        """Note clock, ΔK, difference of outputs and loss, and whether the run is over."""
        loss, outputs = seen.losses[0], seen.test[0]
        if not (np.isfinite(seen.kernel).all() and np.isfinite(outputs).all() and math.isfinite(loss)):
            self.outcome = "diverged"
            return
        is_dead = not seen.kernel.any()  # nothing moves any further
        if self.is_log and not is_dead:
            self.rates = (self._rate(seen.kernel), self.rates[1])
        linear = self._linear_at(loss, seen) if self.is_log else seen.test[1]
        size = float(np.linalg.norm(linear))
        found = {
            "clock": {"large-rate": float(self.step), "weight-decay": self.decay * self.step}.get(self.regime, -loss),
            "change": float(np.linalg.norm(seen.kernel - self.first) / np.linalg.norm(self.first)),
            "difference": 0.0 if size == 0 else float(np.linalg.norm(outputs - linear)) / size,
            "log_loss": loss,
        }
        for name, value in found.items():
            self.columns[name].append(value)
        self.outcome = "over-budget" if is_dead else self._end()

    def _linear_at(self, loss: float, seen: _Seen) -> np.ndarray:
        """The linear model's f − f₀ at the test points when its log L was this, between two of its records."""
        self.beside.append((seen.losses[1], seen.test[1]))
        most = self.spec.max_steps // stretch(self.regime, 0)
        while self.beside[-1][0] > loss and len(self.beside) <= most:  # it is behind: only it continues
            seen = self._seen(0, stretch(self.regime, 0))
            self.beside.append((seen.losses[1], seen.test[1]))
        at = next((index for index in reversed(range(len(self.beside))) if self.beside[index][0] >= loss), 0)
        (high, before), (low, after) = self.beside[at], self.beside[min(at + 1, len(self.beside) - 1)]
        if low > loss:
            return after * math.nan  # it did not get there
        share = (high - loss) / (high - low) if high > low else 0.0
        return before + share * (after - before)

    def _end(self) -> str:
        """How the run ends here; empty if it continues."""
        spec, clock = self.spec, self.columns["clock"][-1]
        if self.regime == "square" and self.columns["log_loss"][-1] <= math.log(spec.loss_threshold):
            return "converged"
        thresholds = {"change": spec.kernel_threshold, "difference": spec.output_threshold}
        has_left = all(max(self.columns[name]) > threshold for name, threshold in thresholds.items())
        ends = {
            "cross-entropy": clock >= spec.max_log_loss,
            "large-rate": has_left,
            "weight-decay": has_left or clock >= DECAY_END,
            "square": False,
        }
        return "over-budget" if ends[self.regime] or self.step >= spec.most_steps(self.regime) else ""

    def run(self, seed: int) -> HorizonRun:
        """What was recorded, thinned out, with both departures."""
        columns, count = self.columns, len(self.columns["clock"])
        kept = sorted({round(at) for at in np.linspace(0, count - 1, min(count, NUM_KEPT))})
        path = {name: tuple(columns[name][at] for at in kept) for name in ("clock", "change", "difference")}
        kernel = departure(columns["clock"], columns["change"], self.spec.kernel_threshold, self.outcome)
        outputs = departure(columns["clock"], columns["difference"], self.spec.output_threshold, self.outcome)
        return HorizonRun(
            regime=self.regime, rate=self.rate, seed=seed, num_steps=self.step, kernel=kernel, outputs=outputs,
            log_loss=columns["log_loss"][-1] if count else math.nan, **path,
        )  # fmt: skip


def log_loss(f: Array, y: Array) -> Array:
    """log of the mean of log(1 + e^(−yf)), also where that is below the least number of its type."""
    margins = y * f
    is_large = margins > 30  # there log(1 + e^(−margin)) is e^(−margin)
    each = jnp.where(is_large, -margins, jnp.log(jnp.logaddexp(0.0, -jnp.where(is_large, 0.0, margins))))
    return jax.nn.logsumexp(each) - math.log(each.size)


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    net: Network, is_log: bool, weights: tuple[Any, Any], origin: Any, fixed: Any, points: tuple[Array, Array, Array],
    start: tuple[Array, Array], rates: tuple[float, float], decay: float, counts: tuple[int, int],
) -> Any:  # fmt: skip
    """Steps of the network and of its linear model, then what :class:`_Seen` holds; one program for all of a run."""
    x, x_test, y = points
    network = NetworkModel(net, Loss("linear"))
    after, losses, tests = [], [], []
    for number, (model, stays) in enumerate(((network, fixed), (TangentModel(network), Origin(origin, fixed)))):

        def objective(w: Any, model: Any = model, stays: Any = stays) -> Array:
            f = model.outputs(w, stays, x) - start[0]
            return log_loss(f, y) if is_log else jnp.sum((f - y) ** 2) / (2 * len(y))

        def step(_: Array, w: Any, rate: Any = rates[number], minimized: Any = objective) -> Any:
            return jax.tree.map(lambda each, g: (1 - decay) * each - rate * g, w, jax.grad(minimized)(w))

        trained = jax.lax.fori_loop(0, counts[number], step, weights[number])
        loss = objective(trained)
        after.append(trained)
        losses.append(loss if is_log else jnp.log(loss))
        tests.append(model.outputs(trained, stays, x_test) - start[1])
    kernel, f, _ = pre_output_ntk(net, merge(after[0], fixed), x)
    matrix = kernel.transpose(0, 2, 1, 3).reshape(f.size, f.size)
    return tuple(after), (tuple(losses), f - start[0], tuple(tests), matrix)
