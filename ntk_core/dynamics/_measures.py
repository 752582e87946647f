"""Measures of training: paths of models, their differences, and kernels along the way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from ntk_core.dynamics._descent import Descent, Measure, mean_losses, pre_outputs
from ntk_core.dynamics._history import Difference, FloatArray, KernelPath, Path
from ntk_core.dynamics._models import CallableModel, KernelModel, Model, NetworkModel, Origin
from ntk_core.dynamics._points import TrainingPoints
from ntk_core.dynamics._rates import eigenvalues
from ntk_core.kernels import exponent_of, scaled, unchecked_ntk, widened
from ntk_core.traced import through_output


class PathMeasure(Measure[Path]):
    """Losses, accuracies, distances and outputs of one model at training and test points.

    Args:
        name: of the model.
        origin: w₀ of ``network``, whose linear model a :class:`KernelModel` is; None at infinite
            width.
    """

    def __init__(self, name: str, points: TrainingPoints, origin: Origin | None, network: Model):
        self._name = name
        self._points = points
        self._origin = origin
        self._network = network
        self._last_finite_step: int | None = None  # known once the model has diverged
        self._steps: list[int] = []
        self._rows: list[dict[str, FloatArray | float]] = []
        self.last_outputs: dict[str, FloatArray] = {}  # of the last record, NaN once diverged

    def start(self, models: Mapping[str, Descent]) -> None:
        self._descent = models[self._name]

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        descent = self._descent
        points = self._points
        loss_of = descent.model.loss
        now = self._measure()
        descent.hand_over(outputs=now.outputs)
        loss = float(descent.losses)
        outputs = np.asarray(now.outputs, np.float64)
        test_outputs = np.asarray(now.test_outputs, np.float64)
        if self._last_finite_step is None and descent.is_lost[0]:
            # The loss of the last step is that before it.
            steps_back = 1 if math.isfinite(float(descent.state.loss)) else 2
            self._last_finite_step = max(0, int(descent.steps[0]) - steps_back)
        if self._last_finite_step is not None:
            outputs = np.full_like(outputs, np.nan)
            test_outputs = np.full_like(test_outputs, np.nan)
            loss = math.nan
        self.last_outputs = {"train": outputs, "test": test_outputs}
        test_loss = math.nan
        if len(test_outputs):
            test_loss = float(mean_losses(loss_of, False, False, now.test_outputs, points.y_test))
        self._steps.append(step)
        self._rows.append(
            {
                "outputs": outputs[points.followed],
                "test_outputs": test_outputs[points.followed_test],
                "loss": loss,
                "test_loss": test_loss,
                "accuracy": _accuracy(outputs, np.asarray(points.y)),
                "test_accuracy": _accuracy(test_outputs, np.asarray(points.y_test)),
                "distance": float(now.distance),
                "largest_distance": float(now.largest_distance),
                "gradient_norm": float(now.gradient_norm),
            }
        )

    def result(self) -> Path:
        """All records so far."""
        last_finite_step = self._last_finite_step
        crossing = self._descent.crossing
        return Path(
            **_columns(self._rows),
            outcome=self._descent.outcomes()[0],
            last_finite_step=self._steps[-1] if last_finite_step is None else last_finite_step,
            crossing_step=None if crossing is None else self._steps[crossing],
        )

    def _measure(self) -> _Measured:
        descent = self._descent
        at = descent.trained, descent.fixed, self._origin, self._points.x, self._points.y
        if isinstance(descent.model, KernelModel):
            return _measure_by_kernel(descent.model, self._network, *at)
        return _measure_in_weights(descent.model, *at, self._points.x_test)


class DifferenceMeasure(Measure[dict[str, Difference | None]]):
    """Differences of two models over all training and over all test points.

    Args:
        one, other: the paths of the models, recorded before; the difference is
            relative to the second.
    """

    def __init__(self, one: PathMeasure, other: PathMeasure):
        self._one = one
        self._other = other
        self._rows: dict[str, list[tuple[float, float]]] = {"train": [], "test": []}

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        for name, rows in self._rows.items():
            ours = self._one.last_outputs[name]
            theirs = self._other.last_outputs[name]
            if not len(theirs):
                continue
            square = float(np.mean(np.sum((ours - theirs) ** 2, axis=-1)))
            scale = float(np.mean(np.sum(theirs**2, axis=-1)))
            relative = 0.0 if square == 0 else np.inf
            if scale > 0:
                relative = square / scale
            rows.append((square, relative))

    def result(self) -> dict[str, Difference | None]:
        """The differences of ``train`` and ``test``; None without points."""
        return {
            name: Difference(*np.asarray(rows, np.float64).T) if rows else None
            for name, rows in self._rows.items()
        }


class KernelPathMeasure(Measure[KernelPath]):
    """Kernels of output φ at the first training points: change, spectrum, and the parts of layers.

    Args:
        name: of the model.
        x: the inputs of the kernel.
    """

    def __init__(self, name: str, x: Array):
        self._name = name
        self._x = x
        self._is_layered = False
        self._first: dict[str, FloatArray] = {}
        self._first_pre: FloatArray | None = None
        self._num_rows = 0
        self._precision = 0.0
        self._rows: list[dict[str, float]] = []
        self._layers: list[dict[str, float]] = []

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        descent = models[self._name]
        model = descent.model
        trained = descent.trained
        fixed = descent.fixed
        assert isinstance(model, NetworkModel | CallableModel)
        net, params = model.traced(trained, fixed)
        output = "linear"
        if isinstance(model, NetworkModel):
            output = model.net.output
            self._is_layered = True
            pre_parts = unchecked_ntk(net, params, self._x, per_layer=True)
        else:
            pre_parts = {"": unchecked_ntk(net, params, self._x)}
        parts = pre_parts
        if output != "linear":
            f = pre_outputs(model, trained, fixed, self._x)
            parts = {name: through_output(output, part, f, f) for name, part in pre_parts.items()}
        self._precision = max(float(jnp.finfo(part.dtype).eps) for part in parts.values())
        now = {name: np.asarray(part, np.float64) for name, part in parts.items()}
        self._first = self._first or now
        first = np.asarray(sum(self._first.values()))  # (n, n, C, C)
        total = np.asarray(sum(now.values()))
        spectrum = eigenvalues(total)
        self._num_rows = len(spectrum)
        # Before φ.
        pre = total
        pre_spectrum = spectrum
        if output != "linear":
            pre = np.asarray(sum(pre_parts.values()), np.float64)
            pre_spectrum = eigenvalues(pre)
        if self._first_pre is None:
            self._first_pre = pre
        of_layers = {}
        for name, part in now.items():
            of_layers[name] = _share(part - self._first[name], first)
        self._layers.append(of_layers)
        self._rows.append(
            {
                "change": _share(total - first, first),
                "smallest": spectrum[-1],
                "largest": spectrum[0],
                "pre_output_smallest": pre_spectrum[-1],
                "pre_output_change": _share(pre - self._first_pre, self._first_pre),
            }
        )

    def result(self) -> KernelPath:
        """All records so far."""
        layers = self._layers if self._is_layered else [{}]
        return KernelPath(
            **_columns(self._rows),
            layer_change=_columns(layers),
            num_points=len(self._x),
            num_rows=self._num_rows,
            precision=self._precision,
        )


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Return the values of all records by name, with a leading axis of records."""
    columns = {}
    for name in rows[0]:
        columns[name] = np.asarray([row[name] for row in rows])
    return columns


def _share(part: FloatArray, whole: FloatArray) -> float:
    """Return ‖part‖_F / ‖whole‖_F; NaN if the whole is 0."""
    norm = float(np.linalg.norm(whole))
    return float(np.linalg.norm(part)) / norm if norm else math.nan


class _Measured(NamedTuple):
    outputs: Array
    test_outputs: Array
    distance: Array
    largest_distance: Array
    gradient_norm: Array


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
    """Measure w − w₀ = ∇F(w₀)ᵀ c.

    Its norm √(cᵀ K c), and its largest entry by one backward pass.
    """
    n = len(trained)
    outputs = model.outputs(trained, fixed, x)
    _, gradient = model.loss_and_gradient(fixed, x, y)(trained, None)

    def norm(coefficients: Array) -> Array:
        with jax.default_matmul_precision("highest"):
            square = jnp.einsum("ia,ijab,jb->", coefficients, fixed.kernel[:n], coefficients)
        return jnp.sqrt(jnp.maximum(square, 0))

    largest = jnp.asarray(jnp.nan)
    if origin is not None:
        found, pull = jax.vjp(lambda w: network.outputs(w, origin.fixed, x), origin.trained)
        largest = _largest(pull(trained.astype(found.dtype))[0])
    return _Measured(outputs[:n], outputs[n:], norm(trained), largest, norm(gradient))


def _norm(tree: PyTree) -> Array:
    leaves = [widened(leaf).ravel() for leaf in jax.tree.leaves(tree)]
    # A common power of two keeps squares of very large or small entries in range.
    exponent = exponent_of(*leaves)
    squares = [jnp.sum(scaled(leaf, exponent) ** 2) for leaf in leaves]
    return jnp.ldexp(jnp.sqrt(jnp.sum(jnp.stack(squares))), exponent)


def _largest(tree: PyTree) -> Array:
    largest = [jnp.max(jnp.abs(leaf), initial=0) for leaf in jax.tree.leaves(tree)]
    return jnp.max(jnp.stack(largest))


def _accuracy(outputs: FloatArray, y: np.ndarray) -> float:
    """Return the share of correct rows.

    Largest output for one-hot targets, sign for ±1; else NaN.
    """
    if not len(y):
        return math.nan
    if y.shape[1] == 1 and (np.abs(y) == 1).all():
        return float(np.mean((outputs > 0) == (y > 0))) if np.isfinite(outputs).all() else math.nan
    if y.shape[1] > 1 and ((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all():
        right = outputs.argmax(axis=1) == y.argmax(axis=1)
        return float(np.mean(right)) if np.isfinite(outputs).all() else math.nan
    return math.nan
