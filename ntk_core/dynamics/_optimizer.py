"""Optimizers: update rules of training methods, at any learning rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import jax
import optax
from jax import Array
from jaxtyping import PyTree

from ntk_core.dynamics.choices import MAX_SOLVED_ROWS, METHODS, Method
from ntk_core.errors import InvalidInput

MAX_RATE = 1e6
Rate: TypeAlias = Array | float | dict[str, Array]  # one for all weights, or one for each layer


@dataclass(frozen=True)
class Optimizer:
    """Update rule of a training method.

    w ← w − η d with a direction d from the gradients; η is separate, so one
    compilation serves all rates.

    Attributes:
        name: one of ``ntk_core.dynamics.choices.METHODS``, or any ``optax.GradientTransformation``,
            whose updates, its own rate included, are then multiplied by η.
        momentum: μ of ``momentum``: v ← μ v + ∇L, w ← w − η v.
        batch_size: samples per step, drawn without replacement within an epoch; by default all.
            ``sgd`` needs it, ``gradient-descent`` refuses it.

    Raises:
        InvalidInput: for an unknown name, a momentum outside [0, 1), or a batch size that
            does not suit the name.

    ``gauss-newton`` is the natural gradient too: for the losses of this package the Gauss–Newton
    matrix G = JᵀHJ is the Fisher information. It is damped by λ = 10⁻³ mean eigenvalues, and takes
    at most 900 rows n·C of outputs.

    Source: Liu, Zhu & Belkin 2020, §6, for gradient descent; momentum: Polyak 1964; Adam: Kingma &
    Ba 2015; Gauss–Newton: docs/math/second-order.md.

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
        """Whether steps are linear in the gradients.

        Then a linear model can be trained by its kernel.
        """
        return self._method.is_linear

    @property
    def own_rate(self) -> float | None:
        """Automatic learning rate that does not depend on the model.

        1 for a transformation, which has its own.
        """
        return self._method.own_rate if isinstance(self.name, str) else 1.0

    @property
    def solves(self) -> bool:
        """Whether each step solves the Gauss–Newton system of all samples."""
        return self._method.solves

    def check_rows(self, num_rows: int) -> None:
        """Refuse a Gauss–Newton system of more than 900 rows n·C."""
        if self.solves and num_rows > MAX_SOLVED_ROWS:
            given = f"{self.name} with n·C = {num_rows:,}"
            allowed = f"another method, or at most {MAX_SOLVED_ROWS} outputs of all samples, n·C"
            raise InvalidInput("optimizer", given, allowed)

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
        """2n / (β λ_max), times 1 + μ with momentum, above which the linear model diverges.

        None for Adam, NaN for an unknown eigenvalue.

        β bounds the curvature of one sample's loss in the model's outputs; for square loss
        (β = 1) the rate is sharp.
        """
        if not self.is_linear:
            return None
        scale = curvature * largest_eigenvalue
        if scale <= 0:
            return math.inf
        return self._method.stable_factor(self.momentum) * 2 * num_samples / scale

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
