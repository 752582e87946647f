"""Kernel change of several outputs along the training of one network for each seed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray

from ntk_core.dynamics._descent import Descent, Measure, Samples, Start
from ntk_core.dynamics._history import Outcome
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import Model, NetworkModel
from ntk_core.dynamics._options import TrainOptions
from ntk_core.dynamics._rates import streamed_rate
from ntk_core.dynamics._short_runs import compiled
from ntk_core.dynamics._steps import over_seeds
from ntk_core.kernels import KernelOperator, changes_from_first, kernel_change
from ntk_core.networks.architectures import Network, NetworkParams, merge, output_function
from ntk_core.progress import Progress

MOST_FOLLOWED = 4


def followed_rows(num_points: int) -> slice:
    """Return at most four evenly spaced training points, whose outputs are recorded."""
    return slice(0, num_points, -(-num_points // MOST_FOLLOWED))


@dataclass(frozen=True)
class RecordedChange:
    """Kernel change of one seed under one output φ, along its training.

    Attributes:
        learning_rate: η as used; infinite if automatic with a zero kernel.
        outcome: see ``ntk_core.dynamics._history.ended``.
        steps: recorded steps, starting at 0.
        change: ΔK(t) = ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F there.
        loss: mean training losses there.
        followed: φ(f(x_i)) of the followed points for the class of each, (R, F).
        error: standard errors of ΔK; 0 if exact.
    """

    learning_rate: float
    outcome: Outcome
    steps: tuple[int, ...]
    change: tuple[float, ...]
    loss: tuple[float, ...]
    followed: tuple[tuple[float, ...], ...]
    error: tuple[float, ...]


class KernelChangeMeasure(Measure[dict[str, list[RecordedChange]]]):
    """ΔK of the outputs of one network per seed, trained together.

    Outputs that share their parameters share one kernel of the pre-outputs.

    Args:
        observed: output nonlinearities φ whose kernels are recorded.
        is_streamed: store the weights of every record of one seed instead of kernels;
            :meth:`stream` then computes ΔK.
        name: of the network, a :class:`NetworkModel`.

    Attributes:
        kernel: of the pre-outputs at w₀, (S, n, n, C, C); None if streamed.
    """

    def __init__(
        self, observed: tuple[str, ...], *, is_streamed: bool = False, name: str = "network"
    ):
        self.observed = observed
        self.kernel: Array | None = None
        self._is_streamed = is_streamed
        self._name = name
        self._first: dict[str, Array] = {}  # kernels at w₀ of the observed outputs
        self._weights: list[NetworkParams] = []
        self._rows: list[list[_Row]] = []

    def start(self, models: Mapping[str, Descent]) -> None:
        self._descent = models[self._name]
        self._rows = [[] for _ in self._descent.steps]
        if not self._is_streamed:
            self.kernel = self._descent.kernel
            self._first = self._descent.kernels_of(self.observed)

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        descent = self._descent
        changes = np.zeros((len(self._rows), len(self.observed)))  # computed later if streamed
        if step and not self._is_streamed:
            found = descent.kernels_of(self.observed)  # gives the pre-outputs, too
            each = [_change(found[output], self._first[output]) for output in self.observed]
            changes = np.transpose(np.asarray(each, float))
        followed = np.asarray(_followed(self.observed, descent.pre_outputs, descent.samples.y))
        losses = np.asarray(descent.losses, float)
        for seed, rows in enumerate(self._rows):
            at = int(descent.steps[seed])
            if rows and rows[-1].step >= at:
                continue  # this seed was done before
            row = _Row(at, changes[seed].tolist(), float(losses[seed]), followed[seed])
            rows.append(row)
            if self._is_streamed:
                params = merge(descent.trained, descent.fixed)
                self._weights.append(jax.tree.map(lambda leaf: jnp.copy(leaf[0]), params))

    def stream(
        self,
        memory_limit: float,
        probes: int | None,
        seed: int,
        kept: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Compute ΔK at the recorded steps without storing kernels, see :func:`changes_from_first`.

        Args:
            memory_limit: bytes of the blocks.
            kept: a directory for pairs.
        """
        (rows,) = self._rows
        model = self._descent.model
        assert isinstance(model, NetworkModel)
        finite = [index for index, row in enumerate(rows) if index and math.isfinite(row.loss)]
        path = [self._weights[index] for index in (0, *finite)]
        unknown = [math.nan] * len(self.observed)
        rows[1:] = [replace(row, changes=unknown) for row in rows[1:]]
        if not finite:
            return
        found = changes_from_first(
            model.net,
            path,
            self._descent.samples.x,
            outputs=self.observed,
            memory_limit=memory_limit,
            probes=probes,
            seed=seed,
            kept=None if probes else kept,
            progress=progress,
        )
        for index, at in zip(finite, found, strict=True):
            changes = [each.change for each in at]
            errors = [each.error for each in at]
            rows[index] = replace(rows[index], changes=changes, errors=errors)

    def result(self) -> dict[str, list[RecordedChange]]:
        """The records so far: by output, one for each seed."""
        outcomes = self._descent.outcomes()
        found: dict[str, list[RecordedChange]] = {}
        for index, output in enumerate(self.observed):
            found[output] = []
            for seed, rows in enumerate(self._rows):
                of_seed = RecordedChange(
                    learning_rate=float(self._descent.learning_rate[seed]),
                    outcome=outcomes[seed],
                    steps=tuple(row.step for row in rows),
                    change=tuple(row.changes[index] for row in rows),
                    loss=tuple(row.loss for row in rows),
                    followed=tuple(_shortest(row.followed[index]) for row in rows),
                    error=tuple(row.errors[index] if row.errors else 0.0 for row in rows),
                )
                found[output].append(of_seed)
        return found


def _shortest(values: Iterable[np.floating]) -> tuple[float, ...]:
    """Return numbers with the shortest digits that read back as the same number."""
    return tuple(float(str(value)) for value in values)


def network_of_seeds(
    net: Network,
    params: NetworkParams,
    x: ArrayLike,
    y: ArrayLike,
    loss: Loss,
    is_dead: Sequence[bool] = (False,),
    losses: tuple[Loss, ...] = (),
) -> tuple[dict[str, Model], dict[str, Start], Samples]:
    """Return the models, weights and data of :func:`descend` for one network per seed, together.

    Args:
        params: w₀ of all seeds, with a leading axis; overwritten.
        losses: of trainings that share one program of steps, see :class:`NetworkModel`.
    """
    trained, fixed = net.partition(params)
    data = Samples(jnp.asarray(x, jnp.result_type(float)), jnp.asarray(y))
    start = Start(trained, fixed, is_dead)
    return {"network": NetworkModel(net, loss, losses)}, {"network": start}, data


def streamed_start(
    net: Network,
    params: NetworkParams,
    x: ArrayLike,
    loss: Loss,
    options: TrainOptions,
    memory_limit: float,
) -> tuple[TrainOptions, list[bool]]:
    """Return the options at their learning rates, and whether the kernel of each seed is 0.

    Without the kernels, by products with them in ``memory_limit`` bytes.
    """
    rates = []
    is_dead = []
    inputs = jnp.asarray(x, jnp.result_type(float))
    plain = net.with_output("linear")
    num_seeds = len(jax.tree.leaves(params)[0])
    for seed in range(num_seeds):
        one = jax.tree.map(lambda leaf, seed=seed: jnp.copy(leaf[seed]), params)
        kernel = KernelOperator(plain, one, inputs, memory_limit=memory_limit)
        is_dead.append(not kernel.row_traces.any())
        if options.learning_rate == "auto" and options.method.is_linear:
            rates.append(streamed_rate(kernel, loss))
    if rates:
        options = replace(options, learning_rate=np.asarray(rates))
    return options, is_dead


@dataclass(frozen=True)
class _Row:
    """Record of one seed at one step."""

    step: int
    changes: list[float]
    loss: float
    followed: NDArray  # (outputs, F)
    errors: Sequence[float] = ()


# These programs do not depend on the width.
@compiled("data", usual_level=1, static_argnums=0)
def _followed(observed: tuple[str, ...], f: Array, y: Array) -> Array:
    """Outputs at the followed points for the class of each, (seeds, outputs, F)."""
    rows = followed_rows(len(y))
    own = jnp.argmax(y[rows], axis=-1)[:, None]

    def one(f: Array) -> Array:
        each = [output_function(output)(f[rows]) for output in observed]
        return jnp.stack([jnp.take_along_axis(values, own, axis=-1)[:, 0] for values in each])

    return over_seeds(one, f)


@compiled("data")
def _change(now: Array, first: Array) -> Array:
    return over_seeds(kernel_change, now, first)
