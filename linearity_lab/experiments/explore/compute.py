"""Networks beside their linear models at one width.

Kernel change, Hessian norm, logits and losses.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from linearity_lab.data import Dataset
from linearity_lab.experiments.explore.point import DrawnKernel, ExplorePoint, ExploreRun, Rows
from linearity_lab.experiments.explore.spec import ExploreSpec
from linearity_lab.experiments.kernel_change.compute import PREPARED, side_by_side
from linearity_lab.experiments.kernel_change.linear_model import MAX_ROWS
from linearity_lab.experiments.kernel_change.spec import TrainingGroup
from linearity_lab.experiments.train_options import levels_of, train_options
from linearity_lab.networks.build import build_network
from linearity_lab.networks.sizes import num_copies
from linearity_lab.runs import Counted
from ntk_core.dynamics import (
    Descent,
    KernelChangeMeasure,
    Loss,
    Measure,
    Model,
    Samples,
    Start,
    TrainOptions,
    changes_along,
    compile_steps,
    compiled,
    descend,
    linear_path,
    network_of_seeds,
    short_runs,
)
from ntk_core.hessians import hessian_norms_by_output
from ntk_core.networks.architectures import Network, NetworkParams, output_function
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

TOLERANCE = 1e-2  # of ‖H‖, drawn on a logarithmic axis; our choice
MAX_MATVECS = 128


def compute(spec: ExploreSpec, data: Dataset, key: str, progress: Progress) -> ExplorePoint:
    """Compute one width, all outputs and seeds; show the point after each training."""
    width = spec.value_of(key)
    net = build_network(spec.architecture, width, data.num_outputs, "linear")
    # Not compiled as a whole: the drawing programs serve all widths.
    params = [net.init(initial_key(seed, width), data.input_shape) for seed in spec.seeds]
    plan = _Plan(spec, data, net, params, followed_points(data, spec.num_followed))
    num_threads = trainings_at_once(spec, key)
    works, alone = _works(plan, num_threads)
    found: list[_Found] = []
    num_shown = 0

    def finished(one: _Found) -> str:
        found.append(one)
        return f"width {width:,}: {len(found)} of {len(works)} parts"

    def report(fraction: float, message: str) -> None:
        """Pass a report on, and show the point if a part has ended since."""
        nonlocal num_shown
        progress.report(fraction, message)
        if num_shown < len(found) < len(works) and any(one.runs for one in found):
            num_shown = len(found)
            progress.show(_point_of(plan, width, found))

    network = Counted.of(spec, spec.architecture, width, num_copies(spec.architecture))
    with short_runs(levels_of(spec.training, network)):
        side_by_side(works, Progress(report), num_threads, finished, alone)
    return _point_of(plan, width, found)


class _Plan(NamedTuple):
    """Shared inputs of all parts of a point."""

    spec: ExploreSpec
    data: Dataset
    net: Network
    params: Sequence[NetworkParams]  # w₀ of every seed
    followed: Sequence[int]

    def models(
        self, group: TrainingGroup, index: int
    ) -> tuple[dict[str, Model], dict[str, Start], Samples]:
        """Return network and data of a training; all trainings share one program of steps."""
        # Copies, since training overwrites them; on the host, where a new shape compiles nothing.
        params = jax.tree.map(lambda leaf: jnp.array(np.asarray(leaf)[None]), self.params[index])
        losses = tuple(Loss(each.loss_output) for each in self.spec.groups)
        loss = Loss(group.loss_output)
        return network_of_seeds(self.net, params, self.data.x, self.data.y, loss, losses=losses)

    @property
    def options(self) -> TrainOptions:
        return train_options(self.spec.training, together=True)


class _Found(NamedTuple):
    """Runs and drawn kernels of one training, or norms by output and seed."""

    runs: Sequence[ExploreRun] = ()
    kernels: Sequence[DrawnKernel] = ()
    norms: Mapping[tuple[str, int], Mapping[str, object]] = {}


def _works(plan: _Plan, num_threads: int) -> tuple[list[Callable[[Progress], _Found]], list[int]]:
    """Return the parts of a point in order, and the reports of each before the next begins."""
    works: list[Callable[[Progress], _Found]] = []
    alone = []
    if num_threads > 1:
        # The first training begins at once, while its steps are compiled beside it.
        works.append(partial(_compiled_steps, plan))
        alone.append(0)
    for index in range(plan.spec.num_seeds):
        for group in plan.spec.groups:
            works.append(partial(_trained, plan, group, index))
        if index == 0 and plan.spec.num_inputs:  # one program for all seeds
            works.append(partial(_hessian_norms, plan))
    alone += [PREPARED] * (len(works) - len(alone))
    return works, alone


def _point_of(plan: _Plan, width: int, found: Sequence[_Found]) -> ExplorePoint:
    """Join the parts that have ended; runs and kernels are in the order of the outputs."""
    outputs = plan.spec.outputs
    norms: dict[tuple[str, int], Mapping[str, object]] = {}  # by output and seed
    kernels: list[DrawnKernel] = []
    for one in found:
        norms.update(one.norms)
        kernels.extend(one.kernels)
    runs = []
    for one in found:
        for run in one.runs:
            of_run = norms.get((run.output, run.seed), {})
            runs.append(run.model_copy(update=of_run))
    return ExplorePoint(
        width=width,
        num_params=plan.net.num_params(plan.data.input_shape, only_trained=True),
        runs=tuple(sorted(runs, key=lambda run: (outputs.index(run.output), run.seed))),
        followed=tuple(plan.followed),
        targets=_digits(plan.data.y[plan.followed], 4),
        kernels=tuple(sorted(kernels, key=lambda each: outputs.index(each.output))),
    )


def trainings_at_once(spec: ExploreSpec, key: str) -> int:
    """Return the number of threads on a CPU: small programs use one core, and so do compilers."""
    return min(4, os.cpu_count() or 1) if jax.default_backend() == "cpu" else 1


def _compiled_steps(plan: _Plan, progress: Progress) -> _Found:
    """Compile the steps of all trainings and the first linear model, beside the first kernel."""
    first = plan.spec.groups[0]
    compile_steps(*plan.models(first, 0), plan.options)
    y = np.asarray(plan.data.y)
    num_records = plan.spec.training.num_records + 1
    # Zeros of the shapes of the first training, without a step; the result is not read.
    kernel = np.zeros((len(y), len(y), y.shape[1], y.shape[1]), np.float32)
    outputs = np.zeros((1, *y.shape), np.float32)
    beside_linear_model(
        Loss(first.loss_output), first.observed, kernel, outputs, y, 0.0, [0], num_records
    )
    return _Found()


def _trained(plan: _Plan, group: TrainingGroup, index: int, progress: Progress) -> _Found:
    """Train one network and its linear model by the same steps."""
    spec, data, *_ = plan
    title = OUTPUTS[group.trained_output].title
    progress = progress.named(f"{title}, seed {spec.seeds[index]}")
    followed = plan.followed
    progress.report(0.0, "initial kernel")
    loss = Loss(group.loss_output)
    change = KernelChangeMeasure(group.observed)
    path = _Path(group.observed)
    descend(*plan.models(group, index), plan.options, [change, path], progress)
    recorded = change.result()
    steps = recorded[group.observed[0]][0].steps
    rate = recorded[group.observed[0]][0].learning_rate
    assert change.kernel is not None
    kernel = np.asarray(change.kernel)[0]
    y = np.asarray(data.y)
    num_records = spec.training.num_records + 1
    beside = beside_linear_model(
        loss, group.observed, kernel, np.stack(path.pre_outputs), y, rate, steps, num_records
    )
    runs = []
    for output in group.observed:
        outputs, linear = beside.outputs[output]
        is_first = index == 0
        runs.append(
            ExploreRun.read_off(
                recorded[output][0],
                output=output,
                seed=spec.seeds[index],
                loss_linear=beside.losses,
                difference=_relative(outputs, linear),
                outputs=_blocks(outputs[:, followed]) if is_first else (),
                outputs_linear=_blocks(linear[:, followed]) if is_first else (),
                linear_model_change=beside.softmax_changes if output == "softmax" else (),
            )
        )
    kept = path.kernels if index == 0 else []
    drawn = drawn_points(data, spec.num_drawn)
    return _Found(runs, _drawn_kernels(kept, drawn) if kept and drawn else ())


class _Path(Measure[None]):
    """Pre-outputs and kernels of one network.

    Attributes:
        pre_outputs: f on all training points at every record, (n, C) each.
        kernels: at w₀ and at the last record, by output, (n, n, C, C) each.
    """

    def __init__(self, outputs: tuple[str, ...]):
        self.pre_outputs: list[np.ndarray] = []
        self.kernels: list[dict[str, np.ndarray]] = []
        self._outputs = outputs

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        network = models["network"]
        kernels = network.kernels_of(self._outputs)
        at_record = {output: np.asarray(kernel)[0] for output, kernel in kernels.items()}
        self.kernels[1:] = [at_record]
        self.pre_outputs.append(np.asarray(network.pre_outputs)[0])


class BesideLinearModel(NamedTuple):
    """A trained linear model beside its network, at the recorded steps.

    Attributes:
        losses: of the trained linear model.
        outputs: F of the network and F_lin, (T, n, C) each in float64, by output φ.
        softmax_changes: ΔK(t) of softmax(f_lin), as of :func:`ntk_core.dynamics.softmax_changes`;
            empty without an observed softmax, and for a large kernel.
    """

    losses: tuple[float, ...]
    outputs: Mapping[str, tuple[np.ndarray, np.ndarray]]
    softmax_changes: tuple[float, ...] = ()


def beside_linear_model(
    loss: Loss,
    observed: tuple[str, ...],
    kernel: np.ndarray,
    f: np.ndarray,
    y: np.ndarray,
    rate: float,
    steps: Sequence[int],
    num_records: int,
) -> BesideLinearModel:
    """Train the linear model of F by its kernel, and evaluate it beside the network.

    Args:
        loss: with its F, the pre-outputs or φ of them.
        observed: outputs φ. One that the loss applies itself is expanded to first order.
        kernel: of the pre-outputs at w₀, (n, n, C, C).
        f: pre-outputs of the network at the recorded steps, (T, n, C).
        y: targets, (n, C).
        steps: recorded steps, T of them, starting at 0.
        num_records: usual T. Shorter records are repeated to this length, so that one
            program serves all runs.
    """
    num_kept = len(steps)
    padded_steps = np.asarray(_repeated(steps, num_records), np.int32)
    padded = np.concatenate([f, np.repeat(f[-1:], len(padded_steps) - num_kept, axis=0)])
    with_softmax = "softmax" in observed and y.size <= MAX_ROWS
    assert not with_softmax or loss.model_output == "linear"  # the path is that of f_lin
    # Changes of a softmax near 0 or 1 need float64, as does the path of f_lin to them.
    with jax.enable_x64(True) if with_softmax else nullcontext():
        dtype = jnp.result_type(float)
        given = [jnp.asarray(each, dtype) for each in (kernel, padded, y)]
        losses, found, changes = _beside_linear_model(
            loss, observed, with_softmax, *given, rate, padded_steps
        )
        outputs = {}
        for output, pair in found.items():
            network, linear = (np.asarray(values, np.float64)[:num_kept] for values in pair)
            outputs[output] = network, linear
        return BesideLinearModel(_numbers(losses)[:num_kept], outputs, _numbers(changes)[:num_kept])


def _numbers(values: Array) -> tuple[float, ...]:
    return tuple(np.asarray(values, float).tolist())


@compiled("data", static_argnums=(0, 1, 2))
def _beside_linear_model(
    loss: Loss,
    observed: tuple[str, ...],
    with_softmax: bool,
    kernel: Array,
    f: Array,
    y: Array,
    rate: Array | float,
    steps: Array,
) -> tuple[Array, dict[str, tuple[Array, Array]], Array]:
    """One program for all widths: its shapes are those of the data and the records."""
    start = f[0]
    trained = linear_path(loss, kernel, start, y, rate, steps)  # (T, n, C)
    losses = jax.vmap(lambda outputs: loss.of_model(outputs, y))(trained)
    found = {}
    for output in observed:
        linear = trained
        if output != loss.model_output:  # a softmax output, which the loss applies itself
            linear = expanded(output, start, trained)
        network = jax.vmap(output_function(output))(f)
        found[output] = network, linear
    changes = changes_along(kernel, start, trained) if with_softmax else jnp.zeros(0)
    return losses, found, changes


def _repeated(steps: Sequence[int], num_records: int) -> list[int]:
    """Return the steps, the last one repeated up to this number."""
    num_missing = max(0, num_records - len(steps))
    return [*steps] + [steps[-1]] * num_missing


def expanded(output: str, start: Array, linear: Array) -> Array:
    """Return φ(f₀) + φ'(f₀)(f_lin − f₀), the first-order expansion in w of φ(f), (T, n, C)."""
    function = output_function(output)

    def at(now: Array) -> Array:
        change = now - start
        value, along_change = jax.jvp(function, (start,), (change,))
        return value + along_change

    return jax.vmap(at)(linear)


def _relative(outputs: np.ndarray, linear: np.ndarray) -> tuple[float, ...]:
    """Σ ‖F − F_lin‖² / Σ ‖F_lin‖² at every record; 0 for equal ones."""
    squares = np.sum((outputs - linear) ** 2, axis=(1, 2))
    scales = np.sum(linear**2, axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(squares == 0, 0.0, squares / scales)
    return tuple(ratios.tolist())


def _hessian_norms(plan: _Plan, progress: Progress) -> _Found:
    """Return ‖H(w₀)‖ of the first output of F, by output φ and seed."""
    spec, data, net, params, _ = plan
    progress.report(0.0, "‖H‖")
    x = jnp.asarray(data.x[: spec.num_inputs], jnp.result_type(float))
    norms = hessian_norms_by_output(
        net, params, x, spec.outputs, tolerance=TOLERANCE, max_matvecs=MAX_MATVECS
    )
    found = {}
    for output, estimates in norms.items():
        for at, seed in enumerate(spec.seeds):
            found[output, seed] = {
                "hessian": float(np.mean(estimates.value[at])),
                "hessian_converged": bool(np.all(estimates.converged[at])),
            }
    return _Found(norms=found)


def followed_points(data: Dataset, count: int) -> list[int]:
    """Return training points whose logits are kept.

    Classes in rotation, or evenly spaced without classes.
    """
    num_points = len(data.x)
    count = min(count, num_points)
    if not data.class_names:
        return [round(index * (num_points - 1) / max(1, count - 1)) for index in range(count)]
    earlier = [int(np.sum(data.labels[:index] == label)) for index, label in enumerate(data.labels)]
    order = sorted(range(num_points), key=lambda index: (earlier[index], data.labels[index]))
    return order[:count]


def drawn_points(data: Dataset, count: int) -> list[int]:
    """Return evenly chosen training points, ordered by class or target."""
    order = np.argsort(data.labels if data.class_names else data.y[:, 0], kind="stable")
    count = min(count, len(order))
    chosen = np.linspace(0, len(order) - 1, count).round().astype(int)
    return [int(index) for index in order[chosen]]


def _drawn_kernels(
    kept: Sequence[dict[str, np.ndarray]], drawn: Sequence[int]
) -> list[DrawnKernel]:
    def mean_over_outputs(kernel: np.ndarray) -> Rows:
        part = kernel[np.ix_(drawn, drawn)].astype(np.float64)  # (k, k, C, C)
        return _digits(np.einsum("ijaa->ij", part) / part.shape[-1], 3)

    return [
        DrawnKernel(
            output=output,
            initial=mean_over_outputs(before),
            final=mean_over_outputs(kept[-1][output]),
        )
        for output, before in kept[0].items()
    ]


def _blocks(outputs: np.ndarray) -> tuple[Rows, ...]:
    return tuple(_digits(block, 4) for block in outputs)


def _digits(matrix: np.ndarray, count: int) -> Rows:
    """Return a matrix whose numbers have this many digits: they are only drawn."""
    return tuple(tuple(float(f"{entry:.{count}g}") for entry in row) for row in matrix)
