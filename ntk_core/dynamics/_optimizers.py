"""Update rules by name, with the largest rate at which a linear model stays stable under them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import optax
from jax import Array

from ntk_core.errors import InvalidInput
from ntk_core.settings.vocabulary import OPTIMIZERS

MAX_RATE = 1e6


@dataclass(frozen=True)
class Optimizer:
    """How a gradient becomes a step; the rate η is given apart, so that one compilation serves all rates.

    Attributes:
        name: ``"gradient-descent"``, ``"sgd"``, ``"momentum"`` or ``"adam"``.
        momentum: μ of ``momentum``: v ← μ v + ∇L, w ← w − η v.
        batch_size: samples of a step, drawn without replacement within an epoch; all of them where left out.
            ``sgd`` needs it, ``gradient-descent`` refuses it.

    Raises:
        InvalidInput: for an unknown name, a momentum outside [0, 1), or a batch size that does not suit the name.
    """

    name: str = "gradient-descent"
    momentum: float = 0.9
    batch_size: int | None = None

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise InvalidInput("optimizer", self.name, "one of " + ", ".join(OPTIMIZERS))
        if not 0 <= self.momentum < 1:
            raise InvalidInput("momentum", self.momentum, "a number from 0 to below 1")
        if self.name == "gradient-descent" and self.batch_size is not None:
            raise InvalidInput("batch_size", self.batch_size, "none with gradient-descent, which takes all samples")
        if self.name == "sgd" and self.batch_size is None:
            raise InvalidInput("batch_size", None, "a number of samples with sgd")
        if self.batch_size is not None and self.batch_size < 1:
            raise InvalidInput("batch_size", self.batch_size, "an integer, at least 1")

    @property
    def is_plain(self) -> bool:
        """Whether a step is −η times the gradient, and nothing is remembered."""
        return self.name in ("gradient-descent", "sgd")

    @property
    def is_linear(self) -> bool:
        """Whether steps are linear in the gradients, so that a linear model can be followed through its kernel."""
        return self.name != "adam"

    def memory(self, trained: Any) -> Any:
        """What the optimizer remembers before the first step."""
        return () if self.is_plain else self._transformation(1.0).init(trained)

    def move(self, trained: Any, gradient: Any, memory: Any, rate: Array | float) -> tuple[Any, Any]:
        """(parameters after one step, what is remembered then)."""
        if self.is_plain:
            return jax.tree.map(lambda w, g: w - rate * g, trained, gradient), memory
        updates, memory = self._transformation(rate).update(gradient, memory, trained)
        return jax.tree.map(lambda w, u: w + u, trained, updates), memory

    def stable_rate(self, largest_eigenvalue: float, num_samples: int, curvature: float) -> float | None:
        """2n / (β λ_max), and (1 + μ) times that with momentum: the linear model diverges above; None for Adam.

        β bounds the curvature of one sample's loss in the model's outputs; for square loss (β = 1) the rate is sharp.
        """
        if not self.is_linear:
            return None
        factor = 1 + self.momentum if self.name == "momentum" else 1.0
        scale = curvature * largest_eigenvalue
        return factor * 2 * num_samples / scale if scale > 0 else math.inf

    def _transformation(self, rate: Array | float) -> optax.GradientTransformation:
        if self.name == "momentum":
            return optax.sgd(rate, momentum=self.momentum)
        return optax.adam(rate)


def check_rate(rate: float, field: str = "learning_rate") -> float:
    """The rate, if it is one.

    Raises:
        InvalidInput: for a rate that is not finite or not in (0, 10⁶].
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= MAX_RATE:
        raise InvalidInput(field, rate, "auto, or a number above 0 and at most 1,000,000")
    return float(rate)
