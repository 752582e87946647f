"""Kernel change along training, one width at a time (Liu, Zhu & Belkin 2020, Fig. 1 and 2)."""

import math
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from linearity_lab.data import Dataset
from linearity_lab.experiments.kernel_change import spec as costs
from linearity_lab.experiments.kernel_change.linear_model import MAX_ROWS
from linearity_lab.experiments.kernel_change.point import (
    KernelAtStart,
    KernelChangePoint,
    KernelChangeRun,
    KernelSnapshot,
)
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec, TrainingGroup
from linearity_lab.experiments.train_options import train_options
from linearity_lab.memory import accelerator_bytes, memory_limit
from linearity_lab.networks.build import build_network
from linearity_lab.runs import peak_bytes
from linearity_lab.runs.compiled_code import unfinished_directory
from linearity_lab.runs.jax_contexts import entered, jax_contexts
from ntk_core.dynamics import (
    Descent,
    KernelChangeMeasure,
    Loss,
    Measure,
    RecordedChange,
    descend,
    eigenvalues,
    kernel_velocity,
    network_of_seeds,
    over_seeds,
    softmax_changes,
    streamed_start,
)
from ntk_core.hessians import ball_sup
from ntk_core.kernels import infinite_width_ntk
from ntk_core.networks.architectures import Network, NetworkParams, num_parts
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress, Stopped

Found = TypeVar("Found")
GROWN_S = 1.0  # between partial points; our choice
PREPARED = 2  # reports of a training until its kernel at w₀ is computed
# Largest training that runs beside others; products of larger ones use all cores.
MOST_BESIDE_BYTES = 50e6


def compute(
    spec: KernelChangeSpec,
    data: Dataset,
    key: str,
    progress: Progress,
    *,
    seeds_together: int | None = None,
    name: str = "",
) -> KernelChangePoint:
    """Compute one width, all seeds and outputs, and show the trainings so far.

    Partial points come immediately for the first point of a sweep, then at most once a second,
    since drawing competes with training.

    ``seeds_together`` seeds share one compiled call (``vmap``); by default :func:`seeds_at_once`.
    ``name`` names the network in messages, if there are several.
    """
    together = seeds_together or seeds_at_once(spec, key)
    batches = [spec.seeds[first : first + together] for first in range(0, spec.num_seeds, together)]
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    # A network without output: it and its programs serve all outputs.
    net = build_network(architecture, hidden_width, data.num_outputs, "linear")
    num_params = net.num_params(data.input_shape, only_trained=True)
    works = []
    for batch in batches:
        for group in spec.groups:
            works.append(partial(_trained, spec, data, key, net, group, batch, name))
    ended: list[_Trained] = []
    shown_at = -math.inf if key == spec.point_keys()[0] else time.monotonic()
    num_shown = 0

    def point(trained: Sequence[_Trained]) -> KernelChangePoint:
        runs = [run for each in trained for run in each.runs]
        starts = [start for each in trained for start in each.starts]
        return KernelChangePoint(
            width=spec.value_of(key),
            num_params=num_params,
            runs=tuple(sorted(runs, key=lambda run: (spec.outputs.index(run.output), run.seed))),
            snapshots=tuple(snapshot for each in trained for snapshot in each.snapshots),
            at_start=tuple(
                sorted(starts, key=lambda start: (spec.outputs.index(start.output), start.seed))
            ),
        )

    def finished(trained: _Trained) -> str:
        ended.append(trained)
        return f"{name}width {spec.value_of(key):,}: {len(ended)} of {len(works)} trainings"

    def report(fraction: float, message: str) -> None:
        """Pass a report on, and show the point if a training has ended since."""
        nonlocal shown_at, num_shown
        progress.report(fraction, message)
        is_due = time.monotonic() > shown_at + GROWN_S
        if is_due and num_shown < len(ended) < len(works):
            shown_at = time.monotonic()
            num_shown = len(ended)
            grown = point([each._replace(snapshots=[]) for each in ended])
            if grown.runs:
                progress.show(grown)

    threads = trainings_at_once(spec, key)
    return point(side_by_side(works, Progress(report), threads, finished, PREPARED))


def side_by_side(
    works: Sequence[Callable[[Progress], Found]],
    progress: Progress,
    threads: int,
    finished: Callable[[Found], str],
    alone: int | Sequence[int] = 0,
) -> list[Found]:
    """Return the results of several works, of which ``threads`` run in parallel.

    All reports are passed on in the calling thread. A stop ends each work at its next report.

    Args:
        finished: called with each result in the order of their ends; returns the
            message of the report.
        alone: each work makes its first reports, of this number, before the next one starts, which
            then finds compiled programs. One number for all works, or one for each.
    """
    if min(threads, len(works)) < 2:
        found = []
        for index, work in enumerate(works):
            found.append(work(progress.part(index, len(works))))
            progress.report((index + 1) / len(works), finished(found[-1]))
        return found
    of_each = [alone] * len(works) if isinstance(alone, int) else alone
    return _SideBySide(works, threads, of_each).results(progress, finished)


class _News(NamedTuple):
    """A report of the work with this index, or its end."""

    work: int
    share: float = 1.0
    message: str = ""
    has_ended: bool = False


class _SideBySide(Generic[Found]):
    """Works in threads, which put their news into a queue."""

    def __init__(
        self, works: Sequence[Callable[[Progress], Found]], threads: int, alone: Sequence[int]
    ):
        self._works = works
        self._threads = threads
        self._alone = alone
        self._news: queue.SimpleQueue[_News] = queue.SimpleQueue()
        # A work may be one report ahead of the calling thread.
        self._ahead = [threading.Semaphore(1) for _ in works]
        self._is_stopped = threading.Event()
        self._contexts = jax_contexts()

    def results(self, progress: Progress, finished: Callable[[Found], str]) -> list[Found]:
        """Run all works, and return their results in order."""
        shares = [0.0] * len(self._works)
        num_reports = [0] * len(self._works)
        futures: list[Future[Found]] = []
        num_ended = 0
        with ThreadPoolExecutor(self._threads, "side-by-side") as pool:
            try:
                while num_ended < len(self._works):
                    num_begun = len(futures)
                    has_place = num_begun - num_ended < self._threads
                    # The last work that began has made its first reports, or has ended.
                    is_prepared = not futures or (
                        futures[-1].done()
                        or num_reports[num_begun - 1] >= self._alone[num_begun - 1]
                    )
                    if num_begun < len(self._works) and has_place and is_prepared:
                        # Threads do not inherit context variables.
                        futures.append(pool.submit(copy_context().run, self._run, num_begun))
                        continue
                    news = self._news.get()
                    index = news.work
                    shares[index] = news.share
                    message = news.message
                    if news.has_ended:
                        num_ended += 1
                        message = finished(futures[index].result())
                    num_reports[index] += 1
                    progress.report(math.fsum(shares) / len(shares), message)
                    self._ahead[index].release()
            finally:
                self._is_stopped.set()
                for each in self._ahead:
                    each.release()
        return [future.result() for future in futures]

    def _run(self, index: int) -> Found:
        def report(share: float, message: str) -> None:
            self._ahead[index].acquire()
            if self._is_stopped.is_set():
                raise Stopped
            self._news.put(_News(index, share, message))

        try:
            with entered(self._contexts):
                return self._works[index](Progress(report))
        finally:
            self._news.put(_News(index, has_ended=True))


class _Trained(NamedTuple):
    runs: list[KernelChangeRun]
    snapshots: list[KernelSnapshot]
    starts: list[KernelAtStart]


def _trained(
    spec: KernelChangeSpec,
    data: Dataset,
    key: str,
    net: Network,
    group: TrainingGroup,
    seeds: range,
    name: str,
    progress: Progress,
) -> _Trained:
    """Train one group of outputs for one batch of seeds."""
    width = spec.value_of(key)
    progress = progress.named(f"{name}width {width:,}: {OUTPUTS[group.trained_output].title}")
    progress.report(0.0, "initial kernel")
    keys = jax.vmap(lambda seed: initial_key(seed, width))(np.asarray(seeds))
    params = jax.vmap(lambda key: net.init(key, data.input_shape))(keys)
    loss = Loss(group.loss_output, group.loss)
    starts: list[KernelAtStart] = []
    if spec.takes_velocity or spec.ball_radius:
        # The share of a training counts its steps only.
        starts = _at_start(spec, data, net, params, group, seeds, progress.between(0.0, 0.0))
    if not spec.trains:
        return _Trained([], [], starts)
    infinite = None
    if spec.infinite_width and group.trained_output == "linear":
        infinite = np.asarray(infinite_width_ntk(net, data.x))
    is_streamed = costs.streams(spec)
    options = train_options(spec.training, key=keys[0], together=True)
    targets = spec.training.targets_of(data.y)
    is_dead = [False]
    if is_streamed:
        options, is_dead = streamed_start(net, params, data.x, loss, options, costs.STREAMED_BYTES)
    change = KernelChangeMeasure(group.observed, is_streamed=is_streamed)
    kept = _KeptKernels(group.observed)
    keeps = spec.keep_kernels and spec.seed in seeds
    models = network_of_seeds(net, params, data.x, targets, loss, is_dead)
    del params
    progress.report(0.0, "step 0")
    first = costs.training_share(spec, key)
    measures: list[Measure[Any]] = [change, kept] if keeps else [change]
    at_start = PreOutputsAtStart()
    compares = spec.training.is_gradient_descent and _compares_softmax(group, loss, data)
    if compares and not is_streamed:
        measures.append(at_start)
    descend(*models, options, measures, progress.between(0.0, first))
    if is_streamed:
        change.stream(
            costs.STREAMED_BYTES,
            spec.probes or None,
            seeds[0],
            unfinished_directory(),
            progress.between(first, 1.0).named("kernels"),
        )
    runs = _runs(change, at_start, infinite, seeds, data, has_errors=bool(spec.probes))
    snapshots = _snapshots(spec, data, kept, infinite) if keeps else []
    return _Trained(runs, snapshots, starts)


def _runs(
    change: KernelChangeMeasure,
    at_start: "PreOutputsAtStart",
    infinite: np.ndarray | None,
    seeds: range,
    data: Dataset,
    *,
    has_errors: bool,
) -> list[KernelChangeRun]:
    """Return the runs of every observed output and seed, from the records of one training."""
    runs = []
    for output, of_seeds in change.result().items():
        limit = infinite if output == "linear" else None
        for index, seed in enumerate(seeds):
            recorded = of_seeds[index]
            linear_model = _softmax_of_linear_model(
                output, index, change, at_start, recorded, data.y
            )
            run = KernelChangeRun.read_off(
                recorded,
                output=output,
                seed=seed,
                infinite_distance=_distance(change.kernel, index, limit),
                error=recorded.error if has_errors else (),
                linear_model_change=linear_model,
            )
            runs.append(run)
    return runs


class PreOutputsAtStart(Measure[None]):
    """Pre-outputs f at w₀, (seeds, n, C), as the descent has computed them."""

    pre_outputs: np.ndarray | None = None

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        if self.pre_outputs is None:
            self.pre_outputs = np.asarray(models["network"].pre_outputs)


def _softmax_of_linear_model(
    output: str,
    index: int,
    change: KernelChangeMeasure,
    at_start: PreOutputsAtStart,
    recorded: RecordedChange,
    y: np.ndarray,
) -> tuple[float, ...]:
    """ΔK of the softmax of the linear model of one seed; empty where it is not compared."""
    if output != "softmax" or at_start.pre_outputs is None:
        return ()
    assert change.kernel is not None
    return softmax_changes(
        np.asarray(change.kernel)[index],
        at_start.pre_outputs[index],
        y,
        recorded.learning_rate,
        recorded.steps,
    )


class _KeptKernels(Measure[None]):
    """Kernels of the first seed at w₀ and at the last record.

    Attributes:
        before, after: by output.
    """

    def __init__(self, outputs: tuple[str, ...]):
        self._outputs = outputs
        self.before: dict[str, np.ndarray] = {}
        self.after: dict[str, np.ndarray] = {}

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        kernels = models["network"].kernels_of(self._outputs)
        self.after = {output: np.asarray(kernel[0]) for output, kernel in kernels.items()}
        self.before = self.before or self.after


def _compares_softmax(group: TrainingGroup, loss: Loss, data: Dataset) -> bool:
    """Whether the softmax of the linear model is trained too: for kernels that are small."""
    num_rows = len(data.y) * data.num_outputs
    has_softmax = "softmax" in group.observed and loss.kind == "cross-entropy"
    return has_softmax and num_rows <= MAX_ROWS


def _at_start(
    spec: KernelChangeSpec,
    data: Dataset,
    net: Network,
    params: NetworkParams,
    group: TrainingGroup,
    seeds: range,
    progress: Progress,
) -> list[KernelAtStart]:
    """Measure at w₀ what needs no training.

    It is the kernel velocity of all seeds together, and the largest kernel change in each ball.
    """
    found: list[KernelAtStart] = []
    loss = Loss(group.loss_output, group.loss)
    for output in group.observed:
        model = net.with_output(output)
        velocities: list[float | None] = [None] * len(seeds)
        if spec.takes_velocity:
            progress.report(0.0, "kernel velocity")
            velocities = np.asarray(
                _velocities(model, loss, params, data.x, spec.training.targets_of(data.y)), float
            ).tolist()
        for index, seed in enumerate(seeds):
            largest = None
            if spec.ball_radius:
                of_seed = progress.named(f"seed {seed}")
                of_seed.report(0.0, f"ball of radius {spec.ball_radius:g}")
                one = jax.tree.map(lambda leaf, index=index: leaf[index], params)
                largest = ball_sup(
                    model,
                    one,
                    jnp.asarray(data.x),
                    spec.ball_radius,
                    "kernel",
                    num_starts=costs.BALL_STARTS,
                    num_steps=costs.BALL_STEPS,
                    progress=of_seed,
                ).value
            found.append(
                KernelAtStart(
                    output=output, seed=seed, velocity=velocities[index], ball_change=largest
                )
            )
    return found


@partial(jax.jit, static_argnums=(0, 1))
def _velocities(net: Network, loss: Loss, params: NetworkParams, x: Array, y: Array) -> Array:
    return over_seeds(lambda w: kernel_velocity(net, w, x, y, loss), params)


def _distance(kernels: Array | None, index: int, infinite: np.ndarray | None) -> float | None:
    """‖K(w₀) − K_∞ ⊗ I_C‖_F / ‖K_∞ ⊗ I_C‖_F of one seed."""
    if infinite is None:
        return None
    assert kernels is not None  # streamed kernels are not compared
    kernel = np.asarray(kernels[index], np.float64)
    limit = np.asarray(infinite, np.float64)[:, :, None, None] * np.eye(kernel.shape[-1])
    return float(np.linalg.norm(kernel - limit) / np.linalg.norm(limit))


def _snapshots(
    spec: KernelChangeSpec,
    data: Dataset,
    kept: _KeptKernels,
    infinite: np.ndarray | None,
) -> list[KernelSnapshot]:
    """Return the first seed's kernels before and after training.

    The samples are ordered by label or target.
    """
    order = np.argsort(data.labels if data.class_names else data.y[:, 0], kind="stable")

    def drawn(kernel: np.ndarray) -> tuple[tuple[float, ...], ...]:
        # The shortest digits that read back as the same number.
        return tuple(
            tuple(float(str(entry)) for entry in row) for row in kernel[np.ix_(order, order)]
        )

    def mean_over_outputs(kernel: np.ndarray) -> np.ndarray:
        return np.einsum("ijaa->ij", kernel) / kernel.shape[-1]

    snapshots = []
    for output, before in kept.before.items():
        after = kept.after[output]
        limit = infinite if output == "linear" else None
        snapshot = KernelSnapshot(
            output=output,
            seed=spec.seed,
            initial=drawn(mean_over_outputs(before)),
            final=drawn(mean_over_outputs(after)),
            initial_eigenvalues=tuple(eigenvalues(before)),
            final_eigenvalues=tuple(eigenvalues(after)),
            infinite=None if limit is None else drawn(limit),
        )
        snapshots.append(snapshot)
    return snapshots


def seeds_at_once(spec: KernelChangeSpec, key: str) -> int:
    """Number of seeds per compiled call: all that fit into memory on an accelerator, one on a CPU.

    On a CPU a batched product is slower than the same products one after another, and a batch takes
    as many steps as its slowest seed (docs/decisions/0006-seeds-devices-clusters.md).
    """
    if jax.default_backend() == "cpu" or costs.streams(spec):
        return 1
    usable = accelerator_bytes()
    limit = num_parts() * usable[0] if usable else memory_limit()
    return int(min(spec.num_seeds, max(1, 0.8 * limit // peak_bytes(costs.counts(spec, key)))))


def trainings_at_once(spec: KernelChangeSpec, key: str) -> int:
    """Number of threads for small networks on a CPU, whose products use one core.

    At most four; else 1.
    """
    small = peak_bytes(costs.counts(spec, key)) <= MOST_BESIDE_BYTES
    return (
        min(4, os.cpu_count() or 1)
        if small and jax.default_backend() == "cpu" and num_parts() == 1
        else 1
    )
