"""Options of a training: learning rate, optimizer, loss, batches, stop and records."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike

from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._optimizer import Optimizer, Rate, check_rate
from ntk_core.errors import InvalidInput
from ntk_core.real_numbers import is_finite_number


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainOptions:
    """How models are trained, and at which steps they are recorded.

    Attributes:
        learning_rate: η; one for all weights, per layer by name, or (together) per seed.
            ``"auto"``: a quarter of the stable rate of the first model; for Adam the
            rate whose first step changes no output by more than 0.05; 1 for a
            transformation with its own rate.
        rate_factor: multiplies the learning rate, given or automatic.
        optimizer: an :class:`Optimizer`, the name of one, or any ``optax.GradientTransformation``.
        loss: a :class:`Loss`, or the name of one; by default the usual loss of the output,
            see :meth:`loss_of`.
        loss_threshold: the loss at which a model has converged; none for None.
        max_steps: maximum number of steps.
        num_records: number of records, at w₀ and on a logarithmic grid of steps.
        recorded_steps: the recorded steps, in place of that grid.
        key: of the batches; a fixed one by default.
        batches: rows of the samples for each step, in place of drawn batches.
        together: whether weights and rates have a leading axis of seeds, which train in one batch.

    Raises:
        InvalidInput: names the invalid option.

    >>> TrainOptions(max_steps=100, num_records=3).records
    (1, 10, 100)
    """

    learning_rate: Rate | ArrayLike | str = "auto"
    rate_factor: float = 1.0
    optimizer: Optimizer | str | optax.GradientTransformation = field(default_factory=Optimizer)
    loss: Loss | str | None = None
    loss_threshold: float | None = None
    max_steps: int = 1000
    num_records: int = 40
    recorded_steps: tuple[int, ...] | None = None
    key: Array | None = None
    batches: Array | None = None
    together: bool = False

    def __post_init__(self) -> None:
        check_whole("max_steps", self.max_steps)
        check_whole("num_records", self.num_records)
        threshold = self.loss_threshold
        if threshold is not None and not is_finite_number(threshold):
            raise InvalidInput("loss_threshold", threshold, "a finite number, or None")
        if self.key is not None:
            _check_key(self.key)
        object.__setattr__(self, "optimizer", Optimizer.of(self.optimizer))
        check_rate(self.rate_factor, "rate_factor")

    @property
    def method(self) -> Optimizer:
        """The optimizer."""
        assert isinstance(self.optimizer, Optimizer)
        return self.optimizer

    @property
    def records(self) -> tuple[int, ...]:
        """Recorded steps after w₀."""
        if self.recorded_steps is not None:
            return self.recorded_steps
        return tuple(record_steps(self.max_steps, self.num_records))

    @property
    def batch_key(self) -> Array | None:
        """Key of the batches; None without batches."""
        if self.method.batch_size is None:
            return None
        return jax.random.key(0) if self.key is None else self.key

    def loss_of(self, output: str) -> Loss:
        """Return the loss of a network with this output φ."""
        return self.loss if isinstance(self.loss, Loss) else Loss(output, self.loss or "")

    def at_rate(self, rate: Rate | ArrayLike) -> TrainOptions:
        """Return these options with another learning rate, which nothing multiplies."""
        return replace(self, learning_rate=rate, rate_factor=1.0)

    def check_batch(self, num_samples: int) -> None:
        """Refuse batches of more samples than there are."""
        size = self.method.batch_size
        if size is not None and size > num_samples:
            raise InvalidInput("batch_size", size, f"at most {num_samples}, the number of samples")


def record_steps(max_steps: int, num_records: int) -> list[int]:
    """Return increasing steps to record, from 1 to ``max_steps``, logarithmically spaced."""
    grid = np.geomspace(1, max_steps, min(num_records, max_steps))
    return sorted({round(step) for step in grid} | {max_steps})


def check_whole(field: str, given: object) -> None:
    """Refuse other values than an integer of at least 1."""
    if isinstance(given, bool) or not (isinstance(given, int | np.integer) and given >= 1):
        raise InvalidInput(field, given, "an integer, at least 1")


def _check_key(key: Any) -> None:
    """Refuse other values than one random key, typed or of raw uint32 numbers."""
    dtype = getattr(key, "dtype", None)
    is_typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    is_raw = dtype == jnp.uint32
    if not (is_typed and not np.shape(key)) and not (is_raw and np.ndim(key) == 1):
        raise InvalidInput("key", key, "one random key, jax.random.key(seed)")
