"""Gradient descent with nonlinear outputs, with the spectrum of the kernel along the path, one width at a time."""

from collections.abc import Generator

from linearity_lab.data import Dataset
from linearity_lab.experiments.optimization.point import (
    OptimizationPoint,
    OptimizationRun,
    OptimizationSpec,
)
from linearity_lab.networks.build import build_network
from linearity_lab.runs import Progress, by_steps
from ntk_core.dynamics import Loss, Training
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key


def compute(
    spec: OptimizationSpec, data: Dataset, key: str
) -> Generator[Progress, None, OptimizationPoint]:
    """Compute one width, all outputs, rates and seeds; yield (fraction, message)."""
    found = yield from spec.every_run(_run, data, key, spec.outputs, spec.rates)
    return OptimizationPoint(num_samples=len(data.x), **found)


def _run(
    spec: OptimizationSpec, data: Dataset, key: str, output: str, rate: float, seed: int
) -> Generator[Progress, None, OptimizationRun]:
    width = spec.value_of(key)
    words = f"width {width:,}: {OUTPUTS[output].title}, {rate:g} η, seed {seed}"
    yield 0.0, f"{words}, initial kernel"
    net = build_network(spec.architecture, width, data.num_outputs, output)
    params, loss = net.init(initial_key(seed, width), data.input_shape), Loss(output, "square")
    settings = {"rate_factor": rate, "num_kernel_points": len(data.x), **spec.training.model_dump()}
    training = Training(
        net, params, data.x, data.y, loss=loss, followed=(), linearized=False, **settings
    )
    del params
    yield from by_steps(training.stretches(), spec.training.max_steps, words)
    history, steps = training.history(), tuple(training.steps)
    return OptimizationRun.read_off(
        history.network, history.kernel, history, output=output, rate=rate, seed=seed, steps=steps
    )
