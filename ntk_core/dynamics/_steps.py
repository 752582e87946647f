"""Steps of training in compiled stretches, between which the host can record and stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import PyTree

from ntk_core.dynamics._models import Model
from ntk_core.dynamics._optimizer import Optimizer, Rate
from ntk_core.dynamics._short_runs import compiled


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


@compiled("steps", static_argnums=(0, 1), static_argnames="together", donate_argnums=2)
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

    The length is dynamic, so one compilation serves the whole run. ``state`` is donated. Batches
    depend only on ``key`` and the step, or are the rows of ``batches``, one per step: models
    trained side by side share them. ``together``: ``state``, ``fixed``, ``rate`` and ``threshold``
    have a leading axis of seeds.
    """

    def one(
        state: DescentState, fixed: PyTree, rate: Rate, threshold: Array | float
    ) -> DescentState:
        # Gauss–Newton directions take the place of gradients.
        derivative = model.loss_and_gauss_newton if optimizer.solves else model.loss_and_gradient
        loss_and_gradient = derivative(fixed, x, y)

        def continues(state: DescentState) -> Array:
            return (state.step < until_step) & (state.loss > threshold) & jnp.isfinite(state.loss)

        def step(state: DescentState) -> DescentState:
            order, rows = _order_and_rows(state, x.shape[0], optimizer.batch_size, key)
            if batches is not None and rows is None:
                rows = batches[state.step]
            value, gradient = loss_and_gradient(state.trained, rows)
            moved, memory = optimizer.move(state.trained, gradient, state.memory, rate)
            return DescentState(moved, state.step + 1, value, memory, order)

        packed = state._replace(trained=model.pack(state.trained))
        last = jax.lax.while_loop(continues, step, packed)
        return last._replace(trained=model.unpack(last.trained))

    if together:
        return over_seeds(one, state, fixed, rate, threshold)
    return one(state, fixed, rate, threshold)


def _order_and_rows(
    state: DescentState, num_samples: int, batch: int | None, key: Array | None
) -> tuple[PyTree, Array | None]:
    """Return the order of the samples and the rows of this step's batch; None for all samples.

    The order is drawn again at the beginning of each epoch.
    """
    if batch is None or batch >= num_samples:
        return state.order, None
    assert key is not None
    per_epoch = num_samples // batch
    epoch = state.step // per_epoch
    position = state.step % per_epoch
    order = jax.lax.cond(
        position == 0,
        lambda: jax.random.permutation(jax.random.fold_in(key, epoch), state.order),
        lambda: state.order,
    )
    return order, jax.lax.dynamic_slice(order, (position * batch,), (batch,))


def over_seeds(one: Callable[..., PyTree], *batched: PyTree) -> PyTree:
    """Apply ``one`` to each seed.

    A single seed skips ``vmap``, since a batch of one slows some operations.
    """
    if jax.tree.leaves(batched)[0].shape[0] > 1:
        return jax.vmap(one)(*batched)
    return jax.tree.map(lambda leaf: leaf[None], one(*jax.tree.map(lambda leaf: leaf[0], batched)))
