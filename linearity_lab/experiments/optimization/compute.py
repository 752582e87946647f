"""Gradient descent with nonlinear outputs.

The spectrum of the kernel is measured along the path, one width after the other.
"""

import math
from collections.abc import Mapping

import numpy as np

from linearity_lab.data import Dataset
from linearity_lab.experiments.kernel_change.linear_model import MAX_ROWS
from linearity_lab.experiments.optimization.point import (
    OptimizationPoint,
    OptimizationRun,
    OptimizationSpec,
)
from linearity_lab.experiments.train_options import train_options
from linearity_lab.experiments.trained_runs import every_run
from linearity_lab.networks.build import build_network
from ntk_core.dynamics import (
    BesideLinear,
    Descent,
    HistoryMeasure,
    Measure,
    TrainData,
    softmax_changes,
)
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress


def compute(
    spec: OptimizationSpec, data: Dataset, key: str, progress: Progress
) -> OptimizationPoint:
    """Compute one width, all outputs, rates and seeds."""
    found = every_run(spec, _run, data, key, progress, spec.outputs, spec.rates)
    return OptimizationPoint(num_samples=len(data.x), **found)


def _run(
    spec: OptimizationSpec,
    data: Dataset,
    key: str,
    output: str,
    rate: float,
    seed: int,
    progress: Progress,
) -> OptimizationRun:
    width = spec.value_of(key)
    progress = progress.named(f"width {width:,}: {OUTPUTS[output].title}, {rate:g} η, seed {seed}")
    progress.report(0.0, "initial kernel")
    net = build_network(spec.architecture, width, data.num_outputs, output)
    params = net.init(initial_key(seed, width), data.input_shape)
    options = train_options(spec.training, rate_factor=rate)
    points = TrainData(data.x, spec.training.targets_of(data.y), followed=())
    beside = BesideLinear(net, params, points, options, linearized=False)
    del params
    measure = HistoryMeasure(beside, num_kernel_points=len(data.x))
    at_start = _AtStart()
    compares = (
        output == "softmax"
        and spec.training.is_gradient_descent
        and len(data.x) * data.num_outputs <= MAX_ROWS
    )
    measures = [measure, at_start] if compares else [measure]
    beside.descend(measures, progress)
    history = measure.result()
    of_linear_model: tuple[float, ...] = ()
    if compares:
        of_linear_model = softmax_changes(
            at_start.kernel,
            at_start.pre_outputs,
            points.y,
            history.learning_rate,
            measure.steps,
            spec.training.loss,
        )
    return OptimizationRun.read_off(
        history.network,
        history.kernel,
        history,
        output=output,
        rate=rate,
        seed=seed,
        steps=measure.steps,
        stable_rate=math.inf if history.stable_rate is None else history.stable_rate,
        is_covered=spec.training.is_gradient_descent and spec.training.loss == "square",
        linear_model_change=of_linear_model,
    )


class _AtStart(Measure[None]):
    """Kernel of f at w₀, (n, n, C, C), and f there, (n, C)."""

    kernel: np.ndarray
    pre_outputs: np.ndarray

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        if step == 0:
            network = models["network"]
            self.kernel = np.asarray(network.kernel)
            self.pre_outputs = np.asarray(network.pre_outputs)
