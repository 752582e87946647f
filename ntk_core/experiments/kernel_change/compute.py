"""Kernel change along training, one width at a time (Liu, Zhu & Belkin 2020, Fig. 1 and 2)."""

from collections.abc import Generator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.data import Dataset
from ntk_core.dynamics import KernelTraining, Loss, eigenvalues, kernel_velocity, over_seeds
from ntk_core.experiments.kernel_change import costs
from ntk_core.experiments.kernel_change.costs import BALL_STARTS, BALL_STEPS, peak_bytes
from ntk_core.experiments.kernel_change.result import KernelAtStart, KernelChangePoint, KernelChangeRun, KernelSnapshot
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec, TrainingGroup
from ntk_core.hessians import ball_sup
from ntk_core.kernels import infinite_width_ntk
from ntk_core.networks.architectures import Network, NetworkParams, num_parts
from ntk_core.networks.build import build_network
from ntk_core.networks.initial import initial_key
from ntk_core.runs import Progress, accelerator_bytes, by_steps, in_turn, memory_limit
from ntk_core.runs.unfinished import unfinished_directory


def compute(
    spec: KernelChangeSpec, data: Dataset, key: str, *, seeds_together: int | None = None, name: str = ""
) -> Generator[Progress, None, KernelChangePoint]:
    """All seeds and outputs of one width; yields (fraction, message) between stretches of work.

    ``seeds_together`` seeds share one compiled call (``vmap``); by default as many as :func:`seeds_at_once` finds.
    ``name`` says of which network the messages are, where there are several.
    """
    together = seeds_together or seeds_at_once(spec, key)
    batches = [spec.seeds[first : first + together] for first in range(0, spec.num_seeds, together)]
    groups = spec.groups
    trained = yield from in_turn(
        [_trained(spec, data, key, group, batch, name) for group in groups for batch in batches]
    )
    runs = [run for each in trained for run in each.runs]
    starts = [start for each in trained for start in each.starts]
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    net = build_network(architecture, hidden_width, data.num_outputs, groups[0].trained_output)
    return KernelChangePoint(
        width=spec.value_of(key),
        num_params=net.num_params(data.input_shape, only_trained=True),
        runs=tuple(sorted(runs, key=lambda run: (spec.outputs.index(run.output), run.seed))),
        snapshots=tuple(snapshot for each in trained for snapshot in each.snapshots),
        at_start=tuple(sorted(starts, key=lambda start: (spec.outputs.index(start.output), start.seed))),
    )


class _Trained(NamedTuple):
    runs: list[KernelChangeRun]
    snapshots: list[KernelSnapshot]
    starts: list[KernelAtStart]


def _trained(
    spec: KernelChangeSpec, data: Dataset, key: str, group: TrainingGroup, seeds: range, name: str
) -> Generator[Progress, None, _Trained]:
    """The outputs of one group, for one batch of seeds."""
    words = f"{name}width {spec.value_of(key):,}: {group.trained_output} output"
    yield 0.0, f"{words}, first kernel"
    architecture, hidden_width = spec.network_at(spec.value_of(key))
    net = build_network(architecture, hidden_width, data.num_outputs, group.trained_output)
    width = spec.value_of(key)
    params = jax.vmap(lambda seed: net.init(initial_key(seed, width), data.input_shape))(jnp.asarray(seeds))
    loss = Loss(group.loss_output)
    starts: list[KernelAtStart] = []
    if spec.takes_velocity or spec.ball_radius:
        starts = yield from _at_start(spec, data, net, params, loss, group.observed, seeds, words)
    if not spec.trains:
        return _Trained([], [], starts)
    infinite = None
    if spec.infinite_width and group.trained_output == "linear":
        infinite = np.asarray(infinite_width_ntk(net, data.x))
    kept: list[dict[str, np.ndarray]] = []  # kernels of the first seed, at w₀ and at the last record

    def watch(_: NetworkParams, kernels: dict[str, Array]) -> None:
        if spec.keep_kernels and spec.seed in seeds:
            kept[1:] = [{output: np.asarray(kernel[0]) for output, kernel in kernels.items()}]

    streamed = costs.STREAMED_BYTES if costs.streams(spec) else None
    training = KernelTraining(
        net, params, data.x, data.y, loss, group.observed, watch=watch, streamed_bytes=streamed,
        **spec.training.model_dump(),
    )  # fmt: skip
    del params
    first = costs.training_share(spec, key)
    for share, message in by_steps(training.stretches(), spec.training.max_steps, words):
        yield first * share, message
    if streamed:
        what = "product" if spec.probes else "pair of blocks"
        for done, of_all in training.streamed(spec.probes or None, seeds[0], unfinished_directory()):
            yield first + (1 - first) * done / of_all, f"{words}, kernels: {what} {done:,} of {of_all:,}"
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
    loss: Loss,
    outputs: tuple[str, ...],
    seeds: range,
    words: str,
) -> Generator[Progress, None, list[KernelAtStart]]:
    """The kernel velocity of all seeds together, and the largest kernel change in a ball of each."""
    found: list[KernelAtStart] = []
    for output in outputs:
        model = net.with_output(output)
        velocities: list[float | None] = [None] * len(seeds)
        if spec.takes_velocity:
            yield 0.0, f"{words}, kernel velocity"
            velocities = np.asarray(_velocities(model, loss, params, data.x, data.y), float).tolist()
        for index, seed in enumerate(seeds):
            largest = None
            if spec.ball_radius:
                yield 0.0, f"{words}, seed {seed}, ball of radius {spec.ball_radius:g}"
                one = jax.tree.map(lambda leaf, index=index: leaf[index], params)
                largest = ball_sup(
                    model, one, jnp.asarray(data.x), spec.ball_radius, "kernel",
                    num_starts=BALL_STARTS, num_steps=BALL_STEPS,
                ).value  # fmt: skip
            found.append(KernelAtStart(output=output, seed=seed, velocity=velocities[index], ball_change=largest))
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
    spec: KernelChangeSpec, data: Dataset, kept: list[dict[str, np.ndarray]], infinite: np.ndarray | None
) -> list[KernelSnapshot]:
    """The kernels of the first seed before and after training, samples ordered by label, or by target."""
    order = np.argsort(data.labels if data.class_names else data.y[:, 0], kind="stable")

    def drawn(kernel: np.ndarray) -> tuple[tuple[float, ...], ...]:
        # All digits that its type has, and no more: the shortest numbers that read back as the same.
        return tuple(tuple(float(str(entry)) for entry in row) for row in kernel[np.ix_(order, order)])

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
    """How many seeds share one compiled call: all that fit into memory on an accelerator, one on a CPU.

    On a CPU a batched product is slower than the same products one after another, and a batch takes as many steps as
    its slowest seed (docs/decisions/0003-seeds-together.md).
    """
    if jax.default_backend() == "cpu" or costs.streams(spec):
        return 1
    usable = accelerator_bytes()
    limit = num_parts() * usable[0] if usable else memory_limit()
    return int(min(spec.num_seeds, max(1, 0.8 * limit // peak_bytes(spec, key))))
