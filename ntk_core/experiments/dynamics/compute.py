"""A network and its linear model, trained side by side, one width at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Generator

import jax
import numpy as np

from ntk_core.data import Dataset, data_fingerprint, load_dataset
from ntk_core.dynamics import KernelPath, Loss, Optimizer, Path, Training, TrainingHistory
from ntk_core.experiments.dynamics.result import DynamicsPoint, DynamicsRun, ModelPath
from ntk_core.experiments.dynamics.spec import DynamicsSpec
from ntk_core.networks.build import build_network
from ntk_core.runs import rounded

Progress = tuple[float, str]
RATE_FACTORS = {"large-rate": 3.6, "beyond-stable": 6.0}


def load(spec: DynamicsSpec) -> Dataset:
    """The data of the spec, with test points."""
    return load_dataset(spec.dataset.name, **spec.data_options())


def fingerprint(data: Dataset) -> str:
    """SHA-256 of the data, for the provenance."""
    return data_fingerprint(data)


def compute(spec: DynamicsSpec, data: Dataset, key: str) -> Generator[Progress, None, DynamicsPoint]:
    """All outputs, methods and seeds of one width; yields (fraction, message) between stretches of work."""
    began, width = time.monotonic(), spec.value_of(key)
    seeds = range(spec.seed, spec.seed + spec.num_seeds)
    plan = [(output, method, seed) for output in spec.outputs for method in spec.methods for seed in seeds]
    followed = _followed(data.labels, len(data.x), spec)
    followed_test = _followed(data.labels_test, len(data.x_test), spec)
    runs, num_params = [], 0
    for index, (output, method, seed) in enumerate(plan):
        words = f"width {width:,}: {output} output, {method.replace('-', ' ')}, seed {seed}"
        yield index / len(plan), f"{words}, first kernel"
        net = build_network(spec.architecture, width, data.num_outputs, output)
        params = net.init(jax.random.key(seed), data.input_shape)
        num_params = net.num_params(data.input_shape, only_trained=True)
        training = Training(
            net,
            params,
            data.x,
            _targets(data.y, spec),
            loss=Loss(output, spec.loss),
            optimizer=_optimizer(spec, method),
            learning_rate=spec.training.learning_rate,
            rate_factor=RATE_FACTORS.get(method, 1.0),
            max_steps=spec.training.max_steps,
            num_records=spec.training.num_records,
            loss_threshold=spec.training.loss_threshold,
            x_test=data.x_test,
            y_test=_targets(data.y_test, spec),
            followed=followed,
            followed_test=followed_test,
            key=jax.random.key(seed),
            infinite_width=spec.infinite_width and _has_prediction(output, method),
        )
        del params
        for step in training.stretches():
            share = math.log1p(step) / math.log1p(spec.training.max_steps)
            yield (index + share) / len(plan), f"{words}, step {step:,}"
        runs.append(_run(output, method, seed, training.history(), keep_outputs=seed == spec.seed))
    return DynamicsPoint(
        width=width,
        num_params=num_params,
        x=_rows(data.x[followed].reshape(len(followed), -1)) if spec.is_curve else (),
        y=_rows(_targets(data.y, spec)[followed]),
        x_test=_rows(data.x_test[followed_test].reshape(len(followed_test), -1)) if spec.is_curve else (),
        y_test=_rows(_targets(data.y_test, spec)[followed_test]),
        runs=tuple(runs),
        runtime_s=time.monotonic() - began,
    )


def _optimizer(spec: DynamicsSpec, method: str) -> Optimizer:
    if method == "sgd":
        return Optimizer("sgd", batch_size=spec.batch_size)
    if method == "momentum":
        return Optimizer("momentum", momentum=spec.momentum)
    return Optimizer("adam" if method == "adam" else "gradient-descent")


def _has_prediction(output: str, method: str) -> bool:
    return output == "linear" and method != "adam"


def _targets(y: np.ndarray, spec: DynamicsSpec) -> np.ndarray:
    """One-hot, or ±1 for the logistic loss."""
    return 2 * y - 1 if spec.loss == "logistic" else y


def _followed(labels: np.ndarray, count: int, spec: DynamicsSpec) -> list[int]:
    """Points that take turns among the classes, the first of each first; all of a curve."""
    if spec.is_curve:
        return list(range(count))
    turn = [int(np.sum(labels[:index] == label)) for index, label in enumerate(labels)]
    order = sorted(range(count), key=lambda index: (turn[index], labels[index]))
    return order[: spec.num_followed]


def _run(output: str, method: str, seed: int, history: TrainingHistory, *, keep_outputs: bool) -> DynamicsRun:
    kernel, linearized = history.kernel, history.linearized
    assert isinstance(kernel, KernelPath)
    assert isinstance(linearized, Path)
    assert history.difference is not None
    infinite = None if history.infinite is None else _path(history.infinite, keep_outputs)
    return DynamicsRun(
        output=output,
        method=method,
        seed=seed,
        learning_rate=history.learning_rate,
        stable_rate=history.stable_rate,
        steps=tuple(int(step) for step in history.steps),
        network=_path(history.network, keep_outputs),
        linearized=_path(linearized, keep_outputs),
        infinite=infinite,
        largest_distance=rounded(history.network.largest_distance),
        change=rounded(kernel.change),
        smallest=rounded(kernel.smallest),
        largest=rounded(kernel.largest),
        layer_change={name: rounded(values) for name, values in kernel.layer_change.items()},
        difference=rounded(history.difference.relative),
        test_difference=rounded(history.test_difference.relative if history.test_difference else ()),
    )


def _path(path: Path, keep_outputs: bool) -> ModelPath:
    assert path.outcome != "finished"  # there is always a threshold here
    has_classes = bool(np.isfinite(path.accuracy[0]))
    return ModelPath(
        outcome=path.outcome,
        last_finite_step=path.last_finite_step,
        loss=rounded(path.loss),
        test_loss=rounded(path.test_loss),
        accuracy=rounded(path.accuracy) if has_classes else (),
        test_accuracy=rounded(path.test_accuracy) if has_classes else (),
        distance=rounded(path.distance),
        outputs=tuple(map(_rows, path.outputs)) if keep_outputs else (),
        test_outputs=tuple(map(_rows, path.test_outputs)) if keep_outputs else (),
    )


def _rows(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(rounded(row) for row in matrix)
