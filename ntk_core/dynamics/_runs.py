"""Records of a model in training, and its training and test points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree
from numpy.typing import NDArray

from ntk_core.dynamics._descent import Descent
from ntk_core.dynamics._history import FloatArray, Path
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import KernelModel, Model, Origin
from ntk_core.errors import InvalidInput
from ntk_core.kernels import exponent_of, scaled, widened
from ntk_core.networks.architectures import Network
from ntk_core.traced import Apply, Inputs, accepted_targets, like_rows


class Points:
    """Checked training and test points on the device, targets of JAX's float type; ``x_test`` may have no rows."""

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        x_test: Inputs | None,
        y_test: ArrayLike | None,
        followed: Sequence[int] | None,
        followed_test: Sequence[int] | None,
        num_outputs: int,
        axes: tuple[int, ...] = (),
        net: Network | Apply | None = None,
    ):
        floats, self.x = jnp.result_type(float), jnp.asarray(x)
        n = len(self.x)
        if not n:
            raise InvalidInput(
                "x", f"shape {self.x.shape}", "shape (n, …) with at least one sample"
            )
        self.y = jnp.asarray(accepted_targets(y, n, num_outputs, axes=axes), floats)
        other_x = self.x[:0] if x_test is None else like_rows(x_test, self.x, "x_test", net)
        self.x_test = jnp.asarray(other_x, self.x.dtype)
        num_test = len(self.x_test)
        other_y = (
            self.y[:0]
            if y_test is None
            else accepted_targets(y_test, num_test, num_outputs, "y_test", axes)
        )
        if num_test != len(other_y):
            raise InvalidInput(
                "y_test", "nothing", f"shape ({num_test}, {num_outputs}), one row for each x_test"
            )
        self.y_test = jnp.asarray(other_y, floats)
        self.followed = _indices("followed", followed, n)
        self.followed_test = _indices("followed_test", followed_test, num_test)

    @property
    def all_x(self) -> Array:
        """Training points, then test points."""
        return jnp.concatenate([self.x, self.x_test]) if len(self.x_test) else self.x


def _indices(field: str, given: Sequence[int] | None, count: int) -> NDArray[np.int64]:
    try:
        chosen = np.arange(count) if given is None else np.asarray(given, np.int64).reshape(-1)
    except (TypeError, ValueError) as error:
        raise InvalidInput(field, given, f"indices from 0 to {count - 1}; {error}") from error
    if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
        raise InvalidInput(field, list(map(int, chosen)), f"indices from 0 to {count - 1}")
    return chosen


class _Measured(NamedTuple):
    outputs: Array
    test_outputs: Array
    distance: Array
    largest_distance: Array
    gradient_norm: Array


class Run:
    """A model in training, with its records.

    ``origin`` is w₀ of ``network``, whose linear model a :class:`KernelModel` is; None at infinite width.
    """

    def __init__(self, descent: Descent, points: Points, origin: Origin | None, network: Model):
        self.descent, self.points, self.origin, self.network = descent, points, origin, network
        self.last_outputs: dict[str, FloatArray] = {}
        self._last_finite_step: int | None = None  # known once the run has diverged
        self._rows: list[dict[str, FloatArray | float]] = []

    def record(self) -> None:
        """Record outputs, losses, accuracies and distances."""
        now, points, loss_of = self._measure(), self.points, self.descent.model.loss
        outputs, test_outputs = (
            np.asarray(now.outputs, np.float64),
            np.asarray(now.test_outputs, np.float64),
        )
        loss = _loss(loss_of, now.outputs, points.y)
        step, seen = int(self.descent.steps[0]), float(self.descent.state.loss)
        if self._last_finite_step is None and not (math.isfinite(loss) and math.isfinite(seen)):
            # The loss of the last step is that before it.
            self._last_finite_step = max(0, step - (1 if math.isfinite(seen) else 2))
        if self._last_finite_step is not None:
            outputs, test_outputs = (
                np.full_like(outputs, np.nan),
                np.full_like(test_outputs, np.nan),
            )
            loss = jnp.full_like(loss, jnp.nan)
        self.descent.note(loss)
        self.last_outputs = {"train": outputs, "test": test_outputs}
        self._rows.append({
            "outputs": outputs[points.followed],
            "test_outputs": test_outputs[points.followed_test],
            "loss": float(loss),
            "test_loss": float(_loss(loss_of, now.test_outputs, points.y_test)) if len(test_outputs) else math.nan,
            "accuracy": _accuracy(outputs, np.asarray(points.y)),
            "test_accuracy": _accuracy(test_outputs, np.asarray(points.y_test)),
            "distance": float(now.distance),
            "largest_distance": float(now.largest_distance),
            "gradient_norm": float(now.gradient_norm),
        })  # fmt: skip

    def path(self, steps: Sequence[int]) -> Path:
        """Return all records so far, at these steps."""
        return Path(
            **{name: np.asarray([row[name] for row in self._rows]) for name in self._rows[0]},
            outcome=self.descent.outcomes()[0],
            last_finite_step=steps[-1]
            if self._last_finite_step is None
            else self._last_finite_step,
            crossing_step=None if (crossed := self.descent.crossing) is None else steps[crossed],
        )

    def _measure(self) -> _Measured:
        model, points = self.descent.model, self.points
        of, where = (
            (self.descent.state.trained, self.descent.fixed, self.origin),
            (points.x, points.y),
        )
        if isinstance(model, KernelModel):
            return _measure_by_kernel(model, self.network, *of, *where)
        return _measure_in_weights(model, *of, *where, points.x_test)


@partial(jax.jit, static_argnums=0)
def _loss(loss: Loss, outputs: Array, y: Array) -> Array:
    return loss.of_model(outputs, y)


@partial(jax.jit, static_argnums=0)
def _measure_in_weights(
    model: Model, trained: PyTree, fixed: PyTree, origin: Origin, x: Array, y: Array, x_test: Array
) -> _Measured:
    moved = jax.tree.leaves(jax.tree.map(jnp.subtract, trained, origin.trained))
    test_outputs = model.outputs(trained, fixed, x_test) if len(x_test) else None
    outputs = model.outputs(trained, fixed, x)
    _, gradient = model.loss_and_gradient(fixed, x, y)(model.pack(trained), None)
    test_outputs = outputs[:0] if test_outputs is None else test_outputs
    return _Measured(outputs, test_outputs, _norm(moved), _largest(moved), _norm(gradient))


@partial(jax.jit, static_argnums=(0, 1))
def _measure_by_kernel(
    model: KernelModel,
    network: Model,
    trained: Array,
    fixed: PyTree,
    origin: Origin | None,
    x: Array,
    y: Array,
) -> _Measured:
    """Measure w − w₀ = ∇F(w₀)ᵀ c: its norm √(cᵀ K c), and its largest entry by one backward pass."""
    n = len(trained)
    outputs = model.outputs(trained, fixed, x)
    _, gradient = model.loss_and_gradient(fixed, x, y)(trained, None)

    def norm(coefficients: Array) -> Array:
        with jax.default_matmul_precision("highest"):
            square = jnp.einsum("ia,ijab,jb->", coefficients, fixed.kernel[:n], coefficients)
        return jnp.sqrt(jnp.maximum(square, 0))

    largest = jnp.asarray(jnp.nan)
    if origin is not None:
        _, pull = jax.vjp(lambda w: network.outputs(w, origin.fixed, x), origin.trained)
        largest = _largest(pull(trained)[0])
    return _Measured(outputs[:n], outputs[n:], norm(trained), largest, norm(gradient))


def _norm(tree: PyTree) -> Array:
    leaves = [widened(leaf).ravel() for leaf in jax.tree.leaves(tree)]
    # A common power of two keeps squares of very large or small entries in range.
    exponent = jnp.max(jnp.stack([exponent_of(leaf) for leaf in leaves]))
    squares = [jnp.sum(scaled(leaf, exponent) ** 2) for leaf in leaves]
    return jnp.ldexp(jnp.sqrt(jnp.sum(jnp.stack(squares))), exponent)


def _largest(tree: PyTree) -> Array:
    return jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(tree)]))


def _accuracy(outputs: FloatArray, y: np.ndarray) -> float:
    """Return the share of correct rows: largest output for one-hot targets, sign for ±1; else NaN."""
    if not len(y):
        return math.nan
    if y.shape[1] == 1 and (np.abs(y) == 1).all():
        return float(np.mean((outputs > 0) == (y > 0))) if np.isfinite(outputs).all() else math.nan
    if y.shape[1] > 1 and ((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all():
        right = outputs.argmax(axis=1) == y.argmax(axis=1)
        return float(np.mean(right)) if np.isfinite(outputs).all() else math.nan
    return math.nan
