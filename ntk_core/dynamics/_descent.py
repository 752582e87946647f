"""Training in compiled stretches, between which the host may look, record and stop."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import Model, NetworkModel
from ntk_core.dynamics._optimizers import Optimizer
from ntk_core.networks.architectures import Network, NetworkParams

GRADIENT_DESCENT = Optimizer()


class DescentState(NamedTuple):
    """Where a run is.

    Attributes:
        trained: trained parameters w_t.
        step: t.
        loss: the loss at w_{t-1} that the last step has seen, on its batch; infinite before the first step.
        memory: what the optimizer remembers; empty for plain descent.
        order: of the samples in this epoch, (n,); empty for full batches.
    """

    trained: Any
    step: Array
    loss: Array
    memory: Any = ()
    order: Any = ()


def start(trained: Any) -> DescentState:
    """The state of plain descent before the first step; ``trained`` is handed over (its buffers are reused)."""
    # Full types from the start, the same as those that a step gives back, so that one compilation serves all stretches.
    return DescentState(trained, jnp.zeros((), jnp.int32), jnp.full((), jnp.inf, jnp.result_type(float)))


def start_with(model: Model, optimizer: Optimizer, trained: Any, num_samples: int) -> DescentState:
    """The state before the first step of any optimizer; ``trained`` is handed over."""
    memory = optimizer.memory(model.pack(trained))
    order = () if optimizer.batch_size is None else jnp.arange(num_samples, dtype=jnp.int32)
    return start(trained)._replace(memory=memory, order=order)


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))
def advance(
    model: Model,
    optimizer: Optimizer,
    state: DescentState,
    fixed: Any,
    x: Array,
    y: Array,
    key: Array,
    rate: Array | float,
    until_step: Array | int,
    threshold: Array | float = -jnp.inf,
) -> DescentState:
    """Steps of ``optimizer`` until ``until_step``, or until the loss is at most ``threshold`` or not finite.

    The stretch has a dynamic length, so that one compilation serves all of a run. ``state`` is donated. Batches depend
    on ``key`` and the step alone: models that are trained side by side see the same ones.
    """
    num_samples, batch = x.shape[0], optimizer.batch_size
    loss_and_gradient = model.loss_and_gradient(fixed, x, y)

    def goes_on(state: DescentState) -> Array:
        first = state.step == 0
        return (state.step < until_step) & (first | ((state.loss > threshold) & jnp.isfinite(state.loss)))

    def step(state: DescentState) -> DescentState:
        order, rows = state.order, None
        if batch is not None and batch < num_samples:
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


def descend(
    net: Network,
    loss: Loss,
    state: DescentState,
    fixed: NetworkParams,
    x: Array,
    y: Array,
    rate: Array | float,
    until_step: Array | int,
    threshold: Array | float,
) -> DescentState:
    """w_{t+1} = w_t − η ∇L(w_t) until ``until_step``, or until the loss is at most ``threshold`` or not finite."""
    return advance(
        NetworkModel(net, loss), GRADIENT_DESCENT, state, fixed, x, y, jax.random.key(0), rate, until_step, threshold
    )


def record_steps(max_steps: int, num_records: int) -> list[int]:
    """Increasing steps at which to look, from 1 to ``max_steps``, evenly spaced on a logarithmic axis."""
    grid = np.geomspace(1, max_steps, min(num_records, max_steps))
    return sorted({round(step) for step in grid} | {max_steps})
