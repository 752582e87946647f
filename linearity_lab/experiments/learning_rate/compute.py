"""Simultaneous training of three models at many rates.

Linear, quadratic and true models of all seeds are trained one width after the other.
"""

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from linearity_lab.data import Dataset
from linearity_lab.experiments.learning_rate import point as learning_rate
from linearity_lab.experiments.learning_rate.point import (
    LearningRateSpec,
    RatePath,
    RatePoint,
    RateRun,
)
from linearity_lab.networks.build import build_network
from linearity_lab.settings.training import USUAL_LOSS
from ntk_core import dynamics
from ntk_core.dynamics.choices import LOSSES
from ntk_core.networks.architectures import NetworkParams
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

Pairs = list[tuple[int, float]]  # (index of the seed, rate c)
# Steps compile as usual, since runs near the edge of divergence depend on their rounding.
LEVELS = dynamics.Levels(records=1)
GROWN_STEPS = 5  # interval of reports while recorded paths grow; our choice


def compute(spec: LearningRateSpec, data: Dataset, key: str, progress: Progress) -> RatePoint:
    """Compute one width, all models, rates and seeds, and show the runs so far."""
    with dynamics.short_runs(LEVELS):
        return _compute(spec, data, spec.value_of(key), progress)


def _compute(spec: LearningRateSpec, data: Dataset, width: int, progress: Progress) -> RatePoint:
    start = _Start(spec, data, width)
    runs: list[RateRun] = []

    def point(growing: Sequence[RateRun] = ()) -> RatePoint:
        num_params = start.model.net.num_params(data.input_shape, only_trained=True)
        found = learning_rate.with_predictions((*runs, *growing))
        ordered = sorted(found, key=lambda run: (spec.models.index(run.model), run.seed, run.rate))
        return RatePoint(width=width, num_params=num_params, runs=tuple(ordered))

    # The smallest rate first: its runs predict the peaks of all others.
    pairs = [(index, rate) for rate in spec.rates for index in range(spec.num_seeds)]
    for number, name in enumerate(spec.models):
        of_model = progress.part(number, len(spec.models)).named(f"width {width:,}: {name} model")
        size = learning_rate.together(spec, spec.counted(width), name)
        for first in range(0, len(pairs), size):
            last = min(first + size, len(pairs))
            chunk = _Chunk(spec, start, name, pairs[first:last])
            chunk.train(of_model.between(first / len(pairs), last / len(pairs)), point)
            runs += chunk.result()
            of_model.report(last / len(pairs))
            of_model.show(point())
    return point()


def _records(spec: LearningRateSpec) -> tuple[int, ...]:
    """Return the recorded steps.

    All early ones, which include peaks of the loss, then a logarithmic grid.
    """
    dense = range(1, min(spec.max_steps, learning_rate.DENSE_RECORDS) + 1)
    grid = dynamics.record_steps(spec.max_steps, learning_rate.DENSE_RECORDS)
    return tuple(sorted({*dense, *grid}))


class _Start:
    """Start of all models of one width, per seed: w₀, its kernel, and the rate at c = 1."""

    def __init__(self, spec: LearningRateSpec, data: Dataset, width: int):
        net = build_network(spec.architecture, width, data.num_outputs, spec.output)
        is_usual = spec.loss == USUAL_LOSS
        loss = dynamics.Loss(spec.output, "" if is_usual else spec.loss)
        self.model = dynamics.NetworkModel(net, loss)
        self.x = jnp.asarray(data.x)
        self.y = jnp.asarray(data.y if is_usual else LOSSES[spec.loss].targets_of(data.y))
        batch_size = spec.batch_size if spec.takes_batches else None
        self.optimizer = dynamics.Optimizer(spec.method, spec.momentum, batch_size)
        self.key = initial_key(spec.seed, width)
        # Seed by seed: the programs that draw weights serve all widths and experiments.
        params = [net.init(initial_key(seed, width), data.input_shape) for seed in spec.seeds]
        self.trained, self.fixed = net.partition(_stacked(params))
        self.kernels = np.asarray(
            _kernel_matrices(self.model, self.trained, self.fixed, self.x), np.float64
        )
        self.eigenvalues = np.linalg.eigvalsh(self.kernels)[:, -1]
        stable = [
            self.optimizer.stable_rate(value, len(self.x), self.model.loss.model_curvature)
            for value in self.eigenvalues
        ]
        self.unit_rates = np.asarray(stable, np.float64) / 2

    def of(self, index: np.ndarray, name: str) -> tuple[dynamics.Model, dynamics.Start]:
        """Return the model of one kind, and its weights for these seeds."""
        trained, fixed = _of_seeds((self.trained, self.fixed), index)
        if name == "network":
            return self.model, dynamics.Start(trained, fixed)
        if name == "quadratic":
            copied, _ = _of_seeds((self.trained, self.fixed), index)
            start = dynamics.Start(copied, dynamics.Origin(trained, fixed))
            return dynamics.QuadraticModel(self.model), start
        shape = (len(index), len(self.x), self.y.shape[1])
        kernels = jnp.asarray(
            self.kernels[index].reshape(*shape, *shape[1:]), self.y.dtype
        ).transpose(0, 1, 3, 2, 4)
        outputs = _outputs(self.model, self.trained, self.fixed, self.x)
        fixed = dynamics.KernelAndStart(kernels, outputs[index])
        start = dynamics.Start(jnp.zeros(shape, self.y.dtype), fixed)
        return dynamics.KernelModel(self.model.loss), start


class _Chunk(dynamics.Measure[list[RateRun]]):
    """Some runs of one model, trained simultaneously, with their losses and curvatures."""

    def __init__(self, spec: LearningRateSpec, start: _Start, name: str, pairs: Pairs):
        self._spec = spec
        self._start = start
        self._name = name
        self._pairs = pairs
        self._index = np.asarray([index for index, _ in pairs])
        self._rates = start.unit_rates[self._index] * np.asarray([rate for _, rate in pairs])
        self._steps: list[np.ndarray] = []
        self._losses: list[np.ndarray] = []
        self._kept: list[dict[str, np.ndarray]] = []
        self._peaks = np.full(len(pairs), -np.inf)  # of the curvature, if it is kept

    def train(self, progress: Progress, point: Callable[[Sequence[RateRun]], RatePoint]) -> None:
        """Train all runs; show the point with their growing paths, if they are kept."""

        def show(step: int) -> None:
            if self._spec.keep_paths and step % GROWN_STEPS == 0:
                progress.show(point(self.result()))

        model, start = self._start.of(self._index, self._name)
        options = dynamics.TrainOptions(
            learning_rate=jnp.asarray(self._rates, self._start.y.dtype),
            optimizer=self._start.optimizer,
            loss_threshold=self._spec.loss_threshold,
            recorded_steps=_records(self._spec),
            key=self._start.key,
            together=True,
        )
        data = dynamics.Samples(self._start.x, self._start.y)
        measures = [self, dynamics.AtRecords(show)]
        dynamics.descend({"model": model}, {"model": start}, data, options, measures, progress)

    def start(self, models: Mapping[str, dynamics.Descent]) -> None:
        self._descent = models["model"]

    def record(self, step: int, models: Mapping[str, dynamics.Descent]) -> None:
        """Record the loss of every run, and :meth:`_measure` if paths or curvatures are kept."""
        self._steps.append(self._descent.steps.copy())
        self._losses.append(np.asarray(self._descent.losses, np.float64))
        if not (self._spec.keep_paths or self._spec.keep_curvature):
            return
        measured = self._measure()
        self._peaks = np.fmax(self._peaks, measured["curvature"])  # NaN after a divergence
        if self._spec.keep_paths:
            self._kept.append(measured)

    def result(self) -> list[RateRun]:
        """Return the records of each model, partial for unfinished ones."""
        ends = self._kept[-1] if self._kept else self._measure()
        return [self._run(number, *pair, ends) for number, pair in enumerate(self._pairs)]

    def _run(self, number: int, index: int, rate: float, ends: dict[str, np.ndarray]) -> RateRun:
        kept = [
            at
            for at in range(len(self._steps))
            if at == 0 or self._steps[at][number] > self._steps[at - 1][number]
        ]
        losses = [float(self._losses[at][number]) for at in kept]
        curvature = float(ends["curvature"][number])
        path = None
        if self._spec.keep_paths and index == 0:
            columns = {
                name: tuple(float(self._kept[at][name][number]) for at in kept) for name in ends
            }
            path = RatePath(
                steps=tuple(int(self._steps[at][number]) for at in kept),
                loss=tuple(losses),
                **columns,
            )
        return RateRun(
            model=self._name,
            rate=rate,
            seed=self._spec.seed + index,
            learning_rate=float(self._rates[number]),
            outcome=learning_rate.rate_outcome(
                losses, curvature <= learning_rate.DEAD_SHARE * rate
            ),
            converged=losses[-1] <= self._spec.loss_threshold,
            num_steps=int(self._steps[kept[-1]][number]),
            first_loss=losses[0],
            peak_loss=max(filter(np.isfinite, losses), default=np.nan),
            last_loss=losses[-1],
            curvature=curvature,
            path=path,
            peak_curvature=float(self._peaks[number]) if self._spec.keep_curvature else None,
        )

    def _measure(self) -> dict[str, np.ndarray]:
        """Measure the curvature of every run in units of the rate; for paths also more.

        They are the distance from w₀ and ΔK.
        """
        state = self._descent.state
        fixed = self._descent.fixed
        start = self._start
        rates = np.asarray([rate for _, rate in self._pairs])
        first = start.kernels[self._index]
        if self._name == "linear":
            moved = np.asarray(state.trained, np.float64).reshape(len(rates), -1)
            with np.errstate(over="ignore", invalid="ignore"):
                distance = np.sqrt(np.maximum(np.einsum("sa,sab,sb->s", moved, first, moved), 0))
            finite = np.isfinite(moved).all(axis=1)
            return {
                "curvature": np.where(finite, rates, np.nan),
                "distance": np.where(finite, distance, np.nan),
                "change": np.where(finite, 0.0, np.nan),
            }
        now: np.ndarray = np.asarray(
            _kernel_matrices(self._descent.model, state.trained, fixed, start.x), np.float64
        )
        finite = np.isfinite(now).all(axis=(1, 2))
        largest = np.linalg.eigvalsh(np.where(finite[:, None, None], now, 0.0))[:, -1]
        before = start.eigenvalues[self._index]
        ratio = np.divide(largest, before, out=np.zeros_like(largest), where=before > 0)
        measured = {"curvature": np.where(finite, rates * ratio, np.nan)}
        if self._spec.keep_paths:
            origin, _ = _of_seeds((start.trained, start.fixed), self._index)
            change = np.linalg.norm(now - first, axis=(1, 2)) / np.linalg.norm(first, axis=(1, 2))
            measured["distance"] = np.asarray(_distances(state.trained, origin), np.float64)
            measured["change"] = np.where(finite, change, np.nan)
        return measured


@dynamics.compiled("records")
def _stacked(params: list[NetworkParams]) -> NetworkParams:
    """Return the weights of all seeds, with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *params)


@dynamics.compiled("records")
def _of_seeds(weights: PyTree, index: Array) -> PyTree:
    """Return copies of the weights of these seeds."""
    return jax.tree.map(lambda leaf: leaf[index], weights)


@dynamics.compiled("records", static_argnums=0)
def _outputs(model: dynamics.Model, trained: PyTree, fixed: PyTree, x: Array) -> Array:
    """F of every run, (runs, n, C)."""
    found: Array = jax.vmap(lambda t, f: model.outputs(t, f, x))(trained, fixed)
    return found


@dynamics.compiled("records", static_argnums=0)
def _kernel_matrices(model: dynamics.Model, trained: PyTree, fixed: PyTree, x: Array) -> Array:
    """The tangent kernel of every run as a matrix, (runs, nC, nC)."""

    def one(run: tuple[PyTree, PyTree]) -> Array:
        now, stays = run
        outputs, pull = jax.vjp(lambda w: model.outputs(w, stays, x), now)
        rows = jnp.eye(outputs.size, dtype=outputs.dtype).reshape(outputs.size, *outputs.shape)
        jacobian = jax.vmap(lambda row: pull(row)[0])(rows)
        parts = [leaf.reshape(outputs.size, -1) for leaf in jax.tree.leaves(jacobian)]
        return sum((jnp.matmul(part, part.T, precision="highest") for part in parts), jnp.zeros(()))

    return jax.lax.map(one, (trained, fixed))


@dynamics.compiled("records")
def _distances(trained: PyTree, origin: PyTree) -> Array:
    squares = jax.tree.map(
        lambda w, w0: jnp.sum((w - w0) ** 2, axis=tuple(range(1, w.ndim))), trained, origin
    )
    return jnp.sqrt(sum(jax.tree.leaves(squares), jnp.zeros(())))
