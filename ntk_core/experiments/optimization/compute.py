"""Gradient descent with nonlinear outputs, with the spectrum of the kernel along the path, one width at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Generator

import jax

from ntk_core.data import Dataset, data_fingerprint, load_dataset
from ntk_core.dynamics import KernelPath, Loss, Training, TrainingHistory
from ntk_core.experiments.optimization.result import OptimizationPoint, OptimizationRun
from ntk_core.experiments.optimization.spec import OptimizationSpec
from ntk_core.networks.build import build_network
from ntk_core.runs import rounded

Progress = tuple[float, str]


def load(spec: OptimizationSpec) -> Dataset:
    """The data of the spec."""
    return load_dataset(spec.dataset.name, **spec.dataset.options())


def fingerprint(data: Dataset) -> str:
    """SHA-256 of the data, for the provenance."""
    return data_fingerprint(data)


def compute(spec: OptimizationSpec, data: Dataset, key: str) -> Generator[Progress, None, OptimizationPoint]:
    """All outputs, rates and seeds of one width; yields (fraction, message) between stretches of work."""
    began, width = time.monotonic(), spec.value_of(key)
    seeds = range(spec.seed, spec.seed + spec.num_seeds)
    plan = [(output, rate, seed) for output in spec.outputs for rate in spec.rates for seed in seeds]
    runs, num_params = [], 0
    for index, (output, rate, seed) in enumerate(plan):
        words = f"width {width:,}: {output} output, {rate:g} η, seed {seed}"
        yield index / len(plan), f"{words}, first kernel"
        net = build_network(spec.architecture, width, data.num_outputs, output)
        params = net.init(jax.random.key(seed), data.input_shape)
        num_params = net.num_params(data.input_shape, only_trained=True)
        training = Training(
            net,
            params,
            data.x,
            data.y,
            loss=Loss(output, "square"),
            learning_rate=spec.training.learning_rate,
            rate_factor=rate,
            max_steps=spec.training.max_steps,
            num_records=spec.training.num_records,
            loss_threshold=spec.training.loss_threshold,
            followed=(),
            linearized=False,
            num_kernel_points=len(data.x),
        )
        del params
        for step in training.stretches():
            share = math.log1p(step) / math.log1p(spec.training.max_steps)
            yield (index + share) / len(plan), f"{words}, step {step:,}"
        runs.append(_run(output, rate, seed, training.history()))
    return OptimizationPoint(
        width=width,
        num_params=num_params,
        num_samples=len(data.x),
        runs=tuple(runs),
        runtime_s=time.monotonic() - began,
    )


def _run(output: str, rate: float, seed: int, history: TrainingHistory) -> OptimizationRun:
    kernel, path = history.kernel, history.network
    assert isinstance(kernel, KernelPath)
    assert history.stable_rate is not None  # gradient descent has one
    assert path.outcome != "finished"  # there is always a threshold here
    return OptimizationRun(
        output=output,
        rate=rate,
        seed=seed,
        learning_rate=history.learning_rate,
        stable_rate=history.stable_rate,
        outcome=path.outcome,
        last_finite_step=path.last_finite_step,
        steps=tuple(int(step) for step in history.steps),
        loss=rounded(path.loss),
        change=rounded(kernel.change),
        smallest=rounded(kernel.smallest),
        largest=rounded(kernel.largest),
        pre_output_smallest=rounded(kernel.pre_output_smallest),
        pl_ratio=rounded(path.pl_ratio),
    )
