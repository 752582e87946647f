"""Optimizers, and training in compiled stretches, between which the host can record and stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import PyTree
from numpy.typing import NDArray

from ntk_core.dynamics._history import Outcome, ended
from ntk_core.dynamics._models import Model
from ntk_core.dynamics.choices import METHODS, Method
from ntk_core.errors import InvalidInput
from ntk_core.progress import Progress

MAX_RATE = 1e6
Rate: TypeAlias = Array | float | dict[str, Array]  # one for all weights, or one for each layer


@dataclass(frozen=True)
class Optimizer:
    """Update rule of a training method.

    w ← w − η d with a direction d from the gradients; η is separate, so one compilation serves all rates.

    Attributes:
        name: one of ``ntk_core.dynamics.choices.METHODS``, or any ``optax.GradientTransformation``, whose updates,
            its own rate included, are then multiplied by η.
        momentum: μ of ``momentum``: v ← μ v + ∇L, w ← w − η v.
        batch_size: samples per step, drawn without replacement within an epoch; by default all. ``sgd`` needs it,
            ``gradient-descent`` refuses it.

    Raises:
        InvalidInput: for an unknown name, a momentum outside [0, 1), or a batch size that does not suit the name.

    Source: Liu, Zhu & Belkin 2020, §6, for gradient descent; momentum: Polyak 1964; Adam: Kingma & Ba 2015.

    >>> Optimizer("momentum", momentum=0.8).is_linear
    True
    """

    name: str | optax.GradientTransformation = "gradient-descent"
    momentum: float = 0.9
    batch_size: int | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, optax.GradientTransformation) or self.name in METHODS):
            allowed = "one of " + ", ".join(METHODS) + ", or an optax.GradientTransformation"
            raise InvalidInput("optimizer", self.name, allowed)
        if not 0 <= self.momentum < 1:
            raise InvalidInput("momentum", self.momentum, "a number from 0 to below 1")
        if self._method.batches == "never" and self.batch_size is not None:
            raise InvalidInput(
                "batch_size", self.batch_size, f"none with {self.name}, which takes all samples"
            )
        if self._method.batches == "always" and self.batch_size is None:
            raise InvalidInput("batch_size", None, f"a number of samples with {self.name}")
        if self.batch_size is not None and self.batch_size < 1:
            raise InvalidInput("batch_size", self.batch_size, "an integer, at least 1")

    @classmethod
    def of(cls, given: Optimizer | str | optax.GradientTransformation) -> Optimizer:
        """Return an optimizer from an optimizer, a name or a transformation."""
        return given if isinstance(given, cls) else cls(given)

    @property
    def is_linear(self) -> bool:
        """Whether steps are linear in the gradients, so that a linear model can be trained by its kernel."""
        return self._method.is_linear

    @property
    def has_own_rate(self) -> bool:
        """Whether a transformation has its own rate, which is then multiplied."""
        return not isinstance(self.name, str)

    def memory(self, trained: PyTree) -> PyTree:
        """Optimizer state before the first step."""
        return self._direction.init(trained)

    def move(
        self, trained: PyTree, gradient: PyTree, memory: PyTree, rate: Rate
    ) -> tuple[PyTree, PyTree]:
        """Return (parameters, optimizer state) after one step."""
        direction, memory = self._direction.update(gradient, memory, trained)
        if not isinstance(rate, dict):
            return jax.tree.map(lambda w, d: w - rate * d, trained, direction), memory
        moved = {
            name: jax.tree.map(
                lambda w, d, name=name: w - rate[name] * d, trained[name], direction[name]
            )
            for name in trained
        }
        return moved, memory

    def stable_rate(
        self, largest_eigenvalue: float, num_samples: int, curvature: float
    ) -> float | None:
        """2n / (β λ_max), times 1 + μ with momentum, above which the linear model diverges; None for Adam.

        β bounds the curvature of one sample's loss in the model's outputs; for square loss (β = 1) the rate is sharp.
        """
        if not self.is_linear:
            return None
        scale = curvature * largest_eigenvalue
        return (
            self._method.stable_factor(self.momentum) * 2 * num_samples / scale
            if scale > 0
            else math.inf
        )

    @property
    def _method(self) -> Method:
        if isinstance(self.name, str):
            return METHODS[self.name]
        steps = optax.chain(self.name, optax.scale(-1.0))
        return Method("", "", "", direction=lambda _: steps, is_linear=False, batches="if asked")

    @property
    def _direction(self) -> optax.GradientTransformation:
        return self._method.direction(self.momentum)


def check_rate(rate: object, field: str = "learning_rate") -> float:
    """Return a valid learning rate, in (0, 10⁶]."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= MAX_RATE:
        raise InvalidInput(field, rate, "auto, or a number above 0 and at most 1,000,000")
    return float(rate)


LONGEST_STRETCH_S = 0.3  # between stop checks


class DescentState(NamedTuple):
    """State of a run.

    Attributes:
        trained: trained parameters w_t.
        step: t.
        loss: batch loss of the last step, at w_{t-1}; the largest number before the first step.
        memory: optimizer state; empty for plain descent.
        order: of the samples in this epoch, (n,); empty for full batches.
    """

    trained: PyTree
    step: Array
    loss: Array
    memory: PyTree = ()
    order: PyTree = ()


def start(model: Model, optimizer: Optimizer, trained: PyTree, num_samples: int) -> DescentState:
    """Return the state before the first step; ``trained`` is donated."""
    # The types returned by a step, so that one compilation serves all stretches.
    order = () if optimizer.batch_size is None else jnp.arange(num_samples, dtype=jnp.int32)
    dtype = jnp.result_type(float)
    largest = jnp.full((), jnp.finfo(dtype).max, dtype)
    memory = jax.eval_shape(lambda w: optimizer.memory(model.pack(w)), trained)
    if jax.tree.leaves(memory):  # packing is only needed for optimizer state
        memory = optimizer.memory(model.pack(trained))
    return DescentState(trained, jnp.zeros((), jnp.int32), largest, memory, order)


@partial(jax.jit, static_argnums=(0, 1), static_argnames="together", donate_argnums=2)
def advance(
    model: Model,
    optimizer: Optimizer,
    state: DescentState,
    fixed: PyTree,
    x: Array,
    y: Array,
    rate: Rate,
    until_step: Array | int,
    threshold: Array | float = -jnp.inf,
    *,
    key: Array | None = None,
    batches: Array | None = None,
    together: bool = False,
) -> DescentState:
    """Take steps until ``until_step``, or until the loss is at most ``threshold`` or not finite.

    The length is dynamic, so one compilation serves the whole run. ``state`` is donated. Batches depend only on ``key``
    and the step, or are the rows of ``batches``, one per step: models trained side by side share them.
    ``together``: ``state``, ``fixed``, ``rate`` and ``threshold`` have a leading axis of seeds.
    """

    num_samples, batch = x.shape[0], optimizer.batch_size

    def one(
        state: DescentState, fixed: PyTree, rate: Rate, threshold: Array | float
    ) -> DescentState:
        loss_and_gradient = model.loss_and_gradient(fixed, x, y)

        def continues(state: DescentState) -> Array:
            return (state.step < until_step) & (state.loss > threshold) & jnp.isfinite(state.loss)

        def step(state: DescentState) -> DescentState:
            order, rows = state.order, None if batches is None else batches[state.step]
            if batch is not None and batch < num_samples:
                assert key is not None
                per_epoch = num_samples // batch
                position = state.step % per_epoch
                order = jax.lax.cond(
                    position == 0,
                    lambda: jax.random.permutation(
                        jax.random.fold_in(key, state.step // per_epoch), state.order
                    ),
                    lambda: state.order,
                )
                rows = jax.lax.dynamic_slice(order, (position * batch,), (batch,))
            value, gradient = loss_and_gradient(state.trained, rows)
            moved, memory = optimizer.move(state.trained, gradient, state.memory, rate)
            return DescentState(moved, state.step + 1, value, memory, order)

        last = jax.lax.while_loop(
            continues, step, state._replace(trained=model.pack(state.trained))
        )
        return last._replace(trained=model.unpack(last.trained))

    return (
        over_seeds(one, state, fixed, rate, threshold)
        if together
        else one(state, fixed, rate, threshold)
    )


def over_seeds(one: Callable[..., PyTree], *batched: PyTree) -> PyTree:
    """Apply ``one`` to each seed; a single seed skips ``vmap``, since a batch of one slows some operations."""
    if jax.tree.leaves(batched)[0].shape[0] > 1:
        return jax.vmap(one)(*batched)
    return jax.tree.map(lambda leaf: leaf[None], one(*jax.tree.map(lambda leaf: leaf[0], batched)))


def record_steps(max_steps: int, num_records: int) -> list[int]:
    """Return increasing steps to record, from 1 to ``max_steps``, logarithmically spaced."""
    grid = np.geomspace(1, max_steps, min(num_records, max_steps))
    return sorted({round(step) for step in grid} | {max_steps})


class Descent:
    """A model in training: its weights and its recorded losses.

    Args:
        trained: w₀, donated.
        fixed: constants of the model, see :class:`Model`.
        rate: η; one for all weights, per layer by name, or (together) per seed. Infinite: the model is dead; NaN: it
            counts as diverged. Neither is trained.
        threshold: the loss at which the model has converged; none for None.
        key, batches: see :func:`advance`.
        together: train seeds in one batch: ``trained``, ``fixed`` and ``rate`` have a leading axis.
        dead: whether the tangent kernel is 0 at w₀; (together) per seed.
    """

    def __init__(
        self,
        model: Model,
        optimizer: Optimizer,
        trained: PyTree,
        fixed: PyTree,
        x: Array,
        y: Array,
        rate: Rate,
        *,
        threshold: float | None = None,
        key: Array | None = None,
        batches: Array | None = None,
        together: bool = False,
        dead: bool | Sequence[bool] = False,
    ):
        self.model, self.optimizer, self.fixed, self.x, self.y = model, optimizer, fixed, x, y
        self.threshold, self._together = threshold, together
        self._dead, self._lost = np.reshape(np.asarray(dead), -1), np.zeros(1, bool)
        if not isinstance(rate, dict):
            given = np.asarray(rate, np.float64)
            self._dead, self._lost = (
                self._dead | np.isinf(given).reshape(-1),
                np.isnan(given).reshape(-1),
            )
            if not np.isfinite(given).all():
                rate = jnp.asarray(np.where(np.isfinite(given), given, 0.0), jnp.result_type(float))
        self.rate = rate
        self._order = {"key": key if optimizer.batch_size else None, "batches": batches}
        first = partial(start, model, optimizer, num_samples=len(x))
        self.state: DescentState = (jax.vmap(first) if together else first)(trained)
        self._noted: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []

    @property
    def steps(self) -> NDArray[np.int64]:
        """t of each seed, (S,)."""
        return np.asarray(self.state.step, np.int64).reshape(-1)

    @property
    def is_done(self) -> NDArray[np.bool_]:
        """Whether each seed was done at the last record: dead, diverged, or at the threshold."""
        _, losses = self._noted[-1]
        at_end = losses <= (-math.inf if self.threshold is None else self.threshold)
        return np.asarray(self._dead | ~np.isfinite(losses) | at_end)

    def note(self, losses: Array) -> None:
        """Record the losses at w_t: a scalar, or (S,) for several seeds."""
        # The loop continues from these: a loss that rose above the threshold again is not the end.
        self.state = self.state._replace(loss=losses)
        noted = np.where(self._lost, np.nan, np.asarray(losses, np.float64).reshape(-1))
        self._noted.append((self.steps, noted))

    def advance(self, until: int, *, to_threshold: bool) -> None:
        """Dispatch steps up to ``until`` or, with ``to_threshold``, to the threshold."""
        threshold: float | np.ndarray = (
            self.threshold if to_threshold and self.threshold is not None else -math.inf
        )
        if self._together:
            threshold = np.where(self.is_done, math.inf, threshold).astype(self.state.loss.dtype)
        self.state = advance(
            self.model, self.optimizer, self.state, self.fixed, self.x, self.y, self.rate, until, threshold,
            together=self._together, **self._order,
        )  # fmt: skip

    @property
    def crossing(self) -> int | None:
        """Index of the first record with the loss at the threshold, for a single seed, or None."""
        at = -math.inf if self.threshold is None else self.threshold
        return next(
            (index for index, (_, losses) in enumerate(self._noted) if losses[0] <= at), None
        )

    def outcomes(self) -> list[Outcome]:
        """Return the outcome for each seed, from the recorded losses."""
        steps, losses = (np.transpose(each).tolist() for each in zip(*self._noted, strict=True))
        dead = np.broadcast_to(self._dead, len(losses))
        return [
            ended(at, seen, self.threshold, dead=bool(is_dead))
            for at, seen, is_dead in zip(steps, losses, dead, strict=True)
        ]


def descend(
    descents: Sequence[Descent],
    record: Callable[[int], None],
    records: Sequence[int],
    progress: Progress | None = None,
) -> None:
    """Train all models simultaneously until all are done.

    ``record`` measures the models and their losses: by the caller before the loop, and here at every step of
    ``records`` and at the crossing. The crossing is the step at which the first model's loss reaches its threshold; the
    others take the same steps. Seeds together stop separately. If the loss rises again with the next step, the first
    model continues to the next of ``records``.

    Args:
        progress: gets the current step several times a second, on a logarithmic axis up to the last of ``records``.
            If it stops the training, the records so far remain.
    """
    progress = progress or Progress()
    step = 0
    pace = 1  # steps of the next stretch
    first, *others = descents
    for until in records:
        if all(each.is_done.all() for each in descents):
            return
        stops = not first.is_done.all()
        while step < until:
            began = time.monotonic()
            goal = min(until, step + pace)
            first.advance(goal, to_threshold=stops)
            reached = int(first.steps.max()) if stops else goal
            for each in others:
                each.advance(reached, to_threshold=False)
            reached = max(int(each.steps.max()) for each in descents)  # waits for the device
            spent = max(time.monotonic() - began, 1e-4)
            measured_pace = 1 + int((goal - step) * LONGEST_STRETCH_S / spent)
            # The first stretch compiles, so its pace is not typical.
            pace = min(2 * pace, measured_pace) if step else 8
            step = goal if reached == goal else until
            if step == until:
                record(reached)
                behind = [each.steps[~each.is_done & (each.steps < until)] for each in descents]
                left = np.concatenate(behind)
                if stops and left.size:
                    step = int(left.min())
                    stops = False
            report_step(progress, step, records[-1])


def report_step(progress: Progress, step: int, max_steps: int) -> None:
    """Report the current step on a logarithmic axis."""
    progress.report(math.log1p(step) / math.log1p(max_steps), f"step {step:,}")
