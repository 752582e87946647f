"""Kernel change along training, one width at a time (Liu, Zhu & Belkin 2020, Fig. 1 and 2)."""

from __future__ import annotations

import math
import time
from collections.abc import Generator

import jax
import jax.numpy as jnp

from ntk_core.data import Dataset, data_fingerprint, load_dataset
from ntk_core.experiments.kernel_change.costs import peak_bytes
from ntk_core.experiments.kernel_change.result import KernelChangePoint, KernelChangeRun, KernelSnapshot
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec, training_groups
from ntk_core.experiments.kernel_change.training import KernelChangeTraining
from ntk_core.networks.architectures import num_parts
from ntk_core.networks.build import build_network
from ntk_core.runs import Progress, accelerator_bytes, memory_limit


def load(spec: KernelChangeSpec) -> Dataset:
    """The data of the spec."""
    return load_dataset(spec.dataset.name, **spec.dataset.options())


def fingerprint(data: Dataset) -> str:
    """SHA-256 of the data, for the provenance."""
    return data_fingerprint(data)


def compute(
    spec: KernelChangeSpec, data: Dataset, key: str, *, seeds_together: int | None = None, name: str = ""
) -> Generator[Progress, None, KernelChangePoint]:
    """All seeds and outputs of one width; yields (fraction, message) between stretches of work.

    ``seeds_together`` seeds share one compiled call (``vmap``); by default as many as :func:`seeds_at_once` finds.
    ``name`` says of which network the messages are, where there are several.
    """
    began = time.monotonic()
    groups = training_groups(spec.outputs)
    width = spec.value_of(key)
    together = seeds_together or seeds_at_once(spec, key)
    seeds = range(spec.seed, spec.seed + spec.num_seeds)
    batches = [(group, seeds[first : first + together]) for group in groups for first in range(0, len(seeds), together)]
    runs: list[KernelChangeRun] = []
    snapshots: list[KernelSnapshot] = []
    num_params = 0
    for index, (group, batch) in enumerate(batches):
        architecture, hidden_width = spec.network_at(width)
        net = build_network(architecture, hidden_width, data.num_outputs, group.trained_output)
        params = jax.vmap(lambda key, net=net: net.init(key, data.input_shape))(
            jax.vmap(jax.random.key)(jnp.asarray(batch))
        )
        num_params = sum(leaf.size for leaf in jax.tree.leaves(net.partition(params)[0])) // len(batch)
        now = f"{name}width {width:,}: {group.trained_output} output"
        yield index / len(batches), f"{now}, first kernel"
        training = KernelChangeTraining(
            spec.training, data, net, group, params, batch, infinite_width=spec.infinite_width
        )
        del params
        for step in training.stretches():
            share = math.log1p(step) / math.log1p(spec.training.max_steps)
            yield (index + share) / len(batches), f"{now}, step {step:,}"
        runs += training.runs()
        if spec.keep_kernels and spec.seed in batch:
            snapshots += training.snapshots()
    runs.sort(key=lambda each: (spec.outputs.index(each.output), each.seed))
    return KernelChangePoint(
        width=width,
        num_params=num_params,
        runs=tuple(runs),
        runtime_s=time.monotonic() - began,
        snapshots=tuple(snapshots),
    )


def seeds_at_once(spec: KernelChangeSpec, key: str) -> int:
    """How many seeds share one compiled call: all that fit into memory on an accelerator, one on a CPU.

    On a CPU a batched product is slower than the same products one after another, and a batch takes as many steps as
    its slowest seed (docs/decisions/0003-seeds-together.md).
    """
    if jax.default_backend() == "cpu":
        return 1
    usable = accelerator_bytes()
    limit = num_parts() * usable[0] if usable else memory_limit()
    return int(min(spec.num_seeds, max(1, 0.8 * limit // peak_bytes(spec, key))))
