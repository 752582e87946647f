"""Networks and their linear models in float64, until they separate; one width and regime at a time."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.linalg import eigvalsh, norm

from linearity_lab.data import Dataset
from linearity_lab.experiments.departures import departure
from linearity_lab.experiments.horizon.point import REGIMES, HorizonPoint, HorizonRun, HorizonSpec
from linearity_lab.networks.build import build_network
from ntk_core.dynamics import LinearPair, report_step
from ntk_core.networks.architectures import ScaledNetwork, Subtracted
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

NORMALIZED_STEP = 0.2  # of the largest K(x, x), in a step along −∇ log L; our choice
NUM_KEPT = 48  # stored records of a path
TARGET_SHIFT = 1.0  # of ±1 above the stable rate: balanced ones are nearly orthogonal to the top eigenvector of K₀


def compute(spec: HorizonSpec, data: Dataset, key: str, progress: Progress) -> HorizonPoint:
    """Compute one width and regime, all rates and seeds."""
    rates = spec.rates_of(spec.value_of(key)[1])
    return HorizonPoint(**spec.every_run(_run, data, key, progress, rates))


def _run(
    spec: HorizonSpec, data: Dataset, key: str, rate: float, seed: int, progress: Progress
) -> HorizonRun:
    width, name = spec.value_of(key)
    every, most, is_log = REGIMES[name].every, spec.most_steps(name), name == "cross-entropy"
    progress = progress.named(f"width {width:,}: {name.replace('-', ' ')}, seed {seed}")
    progress.report(0.0, "initial kernel")
    net = Subtracted(
        ScaledNetwork(
            build_network(spec.architecture, width, data.num_outputs, "linear"), spec.scale
        )
    )
    params = net.init(
        initial_key(seed, width), data.input_shape
    )  # in float32, as in every other experiment
    y = np.asarray(data.y, np.float64)
    y = 2 * y - 1 if is_log and data.num_outputs > 1 else y + TARGET_SHIFT * (name == "large-rate")
    decay = spec.decay if name == "weight-decay" else 0.0
    pair = LinearPair(net, params, data.x, y, data.x_test, is_log, decay)

    def rate_for(kernel: np.ndarray) -> float:
        size, top = (
            (NORMALIZED_STEP, kernel.diagonal().max())
            if is_log
            else (rate * len(y), eigvalsh(kernel)[-1])
        )
        return size / float(top)

    step, outcome, rates = 0, "", (0.0, 0.0)
    if pair.first.any():
        rates = (rate_for(pair.first),) * 2
    else:
        outcome = "dead"
    rows: list[tuple[float, float, float, float]] = []  # clock, ΔK, difference of outputs, log L
    while not outcome:
        if not pair.is_finite:
            outcome = "diverged"
            break
        kernel, f, loss, change = pair.kernel, pair.outputs, pair.log_loss, pair.change
        f_linear = (
            pair.linear_at_equal_loss(rates, every, spec.max_steps // every)
            if is_log
            else pair.linear_outputs()
        )
        size = float(norm(f_linear))
        clock = {"large-rate": float(step), "weight-decay": decay * step}.get(name, -loss)
        rows.append((clock, change, size and float(norm(f - f_linear)) / size, loss))
        outcome = (
            _ended(spec, name, step, rows) if kernel.any() else "over-budget"
        )  # with a zero kernel training stops
        if not outcome:
            count = min(REGIMES[name].stretch(step), most - step)
            rates, step = (rate_for(kernel) if is_log else rates[0], rates[1]), step + count
            pair.advance(rates, count, count)
            report_step(progress, step, most)
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
    """Outcome at the last record; empty if the run continues."""
    clock, *_, loss = rows[-1]
    if name == "square" and loss <= math.log(spec.loss_threshold):
        return "converged"
    is_over = step >= spec.most_steps(name) or (
        name == "cross-entropy" and clock >= spec.max_log_loss
    )
    if name in ("large-rate", "weight-decay"):  # departures are final there
        _, change, difference, _ = map(max, zip(*rows, strict=True))
        is_over |= change > spec.kernel_threshold and difference > spec.output_threshold
    return "over-budget" if is_over else ""
