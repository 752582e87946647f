"""Kernel change along training, one width at a time (Liu, Zhu & Belkin 2020, Fig. 1 and 2)."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.architectures import Network, NetworkParams, merge
from ntk_core.datasets import Dataset, data_fingerprint, load_dataset
from ntk_core.dynamics import Loss, auto_learning_rate, descend, record_steps, start
from ntk_core.experiments._networks import build_network
from ntk_core.kernels import kernel_change, pre_output_ntk, through_output
from ntk_core.results import DriftPoint, DriftRun, Outcome
from ntk_core.specs import KernelDriftSpec, TrainingGroup, training_groups

Progress = tuple[float, str]


def load(spec: KernelDriftSpec) -> Dataset:
    """The data of the spec."""
    return load_dataset(spec.dataset.name, **spec.dataset.options())


def fingerprint(data: Dataset) -> str:
    """SHA-256 of the data, for the provenance."""
    return data_fingerprint(data)


def compute(spec: KernelDriftSpec, data: Dataset, width: int) -> Generator[Progress, None, DriftPoint]:
    """All seeds and outputs of one width; yields (fraction, message) between stretches of work."""
    began = time.monotonic()
    groups = training_groups(spec.outputs)
    total = len(groups) * spec.num_seeds
    runs: list[DriftRun] = []
    num_params = 0
    for index, (group, seed) in enumerate((g, s) for g in groups for s in range(spec.seed, spec.seed + spec.num_seeds)):
        net = build_network(spec.architecture, width, data.num_outputs, group.trained_output)
        params = net.init(jax.random.key(seed), data.input_shape)
        trained, _ = net.partition(params)
        num_params = sum(leaf.size for leaf in jax.tree.leaves(trained))
        for step in _train(spec, data, net, params, group, seed, runs):
            share = math.log1p(step) / math.log1p(spec.training.max_steps)
            yield (index + share) / total, f"width {width:,}: {group.trained_output} output, seed {seed}, step {step:,}"
    return DriftPoint(width=width, num_params=num_params, runs=tuple(runs), runtime_s=time.monotonic() - began)


def _train(
    spec: KernelDriftSpec, data: Dataset, net: Network, params: NetworkParams, group: TrainingGroup, seed: int, runs: list[DriftRun]
) -> Iterator[int]:
    """Train one network, look at its kernel at the recorded steps, and add one run an observed output to ``runs``."""
    x, y = jnp.asarray(data.x), jnp.asarray(data.y)
    loss = Loss(group.loss_output)
    first = _initial(net, group.observed, loss, params, x, y)
    rate = spec.training.learning_rate
    eta = auto_learning_rate(first.kernel, loss) if rate == "auto" else float(rate)
    steps, changes, losses = [0], [np.zeros(len(group.observed))], [float(first.loss)]
    trained, fixed = net.partition(params)
    state = start(trained)
    del trained, params
    outcome: Outcome = "over-budget" if math.isfinite(losses[0]) and math.isfinite(eta) else "diverged"
    if losses[0] <= spec.training.loss_threshold:
        outcome = "converged"
    for until in record_steps(spec.training.max_steps, spec.training.num_records) if outcome == "over-budget" else ():
        state = descend(net, loss, state, fixed, x, y, eta, until, spec.training.loss_threshold)
        change, value = _measure(net, group.observed, loss, merge(state.trained, fixed), x, y, first.kernels)
        steps.append(int(state.step))
        changes.append(np.asarray(change, float))
        losses.append(float(value))
        yield steps[-1]
        if not math.isfinite(losses[-1]):
            outcome = "diverged"
            break
        if losses[-1] <= spec.training.loss_threshold:
            outcome = "converged"
            break
    runs.extend(
        DriftRun(
            output=output,
            seed=seed,
            learning_rate=eta,
            outcome=outcome,
            steps=tuple(steps),
            change=tuple(float(change[position]) for change in changes),
            loss=tuple(losses),
        )
        for position, output in enumerate(group.observed)
    )


class _Initial(NamedTuple):
    """At w₀: the kernel of the pre-outputs, its images under each observed output, the loss."""

    kernel: Array
    kernels: dict[str, Array]
    loss: Array


@partial(jax.jit, static_argnums=(0, 1, 2))
def _initial(net: Network, observed: tuple[str, ...], loss: Loss, params: NetworkParams, x: Array, y: Array) -> _Initial:
    kernel, f, _ = pre_output_ntk(net, params, x)
    return _Initial(kernel, {output: through_output(output, kernel, f, f) for output in observed}, loss(f, y))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _measure(
    net: Network,
    observed: tuple[str, ...],
    loss: Loss,
    params: NetworkParams,
    x: Array,
    y: Array,
    initial: dict[str, Array],
) -> tuple[Array, Array]:
    """(ΔK of each observed output, loss) at w_t; one kernel of the pre-outputs serves all outputs."""
    kernel, f, _ = pre_output_ntk(net, params, x)
    changes = [kernel_change(through_output(output, kernel, f, f), initial[output]) for output in observed]
    return jnp.stack(changes), loss(f, y)
