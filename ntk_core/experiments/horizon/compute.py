"""Networks and their linear models in float64, until they separate; one width and regime at a time."""

import math
from collections.abc import Generator, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree
from numpy.linalg import eigvalsh, norm

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
Weights = tuple[NetworkParams, NetworkParams]  # of the network and of its linear model


def compute(spec: HorizonSpec, data: Dataset, key: str) -> Generator[Progress, None, HorizonPoint]:
    """All rates and seeds of one width and regime; yields (fraction, message) between stretches of work."""
    rates = spec.rates_of(spec.value_of(key)[1])
    return HorizonPoint(**(yield from spec.every_run(_run, data, key, rates)))


def _run(spec: HorizonSpec, data: Dataset, key: str, rate: float, seed: int) -> Generator[Progress, None, HorizonRun]:
    width, name = spec.value_of(key)
    every, most, is_log = REGIMES[name].every, spec.most_steps(name), name == "cross-entropy"
    words = f"width {width:,}: {name.replace('-', ' ')}, seed {seed}"
    yield 0.0, f"{words}, initial kernel"
    net = Subtracted(ScaledNetwork(build_network(spec.architecture, width, data.num_outputs, "linear"), spec.scale))
    params = net.init(initial_key(seed, width), data.input_shape)  # in float32, as in every other experiment
    x, x_test, y = (np.asarray(each, np.float64) for each in (data.x, data.x_test, data.y))
    y = 2 * y - 1 if is_log and data.num_outputs > 1 else y + TARGET_SHIFT * (name == "large-rate")
    decay = spec.decay if name == "weight-decay" else 0.0
    with jax.enable_x64(True):
        origin, fixed = net.partition(jax.tree.map(_in_float64, params))

    def after(weights: Weights, rates: tuple[float, float], *counts: int) -> _Seen:
        with jax.enable_x64(True):
            return _advance(net, is_log, weights, origin, fixed, (x, x_test, y), rates, decay, counts)

    def rate_for(kernel: np.ndarray) -> float:
        size, top = (NORMALIZED_STEP, kernel.diagonal().max()) if is_log else (rate * len(x), eigvalsh(kernel)[-1])
        return size / float(top)

    seen, step = after((origin, origin), (0.0, 0.0), 0, 0), 0
    first = np.asarray(seen.kernel)
    outcome, rates = ("", (rate_for(first),) * 2) if first.any() else ("dead", (0.0, 0.0))
    rows: list[tuple[float, float, float, float]] = []  # clock, ΔK, difference of outputs, log L
    linear: list[tuple[float, np.ndarray]] = []  # log L and f − f₀ of the linear model at the test points
    while not outcome:
        kernel, f, loss = np.asarray(seen.kernel), np.asarray(seen.outputs[0]), float(seen.log_losses[0])
        if not (np.isfinite(kernel).all() and np.isfinite(f).all() and math.isfinite(loss)):
            outcome = "diverged"
            break
        linear.append(seen.linear)
        while is_log and linear[-1][0] > loss and len(linear) <= spec.max_steps // every:  # only it is behind
            seen = after(seen.weights, rates, 0, every)
            linear.append(seen.linear)
        f_linear = _at_loss(loss, linear) if is_log else linear[-1][1]
        size, change = float(norm(f_linear)), float(norm(kernel - first) / norm(first))
        clock = {"large-rate": float(step), "weight-decay": decay * step}.get(name, -loss)
        rows.append((clock, change, size and float(norm(f - f_linear)) / size, loss))
        outcome = _ended(spec, name, step, rows) if kernel.any() else "over-budget"  # else nothing moves any further
        if not outcome:
            count = min(REGIMES[name].stretch(step), most - step)
            rates, step = (rate_for(kernel) if is_log else rates[0], rates[1]), step + count
            seen = after(seen.weights, rates, count, count)
            yield math.log1p(step) / math.log1p(most), f"{words}, step {step:,}"
    table = np.asarray(rows).reshape(-1, 4)
    clock_of, changes, differences, losses = table.T.tolist()
    kept = sorted({round(at) for at in np.linspace(0, len(rows) - 1, min(len(rows), NUM_KEPT))})
    path = dict(zip(("clock", "change", "difference"), table[kept].T.tolist(), strict=False))
    return HorizonRun(
        regime=name, rate=rate, seed=seed, num_steps=step, log_loss=losses[-1] if losses else math.nan, **path,
        kernel=departure(clock_of, changes, spec.kernel_threshold, outcome),
        outputs=departure(clock_of, differences, spec.output_threshold, outcome),
    )  # fmt: skip


def _ended(spec: HorizonSpec, name: str, step: int, rows: Sequence[tuple[float, ...]]) -> str:
    """How a run ends at its last record; empty if it continues."""
    clock, *_, loss = rows[-1]
    if name == "square" and loss <= math.log(spec.loss_threshold):
        return "converged"
    is_over = step >= spec.most_steps(name) or (name == "cross-entropy" and clock >= spec.max_log_loss)
    if name in ("large-rate", "weight-decay"):  # it has left for good
        _, change, difference, _ = map(max, zip(*rows, strict=True))
        is_over |= change > spec.kernel_threshold and difference > spec.output_threshold
    return "over-budget" if is_over else ""


def _at_loss(loss: float, linear: Sequence[tuple[float, np.ndarray]]) -> np.ndarray:
    """The linear model's f − f₀ when its log L was this, between two of its records; NaN if it did not get there."""
    at = next((index for index in reversed(range(len(linear))) if linear[index][0] >= loss), 0)
    (high, before), (low, after) = linear[at], linear[min(at + 1, len(linear) - 1)]
    share = math.nan if low > loss else (high - loss) / (high - low) if high > low else 0.0
    return before + share * (after - before)


def _in_float64(weights: Array) -> Array:
    return weights.astype(jnp.float64) if jnp.issubdtype(weights.dtype, jnp.floating) else weights


def log_loss(f: Array, y: Array) -> Array:
    """log of the mean of log(1 + e^(−yf)), also where that is below the least number of its type."""
    margins = y * f
    is_large = margins > 30  # there log(1 + e^(−margin)) is e^(−margin)
    each = jnp.where(is_large, -margins, jnp.log(jnp.logaddexp(0.0, -jnp.where(is_large, 0.0, margins))))
    return jax.nn.logsumexp(each) - math.log(each.size)


class _Seen(NamedTuple):
    """Weights, log L and f − f₀ at the test points of both models, and K of the network as a matrix."""

    weights: Weights
    log_losses: tuple[Array, Array]
    outputs: tuple[Array, Array]
    kernel: Array

    @property
    def linear(self) -> tuple[float, np.ndarray]:
        """log L and f − f₀ of the linear model."""
        return float(self.log_losses[1]), np.asarray(self.outputs[1])


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    net: Network, is_log: bool, weights: Weights, origin: NetworkParams, fixed: NetworkParams,
    points: tuple[Array, Array, Array], rates: tuple[float, float], decay: float, counts: tuple[int, int],
) -> _Seen:  # fmt: skip
    """Steps of the network and of its linear model, then what is measured of both; one program for all of a run."""
    x, x_test, y = points
    network = NetworkModel(net, Loss("linear"))

    def after(
        model: Model, stays: PyTree, start: NetworkParams, rate: float, count: int
    ) -> tuple[NetworkParams, Array, Array]:
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
