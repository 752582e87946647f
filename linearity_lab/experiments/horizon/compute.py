"""Networks and their linear models in float64, until they separate.

One width and regime at a time.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.linalg import eigvalsh, norm

from linearity_lab.data import Dataset
from linearity_lab.experiments.departures import departure
from linearity_lab.experiments.horizon.point import REGIMES, HorizonPoint, HorizonRun, HorizonSpec
from linearity_lab.experiments.trained_runs import every_run
from linearity_lab.networks.build import build_network
from ntk_core.dynamics import LinearPair, report_step
from ntk_core.networks.architectures import ScaledNetwork, Subtracted
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

NORMALIZED_STEP = 0.2  # of the largest K(x, x), in a step along −∇ log L; our choice
NUM_KEPT = 48  # stored records of a path
# Of ±1 above the stable rate: balanced ones are nearly orthogonal to the top eigenvector of K₀.
TARGET_SHIFT = 1.0
Outcome = Literal["converged", "over-budget", "diverged", "dead"]


def compute(spec: HorizonSpec, data: Dataset, key: str, progress: Progress) -> HorizonPoint:
    """Compute one width and regime, all rates and seeds."""
    rates = spec.rates_of(spec.value_of(key)[1])
    return HorizonPoint(**every_run(spec, _run, data, key, progress, rates))


def _run(
    spec: HorizonSpec, data: Dataset, key: str, rate: float, seed: int, progress: Progress
) -> HorizonRun:
    """Train one network and its linear model until they separate, or until the budget ends."""
    width, name = spec.value_of(key)
    progress = progress.named(f"width {width:,}: {name.replace('-', ' ')}, seed {seed}")
    progress.report(0.0, "initial kernel")
    pair = _initial_pair(spec, data, width, name, seed)
    path = _path(spec, len(data.y), name, rate, pair, progress)
    clock = [record.clock for record in path.records]
    changes = [record.change for record in path.records]
    differences = [record.difference for record in path.records]
    # Every record decides the departures; a sample of them is stored.
    last = len(path.records) - 1
    num_kept = min(len(path.records), NUM_KEPT)
    kept = sorted({round(at) for at in np.linspace(0, last, num_kept)})
    return HorizonRun(
        regime=name,
        rate=rate,
        seed=seed,
        num_steps=path.num_steps,
        log_loss=path.records[-1].log_loss if path.records else math.nan,
        clock=tuple(clock[at] for at in kept),
        change=tuple(changes[at] for at in kept),
        difference=tuple(differences[at] for at in kept),
        kernel=departure(clock, changes, spec.kernel_threshold, path.outcome),
        outputs=departure(clock, differences, spec.output_threshold, path.outcome),
    )


def _initial_pair(spec: HorizonSpec, data: Dataset, width: int, name: str, seed: int) -> LinearPair:
    """Draw the network, with outputs 0 at w₀, and its linear model, in float64."""
    architecture = build_network(spec.architecture, width, data.num_outputs, "linear")
    net = Subtracted(ScaledNetwork(architecture, spec.scale))
    # In float32, as in every other experiment.
    params = net.init(initial_key(seed, width), data.input_shape)
    is_log = _is_log(name)
    y = np.asarray(data.y, np.float64)
    if is_log and data.num_outputs > 1:
        y = 2 * y - 1
    elif name == "large-rate":
        y = y + TARGET_SHIFT
    return LinearPair(net, params, data.x, y, data.x_test, is_log, _decay(spec, name))


def _is_log(name: str) -> bool:
    """Whether steps follow −∇ log L of the cross-entropy, whose time has no end."""
    return name == "cross-entropy"


def _decay(spec: HorizonSpec, name: str) -> float:
    return spec.decay if name == "weight-decay" else 0.0


class _Record(NamedTuple):
    """Both models between two stretches of training."""

    clock: float  # ln of the loss or time, as the regime measures it
    change: float  # ΔK of the network
    difference: float  # of both outputs, relative to those of the linear model
    log_loss: float


class _Path(NamedTuple):
    """The records of a training and how it ended."""

    records: list[_Record]
    num_steps: int
    outcome: Outcome


def _path(
    spec: HorizonSpec,
    num_samples: int,
    name: str,
    rate: float,
    pair: LinearPair,
    progress: Progress,
) -> _Path:
    """Train both models in stretches, and record them between stretches."""
    records: list[_Record] = []
    step = 0
    if not pair.first.any():
        return _Path(records, step, "dead")
    is_log = _is_log(name)
    most = spec.most_steps(name)

    def rate_for(kernel: np.ndarray) -> float:
        if is_log:
            return NORMALIZED_STEP / float(kernel.diagonal().max())
        return rate * num_samples / float(eigvalsh(kernel)[-1])

    first_rate = rate_for(pair.first)
    rates = (first_rate, first_rate)  # of the network and the linear model
    while pair.is_finite:
        kernel = pair.kernel
        records.append(_record(spec, name, step, pair, rates))
        if not kernel.any():  # training has stopped
            return _Path(records, step, "over-budget")
        outcome = _outcome(spec, name, step, records)
        if outcome is not None:
            return _Path(records, step, outcome)
        count = min(REGIMES[name].stretch(step), most - step)
        if is_log:
            rates = (rate_for(kernel), rates[1])
        step += count
        pair.advance(rates, count, count)
        report_step(progress, step, most)
    return _Path(records, step, "diverged")


def _record(
    spec: HorizonSpec, name: str, step: int, pair: LinearPair, rates: tuple[float, float]
) -> _Record:
    f = pair.outputs
    log_loss = pair.log_loss
    change = pair.change
    if _is_log(name):
        every = REGIMES[name].every
        f_linear = pair.linear_at_equal_loss(rates, every, spec.max_steps // every)
    else:
        f_linear = pair.linear_outputs()
    size = float(norm(f_linear))
    if name == "large-rate":
        clock = float(step)
    elif name == "weight-decay":
        clock = spec.decay * step
    else:
        clock = -log_loss
    difference = float(norm(f - f_linear)) / size if size else 0.0
    return _Record(clock, change, difference, log_loss)


def _outcome(spec: HorizonSpec, name: str, step: int, records: Sequence[_Record]) -> Outcome | None:
    """Return the outcome at the last record; None if training continues."""
    last = records[-1]
    if name == "square" and last.log_loss <= math.log(spec.loss_threshold):
        return "converged"
    is_over = step >= spec.most_steps(name)
    if _is_log(name):
        is_over |= last.clock >= spec.max_log_loss
    if name in ("large-rate", "weight-decay"):  # departures are final there
        kernel_departed = max(each.change for each in records) > spec.kernel_threshold
        outputs_departed = max(each.difference for each in records) > spec.output_threshold
        is_over |= kernel_departed and outputs_departed
    return "over-budget" if is_over else None
