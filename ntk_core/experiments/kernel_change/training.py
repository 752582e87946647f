"""Networks trained from w₀ with their kernels watched: what every experiment with a ΔK shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.data import Dataset
from ntk_core.dynamics import DescentState, Loss, auto_learning_rate, descend, eigenvalues, record_steps, start
from ntk_core.dynamics.spec import TrainingSpec
from ntk_core.experiments.kernel_change.result import KernelChangeRun, KernelSnapshot
from ntk_core.experiments.kernel_change.spec import TrainingGroup
from ntk_core.kernels import infinite_width_ntk, kernel_change, pre_output_ntk, through_output
from ntk_core.networks.architectures import Network, NetworkParams, merge
from ntk_core.runs import Outcome


class KernelChangeTraining:
    """One network per seed, trained side by side; ``history`` has a row (step, changes, loss) per record and seed.

    Args:
        params: of all seeds, with a leading axis.
        infinite_width: whether to measure the distance of K(w₀) to the infinite-width kernel (linear output).
    """

    def __init__(
        self,
        settings: TrainingSpec,
        data: Dataset,
        net: Network,
        group: TrainingGroup,
        params: NetworkParams,
        seeds: range,
        *,
        infinite_width: bool = False,
    ):
        self.net, self.group, self.seeds, self.settings = net, group, seeds, settings
        self.loss = Loss(group.loss_output)
        self.x, self.y = jnp.asarray(data.x), jnp.asarray(data.y)
        self.first = _initial(net, group.observed, self.loss, params, self.x, self.y)
        given = settings.learning_rate
        self.rates = [
            auto_learning_rate(k, self.loss) if given == "auto" else float(given) for k in np.asarray(self.first.kernel)
        ]
        self.labels = data.labels
        self.infinite: np.ndarray | None = None
        if infinite_width and group.trained_output == "linear":
            self.infinite = np.asarray(infinite_width_ntk(net, self.x), np.float64)
        trained, self.fixed = net.partition(params)
        self.state = jax.vmap(start)(trained)
        zero = (0.0,) * len(group.observed)
        self.history: list[list[tuple[int, tuple[float, ...], float]]] = [
            [(0, zero, float(loss))] for loss in np.asarray(self.first.loss)
        ]
        self.outcomes: list[Outcome | None] = [self._outcome(index) for index in range(len(seeds))]

    def stretches(self) -> Iterator[int]:
        """Train from one recorded step to the next until every seed is done; yields the step reached."""
        rates = jnp.asarray([rate if math.isfinite(rate) else 0.0 for rate in self.rates])
        for until in record_steps(self.settings.max_steps, self.settings.num_records):
            if all(self.outcomes):
                return
            self.state = _descend(
                self.net, self.loss, self.state, self.fixed, self.x, self.y, rates, until, self.settings.loss_threshold
            )
            params = merge(self.state.trained, self.fixed)
            changes, losses = _measure(
                self.net, self.group.observed, self.loss, params, self.x, self.y, self.first.kernels
            )
            rows = zip(np.asarray(self.state.step), np.asarray(changes, float), np.asarray(losses, float), strict=True)
            for index, (step, change, loss) in enumerate(rows):
                if self.outcomes[index] is None:
                    self.history[index].append((int(step), tuple(map(float, change)), float(loss)))
                    self.outcomes[index] = self._outcome(index)
            yield until

    def runs(self) -> Iterator[KernelChangeRun]:
        """One run per observed output and seed."""
        for position, output in enumerate(self.group.observed):
            for seed, rate, outcome, rows in zip(self.seeds, self.rates, self.outcomes, self.history, strict=True):
                yield KernelChangeRun(
                    output=output,
                    seed=seed,
                    learning_rate=rate,
                    outcome=outcome or ("diverged" if rows[-1][2] > rows[0][2] else "over-budget"),
                    steps=tuple(step for step, _, _ in rows),
                    change=tuple(change[position] for _, change, _ in rows),
                    loss=tuple(loss for _, _, loss in rows),
                    infinite_distance=self._infinite_distance(seed) if output == "linear" else None,
                )

    def snapshots(self) -> Iterator[KernelSnapshot]:
        """The kernels of the first seed of the batch before and after training."""
        params = jax.tree.map(lambda leaf: leaf[:1], merge(self.state.trained, self.fixed))
        last = _initial(self.net, self.group.observed, self.loss, params, self.x, self.y)
        order = np.argsort(self.labels, kind="stable")
        infinite = None if self.infinite is None else _rows(self.infinite[np.ix_(order, order)])
        for output in self.group.observed:
            before, after = (
                np.asarray(kernels[output][0], np.float64) for kernels in (self.first.kernels, last.kernels)
            )
            yield KernelSnapshot(
                output=output,
                seed=self.seeds[0],
                initial=_rows(_mean_over_outputs(before)[np.ix_(order, order)]),
                final=_rows(_mean_over_outputs(after)[np.ix_(order, order)]),
                initial_eigenvalues=_rounded(eigenvalues(before)),
                final_eigenvalues=_rounded(eigenvalues(after)),
                infinite=infinite if output == "linear" else None,
            )

    def _infinite_distance(self, seed: int) -> float | None:
        """‖K(w₀) − K_∞ ⊗ I_C‖_F / ‖K_∞ ⊗ I_C‖_F."""
        if self.infinite is None:
            return None
        kernel = np.asarray(self.first.kernel[self.seeds.index(seed)], np.float64)
        limit = self.infinite[:, :, None, None] * np.eye(kernel.shape[-1])
        return float(np.linalg.norm(kernel - limit) / np.linalg.norm(limit))

    def _outcome(self, index: int) -> Outcome | None:
        loss = self.history[index][-1][2]
        if not (math.isfinite(loss) and math.isfinite(self.rates[index])):
            return "diverged"
        return "converged" if loss <= self.settings.loss_threshold else None


def _mean_over_outputs(kernel: np.ndarray) -> np.ndarray:
    """(1/C) Σ_a K[i, j, a, a], (n, n)."""
    return np.einsum("ijaa->ij", kernel) / kernel.shape[-1]


def _rounded(values: np.ndarray) -> tuple[float, ...]:
    """Five digits, enough to draw and a third of the size."""
    return tuple(float(f"{value:.5g}") for value in values)


def _rows(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(_rounded(row) for row in matrix)


def _over_seeds(one: Callable[..., Any], *batched: Any) -> Any:
    """``one`` for each seed; a single one goes without ``vmap``, whose batch of one some operations pay for."""
    if jax.tree.leaves(batched)[0].shape[0] > 1:
        return jax.vmap(one)(*batched)
    return jax.tree.map(lambda leaf: leaf[None], one(*jax.tree.map(lambda leaf: leaf[0], batched)))


class _Initial(NamedTuple):
    """At w₀: the kernel of the pre-outputs, its images under each observed output, the loss."""

    kernel: Array
    kernels: dict[str, Array]
    loss: Array


@partial(jax.jit, static_argnums=(0, 1, 2))
def _initial(
    net: Network, observed: tuple[str, ...], loss: Loss, params: NetworkParams, x: Array, y: Array
) -> _Initial:
    def one(params: NetworkParams) -> _Initial:
        kernel, f, _ = pre_output_ntk(net, params, x)
        return _Initial(kernel, {output: through_output(output, kernel, f, f) for output in observed}, loss(f, y))

    return _over_seeds(one, params)


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

    def one(params: NetworkParams, initial: dict[str, Array]) -> tuple[Array, Array]:
        kernel, f, _ = pre_output_ntk(net, params, x)
        changes = [kernel_change(through_output(output, kernel, f, f), initial[output]) for output in observed]
        return jnp.stack(changes), loss(f, y)

    return _over_seeds(one, params, initial)


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))
def _descend(
    net: Network,
    loss: Loss,
    state: DescentState,
    fixed: NetworkParams,
    x: Array,
    y: Array,
    rates: Array,
    until_step: Array,
    threshold: Array,
) -> DescentState:
    """:func:`ntk_core.dynamics.descend` for several seeds at once."""

    def one(state: DescentState, fixed: NetworkParams, rate: Array) -> DescentState:
        return descend(net, loss, state, fixed, x, y, rate, until_step, threshold)

    return _over_seeds(one, state, fixed, rates)
