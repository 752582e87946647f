"""Networks and their linear models, trained side by side, one width at a time."""

import numpy as np

from linearity_lab.data import Dataset
from linearity_lab.experiments.dynamics.point import (
    DynamicsPoint,
    DynamicsRun,
    DynamicsSpec,
    ModelPath,
)
from linearity_lab.experiments.train_options import train_options
from linearity_lab.experiments.trained_runs import every_run
from linearity_lab.networks.build import build_network
from ntk_core.dynamics import (
    BesideLinear,
    HistoryMeasure,
    KernelPath,
    Loss,
    Optimizer,
    Path,
    TrainData,
    TrainingHistory,
)
from ntk_core.dynamics.choices import LOSSES, METHODS
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress


def compute(spec: DynamicsSpec, data: Dataset, key: str, progress: Progress) -> DynamicsPoint:
    """Compute one width, all outputs, methods and seeds."""
    found = every_run(spec, _run, data, key, progress, spec.outputs, spec.methods)
    followed = _followed(data.labels, len(data.x), spec)
    followed_test = _followed(data.labels_test, len(data.x_test), spec)
    return DynamicsPoint(
        x=_rows(data.x[followed].reshape(len(followed), -1)) if spec.is_curve else (),
        y=_rows(LOSSES[spec.loss].targets_of(data.y)[followed]),
        x_test=_rows(data.x_test[followed_test].reshape(len(followed_test), -1))
        if spec.is_curve
        else (),
        y_test=_rows(LOSSES[spec.loss].targets_of(data.y_test)[followed_test]),
        **found,
    )


def _run(
    spec: DynamicsSpec,
    data: Dataset,
    key: str,
    output: str,
    method: str,
    seed: int,
    progress: Progress,
) -> DynamicsRun:
    width = spec.value_of(key)
    progress = progress.named(
        f"width {width:,}, seed {seed}: {OUTPUTS[output].title}, {method.replace('-', ' ')}"
    )
    progress.report(0.0, "initial kernel")
    net = build_network(spec.architecture, width, data.num_outputs, output)
    chosen = METHODS[method]
    batch_size = spec.batch_size if chosen.batches == "always" else None
    options = train_options(
        spec.training,
        loss=Loss(output, spec.loss),
        optimizer=Optimizer(method, spec.momentum, batch_size),
        rate_factor=chosen.rate_factor,
        key=initial_key(seed, width),
    )
    points = TrainData(
        data.x,
        LOSSES[spec.loss].targets_of(data.y),
        data.x_test,
        LOSSES[spec.loss].targets_of(data.y_test),
        followed=_followed(data.labels, len(data.x), spec),
        followed_test=_followed(data.labels_test, len(data.x_test), spec),
    )
    beside = BesideLinear(
        net,
        net.init(initial_key(seed, width), data.input_shape),
        points,
        options,
        infinite_width=spec.infinite_width and output == "linear" and chosen.is_linear,
    )
    history = HistoryMeasure(beside)
    beside.descend([history], progress)
    return _of_history(output, method, seed, history.result(), keep_outputs=seed == spec.seed)


def _followed(labels: np.ndarray, count: int, spec: DynamicsSpec) -> list[int]:
    """Indices of followed points: classes in rotation; the first points without classes.

    All of a curve.
    """
    if spec.is_curve:
        return list(range(count))
    if not labels.size:
        return list(range(min(count, spec.num_followed)))
    turn = [int(np.sum(labels[:index] == label)) for index, label in enumerate(labels)]
    order = sorted(range(count), key=lambda index: (turn[index], labels[index]))
    return order[: spec.num_followed]


def _of_history(
    output: str, method: str, seed: int, history: TrainingHistory, *, keep_outputs: bool
) -> DynamicsRun:
    kernel = history.kernel
    linearized = history.linearized
    assert isinstance(kernel, KernelPath)
    assert isinstance(linearized, Path)
    assert history.difference is not None
    infinite = None if history.infinite is None else _path(history.infinite, keep_outputs)
    return DynamicsRun.read_off(
        kernel,
        history,
        output=output,
        method=method,
        seed=seed,
        network=_path(history.network, keep_outputs),
        linearized=_path(linearized, keep_outputs),
        infinite=infinite,
        largest_distance=_row(history.network.largest_distance),
        layer_change={name: _row(values) for name, values in kernel.layer_change.items()},
        difference=_row(history.difference.relative),
        test_difference=_row(history.test_difference.relative) if history.test_difference else (),
    )


def _path(path: Path, keep_outputs: bool) -> ModelPath:
    assert path.outcome != "finished"  # a threshold is always set
    left_out = [] if np.isfinite(path.accuracy[0]) else ["accuracy", "test_accuracy"]
    left_out += [] if keep_outputs else ["outputs", "test_outputs"]
    return ModelPath.read_off(path, **dict.fromkeys(left_out, ()))


def _row(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.tolist())


def _rows(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(map(_row, matrix))
