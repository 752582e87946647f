"""Kernel change along training, one width at a time (Liu, Zhu & Belkin 2020, Fig. 1 and 2)."""

import math
import os
import time
from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from linearity_lab.data import Dataset
from linearity_lab.experiments.kernel_change import spec as costs
from linearity_lab.experiments.kernel_change.point import (
    KernelAtStart,
    KernelChangePoint,
    KernelChangeRun,
    KernelSnapshot,
)
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec, TrainingGroup
from linearity_lab.memory import accelerator_bytes, memory_limit
from linearity_lab.networks.build import build_network
from linearity_lab.runs import (
    Growth,
    Progress,
    by_steps,
    one_after_another,
    peak_bytes,
    relayed,
    rescaled,
)
from linearity_lab.runs.compiled_code import unfinished_directory
from ntk_core.dynamics import KernelTraining, Loss, eigenvalues, kernel_velocity, over_seeds
from ntk_core.hessians import ball_sup
from ntk_core.kernels import infinite_width_ntk
from ntk_core.networks.architectures import Network, NetworkParams, num_parts
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key

Found = TypeVar("Found")
Report = TypeVar("Report", bound=Progress | Growth)
GROWN_S = 1.0  # between partial points; our choice
PREPARED = 2  # reports of a training until its kernel at w₀ is computed
MOST_BESIDE_BYTES = (
    50e6  # largest training that runs beside others; products of larger ones use all cores
)


def compute(
    spec: KernelChangeSpec,
    data: Dataset,
    key: str,
    *,
    seeds_together: int | None = None,
    name: str = "",
) -> Generator[Progress | Growth, None, KernelChangePoint]:
    """Compute one width, all seeds and outputs; yield (fraction, message) and partial points.

    Partial points come immediately for the first point of a sweep, then at most once a second, since drawing competes
    with training.

    ``seeds_together`` seeds share one compiled call (``vmap``); by default :func:`seeds_at_once`.
    ``name`` names the network in messages, if there are several.
    """
    together = seeds_together or seeds_at_once(spec, key)
    batches = [spec.seeds[first : first + together] for first in range(0, spec.num_seeds, together)]
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    # A network without output: it and its programs serve all outputs.
    net = build_network(architecture, hidden_width, data.num_outputs, "linear")
    num_params = net.num_params(data.input_shape, only_trained=True)
    ended: list[_Trained] = []
    shown_at, num_shown = -math.inf if key == spec.point_keys()[0] else time.monotonic(), 0

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

    def counted(work: Generator[Progress, None, _Trained]) -> Generator[Progress, None, _Trained]:
        trained = yield from work
        ended.append(trained)
        yield 1.0, f"{name}width {spec.value_of(key):,}: {len(ended)} of {len(works)} trainings"
        return trained

    def with_point(report: Progress) -> Progress | Growth:
        """Add the point so far; here, not in the threads of trainings, whose reports may change places."""
        nonlocal shown_at, num_shown
        so_far = [each._replace(snapshots=[]) for each in ended]
        if (
            num_shown == len(so_far)
            or len(so_far) == len(works)
            or time.monotonic() <= shown_at + GROWN_S
        ):
            return report
        shown_at, num_shown = time.monotonic(), len(so_far)
        grown = point(so_far)
        return Growth(*report, grown) if grown.runs else report

    works = [
        counted(_trained(spec, data, key, net, group, batch, name))
        for batch in batches
        for group in spec.groups
    ]
    return point(
        (
            yield from relayed(
                side_by_side(works, trainings_at_once(spec, key), PREPARED), with_point
            )
        )
    )


def side_by_side(
    works: Sequence[Generator[Report, None, Found]], threads: int, alone: int = 0
) -> Generator[Report, None, list[Found]]:
    """Like :func:`one_after_another`, with ``threads`` works in parallel.

    Each work makes its first ``alone`` reports before the next one starts, which then finds compiled programs.
    Closing the generator stops each work at its next report.
    """
    if min(threads, len(works)) < 2:
        return (yield from one_after_another(works))
    waiting, shares, found = list(range(len(works))), [0.0] * len(works), dict[int, Found]()
    with ThreadPoolExecutor(threads, "side-by-side") as pool:
        steps: dict[Future[tuple[Report | None, Found | None]], int] = {}
        while waiting or steps:
            while waiting and len(steps) < threads:
                index = waiting.pop(0)
                for _ in range(alone):
                    report = next(works[index])
                    shares[index] = report[0]
                    yield rescaled(report, math.fsum(shares) / len(works))
                steps[pool.submit(_next_report, works[index])] = index
            for step in wait(steps, return_when=FIRST_COMPLETED).done:
                index, (later, result) = steps.pop(step), step.result()
                if later is None:
                    shares[index], found[index] = 1.0, cast(Found, result)
                    continue
                steps[pool.submit(_next_report, works[index])] = index
                shares[index] = later[0]
                yield rescaled(later, math.fsum(shares) / len(works))
    return [found[index] for index in range(len(works))]


def _next_report(work: Generator[Report, None, Found]) -> tuple[Report | None, Found | None]:
    """The next report of a work, or None and its result."""
    try:
        return next(work), None
    except StopIteration as end:
        return None, end.value


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
) -> Generator[Progress, None, _Trained]:
    """Train one group of outputs for one batch of seeds."""
    words = f"{name}width {spec.value_of(key):,}: {OUTPUTS[group.trained_output].title}"
    yield 0.0, f"{words}, initial kernel"
    width = spec.value_of(key)
    params = jax.vmap(lambda seed: net.init(initial_key(seed, width), data.input_shape))(
        jnp.asarray(seeds)
    )
    loss = Loss(group.loss_output)
    starts: list[KernelAtStart] = []
    if spec.takes_velocity or spec.ball_radius:
        starts = yield from _at_start(spec, data, net, params, group, seeds, words)
    if not spec.trains:
        return _Trained([], [], starts)
    infinite = None
    if spec.infinite_width and group.trained_output == "linear":
        infinite = np.asarray(infinite_width_ntk(net, data.x))
    kept: list[
        dict[str, np.ndarray]
    ] = []  # kernels of the first seed, at w₀ and at the last record

    def watch(_: NetworkParams, kernels: dict[str, Array]) -> None:
        if spec.keep_kernels and spec.seed in seeds:
            kept[1:] = [{output: np.asarray(kernel[0]) for output, kernel in kernels.items()}]

    streamed = costs.STREAMED_BYTES if costs.streams(spec) else None
    training = KernelTraining(
        net, params, data.x, data.y, loss, group.observed, watch=watch, streamed_bytes=streamed,
        **spec.training.model_dump(),
    )  # fmt: skip
    del params
    yield 0.0, f"{words}, step 0"
    first = costs.training_share(spec, key)
    for share, message in by_steps(training.stretches(), spec.training.max_steps, words):
        yield first * share, message
    if streamed:
        what = "product" if spec.probes else "pair of blocks"
        for done, of_all in training.streamed(
            spec.probes or None, seeds[0], unfinished_directory()
        ):
            yield (
                first + (1 - first) * done / of_all,
                f"{words}, kernels: {what} {done:,} of {of_all:,}",
            )
    runs = [
        KernelChangeRun(
            output=output,
            seed=seed,
            infinite_distance=_distance(training, index, infinite) if output == "linear" else None,
            error=training.errors(index, output) if spec.probes else (),
            followed=training.followed_outputs(index, output),
            **training.recorded(index, output),
        )
        for output in group.observed
        for index, seed in enumerate(seeds)
    ]
    return _Trained(runs, _snapshots(spec, data, kept, infinite) if kept else [], starts)


def _at_start(
    spec: KernelChangeSpec,
    data: Dataset,
    net: Network,
    params: NetworkParams,
    group: TrainingGroup,
    seeds: range,
    words: str,
) -> Generator[Progress, None, list[KernelAtStart]]:
    """Measure the kernel velocity of all seeds together, and the largest kernel change in each ball."""
    found, loss = list[KernelAtStart](), Loss(group.loss_output)
    for output in group.observed:
        model = net.with_output(output)
        velocities: list[float | None] = [None] * len(seeds)
        if spec.takes_velocity:
            yield 0.0, f"{words}, kernel velocity"
            velocities = np.asarray(
                _velocities(model, loss, params, data.x, data.y), float
            ).tolist()
        for index, seed in enumerate(seeds):
            largest = None
            if spec.ball_radius:
                yield 0.0, f"{words}, seed {seed}, ball of radius {spec.ball_radius:g}"
                one = jax.tree.map(lambda leaf, index=index: leaf[index], params)
                largest = ball_sup(
                    model, one, jnp.asarray(data.x), spec.ball_radius, "kernel",
                    num_starts=costs.BALL_STARTS, num_steps=costs.BALL_STEPS,
                ).value  # fmt: skip
            found.append(
                KernelAtStart(
                    output=output, seed=seed, velocity=velocities[index], ball_change=largest
                )
            )
    return found


@partial(jax.jit, static_argnums=(0, 1))
def _velocities(net: Network, loss: Loss, params: NetworkParams, x: Array, y: Array) -> Array:
    return over_seeds(lambda w: kernel_velocity(net, w, x, y, loss), params)


def _distance(training: KernelTraining, index: int, infinite: np.ndarray | None) -> float | None:
    """‖K(w₀) − K_∞ ⊗ I_C‖_F / ‖K_∞ ⊗ I_C‖_F of one seed."""
    if infinite is None:
        return None
    kernel = np.asarray(training.kernel[index], np.float64)
    limit = np.asarray(infinite, np.float64)[:, :, None, None] * np.eye(kernel.shape[-1])
    return float(np.linalg.norm(kernel - limit) / np.linalg.norm(limit))


def _snapshots(
    spec: KernelChangeSpec,
    data: Dataset,
    kept: list[dict[str, np.ndarray]],
    infinite: np.ndarray | None,
) -> list[KernelSnapshot]:
    """Return the first seed's kernels before and after training, samples ordered by label or target."""
    order = np.argsort(data.labels if data.class_names else data.y[:, 0], kind="stable")

    def drawn(kernel: np.ndarray) -> tuple[tuple[float, ...], ...]:
        # The shortest digits that read back as the same number.
        return tuple(
            tuple(float(str(entry)) for entry in row) for row in kernel[np.ix_(order, order)]
        )

    def mean_over_outputs(kernel: np.ndarray) -> np.ndarray:
        return np.einsum("ijaa->ij", kernel) / kernel.shape[-1]

    return [
        KernelSnapshot(
            output=output,
            seed=spec.seed,
            initial=drawn(mean_over_outputs(before)),
            final=drawn(mean_over_outputs(after)),
            initial_eigenvalues=tuple(eigenvalues(before)),
            final_eigenvalues=tuple(eigenvalues(after)),
            infinite=drawn(infinite) if output == "linear" and infinite is not None else None,
        )
        for output, before in kept[0].items()
        for after in (kept[-1][output],)
    ]


def seeds_at_once(spec: KernelChangeSpec, key: str) -> int:
    """Number of seeds per compiled call: all that fit into memory on an accelerator, one on a CPU.

    On a CPU a batched product is slower than the same products one after another, and a batch takes as many steps as
    its slowest seed (docs/decisions/0006-seeds-devices-clusters.md).
    """
    if jax.default_backend() == "cpu" or costs.streams(spec):
        return 1
    usable = accelerator_bytes()
    limit = num_parts() * usable[0] if usable else memory_limit()
    return int(min(spec.num_seeds, max(1, 0.8 * limit // peak_bytes(costs.counts(spec, key)))))


def trainings_at_once(spec: KernelChangeSpec, key: str) -> int:
    """Number of threads for small networks on a CPU, whose products use one core: at most four; else 1."""
    small = peak_bytes(costs.counts(spec, key)) <= MOST_BESIDE_BYTES
    return (
        min(4, os.cpu_count() or 1)
        if small and jax.default_backend() == "cpu" and num_parts() == 1
        else 1
    )
