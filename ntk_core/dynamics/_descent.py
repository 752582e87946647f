"""Optimizers, and training in compiled stretches between which the host may record and stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
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

MAX_RATE = 1e6
Rate: TypeAlias = Array | float | dict[str, Array]  # one for all weights, or one for each layer


@dataclass(frozen=True)
class Optimizer:
    """Update rule of a training method.

    w ← w − η d with a direction d made of the gradients; η is given apart, so that one compilation serves all rates.

    Attributes:
        name: one of ``ntk_core.dynamics.choices.METHODS``, or any ``optax.GradientTransformation``, whose updates,
            its own rate included, are then multiplied by η.
        momentum: μ of ``momentum``: v ← μ v + ∇L, w ← w − η v.
        batch_size: samples of a step, drawn without replacement within an epoch; all of them where left out.
            ``sgd`` needs it, ``gradient-descent`` refuses it.

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
            raise InvalidInput("batch_size", self.batch_size, f"none with {self.name}, which takes all samples")
        if self._method.batches == "always" and self.batch_size is None:
            raise InvalidInput("batch_size", None, f"a number of samples with {self.name}")
        if self.batch_size is not None and self.batch_size < 1:
            raise InvalidInput("batch_size", self.batch_size, "an integer, at least 1")

    @classmethod
    def of(cls, given: Optimizer | str | optax.GradientTransformation) -> Optimizer:
        """The optimizer itself, or the one of this name or transformation."""
        return given if isinstance(given, cls) else cls(given)

    @property
    def is_linear(self) -> bool:
        """Whether steps are linear in the gradients, so that a linear model can be followed through its kernel."""
        return self._method.is_linear

    @property
    def has_own_rate(self) -> bool:
        """Whether the steps of a transformation have a rate already, which is then multiplied."""
        return not isinstance(self.name, str)

    def memory(self, trained: PyTree) -> PyTree:
        """Optimizer state before the first step."""
        return self._direction.init(trained)

    def move(self, trained: PyTree, gradient: PyTree, memory: PyTree, rate: Rate) -> tuple[PyTree, PyTree]:
        """(parameters after one step, what is remembered then)."""
        direction, memory = self._direction.update(gradient, memory, trained)
        if not isinstance(rate, dict):
            return jax.tree.map(lambda w, d: w - rate * d, trained, direction), memory
        moved = {
            name: jax.tree.map(lambda w, d, name=name: w - rate[name] * d, trained[name], direction[name])
            for name in trained
        }
        return moved, memory

    def stable_rate(self, largest_eigenvalue: float, num_samples: int, curvature: float) -> float | None:
        """2n / (β λ_max), and (1 + μ) times that with momentum: the linear model diverges above; None for Adam.

        β bounds the curvature of one sample's loss in the model's outputs; for square loss (β = 1) the rate is sharp.
        """
        if not self.is_linear:
            return None
        scale = curvature * largest_eigenvalue
        return self._method.stable_factor(self.momentum) * 2 * num_samples / scale if scale > 0 else math.inf

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
    """The rate, if it is one.

    Raises:
        InvalidInput: for a rate that is not finite or not in (0, 10⁶].
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= MAX_RATE:
        raise InvalidInput(field, rate, "auto, or a number above 0 and at most 1,000,000")
    return float(rate)


LONGEST_STRETCH_S = 0.3  # between two checks whether to stop


class DescentState(NamedTuple):
    """Where a run is.

    Attributes:
        trained: trained parameters w_t.
        step: t.
        loss: the loss at w_{t-1} that the last step has seen, on its batch; the largest number before the first step.
        memory: what the optimizer remembers; empty for plain descent.
        order: of the samples in this epoch, (n,); empty for full batches.
    """

    trained: PyTree
    step: Array
    loss: Array
    memory: PyTree = ()
    order: PyTree = ()


def start(model: Model, optimizer: Optimizer, trained: PyTree, num_samples: int) -> DescentState:
    """The state before the first step; ``trained`` is handed over (its buffers are reused)."""
    # Full types from the start, the same as those that a step gives back, so that one compilation serves all stretches.
    order = () if optimizer.batch_size is None else jnp.arange(num_samples, dtype=jnp.int32)
    dtype = jnp.result_type(float)
    largest = jnp.full((), jnp.finfo(dtype).max, dtype)
    memory = jax.eval_shape(lambda w: optimizer.memory(model.pack(w)), trained)
    if jax.tree.leaves(memory):  # else nothing is packed for it
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
    """Steps of ``optimizer`` until ``until_step``, or until the loss is at most ``threshold`` or not finite.

    The stretch has a dynamic length, so that one compilation serves all of a run. ``state`` is donated. Batches depend
    on ``key`` and the step alone, or are the rows of ``batches``, one for each step: models that are trained side by
    side see the same ones. ``together``: ``state``, ``fixed``, ``rate`` and ``threshold`` have a leading axis of seeds.
    """

    def one(state: DescentState, fixed: PyTree, rate: Rate, threshold: Array | float) -> DescentState:
        return _steps(model, optimizer, state, fixed, x, y, rate, until_step, threshold, key, batches)

    return over_seeds(one, state, fixed, rate, threshold) if together else one(state, fixed, rate, threshold)


def _steps(
    model: Model,
    optimizer: Optimizer,
    state: DescentState,
    fixed: PyTree,
    x: Array,
    y: Array,
    rate: Rate,
    until_step: Array | int,
    threshold: Array | float,
    key: Array | None,
    batches: Array | None,
) -> DescentState:
    num_samples, batch = x.shape[0], optimizer.batch_size
    loss_and_gradient = model.loss_and_gradient(fixed, x, y)

    def goes_on(state: DescentState) -> Array:
        return (state.step < until_step) & (state.loss > threshold) & jnp.isfinite(state.loss)

    def step(state: DescentState) -> DescentState:
        order, rows = state.order, None if batches is None else batches[state.step]
        if batch is not None and batch < num_samples:
            assert key is not None
            per_epoch = num_samples // batch
            position = state.step % per_epoch
            order = jax.lax.cond(
                position == 0,
                lambda: jax.random.permutation(jax.random.fold_in(key, state.step // per_epoch), state.order),
                lambda: state.order,
            )
            rows = jax.lax.dynamic_slice(order, (position * batch,), (batch,))
        value, gradient = loss_and_gradient(state.trained, rows)
        moved, memory = optimizer.move(state.trained, gradient, state.memory, rate)
        return DescentState(moved, state.step + 1, value, memory, order)

    last = jax.lax.while_loop(goes_on, step, state._replace(trained=model.pack(state.trained)))
    return last._replace(trained=model.unpack(last.trained))


def over_seeds(one: Callable[..., PyTree], *batched: PyTree) -> PyTree:
    """``one`` for each seed; a single one goes without ``vmap``, whose batch of one some operations pay for."""
    if jax.tree.leaves(batched)[0].shape[0] > 1:
        return jax.vmap(one)(*batched)
    return jax.tree.map(lambda leaf: leaf[None], one(*jax.tree.map(lambda leaf: leaf[0], batched)))


def record_steps(max_steps: int, num_records: int) -> list[int]:
    """Increasing steps at which to look, from 1 to ``max_steps``, evenly spaced on a logarithmic axis."""
    grid = np.geomspace(1, max_steps, min(num_records, max_steps))
    return sorted({round(step) for step in grid} | {max_steps})


class Descent:
    """A model in training: its weights and its recorded losses.

    Args:
        trained: w₀, handed over.
        fixed: what training does not move, see :class:`Model`.
        rate: η; one for all weights, for each layer by its name, or (together) for each seed. Where it is infinite the
            model is dead; where it is not a number it counts as diverged. Neither is moved.
        threshold: the loss at which the model has converged; none for None.
        key, batches: see :func:`advance`.
        together: the seeds of one network in one batch: ``trained``, ``fixed`` and ``rate`` have a leading axis.
        dead: whether the tangent kernel is 0 at w₀, whatever the rate; (together) for each seed.
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
            self._dead, self._lost = self._dead | np.isinf(given).reshape(-1), np.isnan(given).reshape(-1)
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
        """Whether nothing was left to train when last looked, for each seed: dead, diverged, or at the threshold."""
        _, losses = self._noted[-1]
        at_end = losses <= (-math.inf if self.threshold is None else self.threshold)
        return np.asarray(self._dead | ~np.isfinite(losses) | at_end)

    def note(self, losses: Array) -> None:
        """The losses at w_t, a scalar, or (S,) together."""
        # The loop continues from these: where the step just taken rose above the threshold again, it is not the end.
        self.state = self.state._replace(loss=losses)
        noted = np.where(self._lost, np.nan, np.asarray(losses, np.float64).reshape(-1))
        self._noted.append((self.steps, noted))

    def advance(self, until: int, *, to_threshold: bool) -> None:
        """Steps up to ``until`` or, where asked for, to the threshold; returns before the device has finished."""
        threshold: float | np.ndarray = self.threshold if to_threshold and self.threshold is not None else -math.inf
        if self._together:
            threshold = np.where(self.is_done, math.inf, threshold).astype(self.state.loss.dtype)
        self.state = advance(
            self.model, self.optimizer, self.state, self.fixed, self.x, self.y, self.rate, until, threshold,
            together=self._together, **self._order,
        )  # fmt: skip

    @property
    def crossing(self) -> int | None:
        """Index of the first record with the loss at the threshold, for a single seed; None if there is none."""
        at = -math.inf if self.threshold is None else self.threshold
        return next((index for index, (_, losses) in enumerate(self._noted) if losses[0] <= at), None)

    def outcomes(self) -> list[Outcome]:
        """Return the outcome for each seed, from the recorded losses."""
        steps, losses = (np.transpose(each).tolist() for each in zip(*self._noted, strict=True))
        dead = np.broadcast_to(self._dead, len(losses))
        return [
            ended(at, seen, self.threshold, dead=bool(is_dead))
            for at, seen, is_dead in zip(steps, losses, dead, strict=True)
        ]


def stretches(descents: Sequence[Descent], record: Callable[[int], None], records: Sequence[int]) -> Iterator[int]:
    """Train all side by side and yield the step reached, several times a second; stop by leaving the loop.

    ``record`` measures the models and their losses: before the loop starts, and here at every step of ``records``
    and at the crossing, until all are done. The crossing is the step at which the loss of the first model has come down
    to its threshold: the others take the same steps, and all are measured there. Seeds together stop each at its own.
    Where the loss rises again with the next step, the first model continues to the next of ``records``.
    """
    step, pace = 0, 1
    first, *others = descents
    for until in records:
        if all(each.is_done.all() for each in descents):
            return
        stops = not first.is_done.all()
        while step < until:
            began, goal = time.monotonic(), min(until, step + pace)
            first.advance(goal, to_threshold=stops)
            reached = int(first.steps.max()) if stops else goal
            for each in others:
                each.advance(reached, to_threshold=False)
            reached = max(int(each.steps.max()) for each in descents)  # waits for the device
            spent = max(time.monotonic() - began, 1e-4)
            # The first stretch compiles, so its pace is not typical.
            pace = min(2 * pace, 1 + int((goal - step) * LONGEST_STRETCH_S / spent)) if step else 8
            step = goal if reached == goal else until
            if step == until:
                record(reached)
                behind = [each.steps[~each.is_done & (each.steps < until)] for each in descents]
                if stops and (left := np.concatenate(behind)).size:
                    step, stops = int(left.min()), False
            yield step
