"""Training in compiled stretches, between which the host may look, record and stop."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ntk_core.dynamics._models import Model
from ntk_core.dynamics._optimizers import Optimizer, Rate
from ntk_core.dynamics.outcomes import Outcome, ended

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

    trained: Any
    step: Array
    loss: Array
    memory: Any = ()
    order: Any = ()


def start(model: Model, optimizer: Optimizer, trained: Any, num_samples: int) -> DescentState:
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
    fixed: Any,
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

    def one(state: DescentState, fixed: Any, rate: Rate, threshold: Array | float) -> DescentState:
        return _steps(model, optimizer, state, fixed, x, y, rate, until_step, threshold, key, batches)

    return over_seeds(one, state, fixed, rate, threshold) if together else one(state, fixed, rate, threshold)


def _steps(
    model: Model,
    optimizer: Optimizer,
    state: DescentState,
    fixed: Any,
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


def over_seeds(one: Callable[..., Any], *batched: Any) -> Any:
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
        trained: Any,
        fixed: Any,
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
        threshold: Any = self.threshold if to_threshold and self.threshold is not None else -math.inf
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
