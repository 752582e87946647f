"""Networks, linear models and kernel regression on test points.

Each width, ρ and n is computed after the other.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from linearity_lab.data import Dataset, load_dataset
from linearity_lab.experiments.generalization.point import (
    GeneralizationPoint,
    GeneralizationRun,
    GeneralizationSpec,
    Predictor,
)
from linearity_lab.experiments.train_options import train_options
from linearity_lab.experiments.trained_runs import every_run
from linearity_lab.networks.build import build_network
from ntk_core import kernels
from ntk_core.dynamics import (
    BesideLinear,
    Descent,
    HistoryMeasure,
    KernelAndStart,
    KernelModel,
    Loss,
    Measure,
    Samples,
    Start,
    TrainData,
    TrainOptions,
    descend,
    kernel_matrix,
)
from ntk_core.networks.architectures import Network, NetworkParams, merge
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

RANKS = (1, 2, 3, 5, 10, 20, 50)  # numbers of leading eigenvectors; our choice
ANGLES = 10  # leading eigenvectors whose spans are compared; our choice
TRAINING_SHARE = 0.9  # of a run's progress; the rest is its linear model
SQUARE = Loss("linear", "square")
Floats = NDArray[np.float64]


def load(spec: GeneralizationSpec) -> dict[int, Dataset]:
    """Load the data of every point, by number of training points."""
    return {
        n: load_dataset(spec.dataset.name, **spec.of_samples(n).data_options()) for n in spec.counts
    }


def compute(
    spec: GeneralizationSpec, data: dict[int, Dataset], key: str, progress: Progress
) -> GeneralizationPoint:
    """Compute one width, richness and n, all seeds."""
    count = spec.value_of(key)[2]
    found = every_run(spec, _run, data[count], key, progress)
    return GeneralizationPoint(num_samples=found.pop("samples"), **found)


def _run(
    spec: GeneralizationSpec, data: Dataset, key: str, seed: int, progress: Progress
) -> GeneralizationRun:
    width, richness, _ = spec.value_of(key)
    progress = progress.named(
        f"width {width:,}, ρ = {richness:g}, n = {len(data.x):,}: seed {seed}"
    )
    progress.report(0.0, "initial kernel")
    net = build_network(spec.architecture, width, data.num_outputs, "linear")
    # Training α f toward y at rate η equals training f toward y/α at α² η: one program
    # serves every richness.
    factor = width**-richness
    given = spec.training.learning_rate
    options = train_options(
        spec.training,
        key=initial_key(seed, width),
        loss_threshold=spec.training.loss_threshold / factor**2,
        learning_rate=given if given == "auto" else given * factor**2,
    )
    params = net.init(initial_key(seed, width), data.input_shape)
    points = TrainData(data.x, np.asarray(data.y, np.float64) / factor, followed=())
    beside = BesideLinear(net, params, points, options, linearized=False)
    history = HistoryMeasure(beside, kernels=False)
    records = _Predictions(net, data, factor, spec.ridge)
    beside.descend([history, records], progress.between(0.0, TRAINING_SHARE))
    of_linear = progress.between(TRAINING_SHARE, 1.0).named("linear model")
    linear = records.linear_model(beside.options, history.steps[-1], of_linear)
    path = history.result().network
    assert path.outcome != "finished"  # a threshold is always set
    has_limit = spec.infinite_width and spec.architecture.has_infinite_width
    return GeneralizationRun(
        seed=seed,
        learning_rate=beside.learning_rate / factor**2,
        outcome=path.outcome,
        last_finite_step=path.last_finite_step,
        steps=history.steps,
        loss=tuple((factor**2 * path.loss).tolist()),
        linear=linear,
        infinite=records.of_infinite_width() if has_limit else None,
        num_test=len(data.x_test),
        **records.result(),
        **records.eigenspaces(),
    )


class _Record(NamedTuple):
    """Values of one record, named as in the result."""

    network: Predictor
    after: Predictor
    onward: Predictor
    change: float
    alignment: float
    distance: float
    moved: float
    condition: float
    jitter: float


class _Predictions(Measure[dict[str, tuple[object, ...]]]):
    """Measurements of a network and its kernels.

    F = ``factor`` · f, and all kernels are those of f.
    """

    def __init__(self, net: Network, data: Dataset, factor: float, ridge: float):
        self._net = net
        self._data = data
        self._factor = factor
        self._ridge = ridge
        self._x = jnp.asarray(data.x, jnp.result_type(float))
        self._all = jnp.concatenate([self._x, jnp.asarray(data.x_test, self._x.dtype)])
        self._y = np.asarray(data.y, np.float64) / factor
        self._start: KernelAndStart | None = None
        self._first: Floats = np.zeros((0, 0))
        self._last: Floats = self._first
        self._taken: list[_Record] = []

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        """Record the network, its kernel, and regression with it."""
        network = models["network"]
        params = merge(network.trained, network.fixed)
        outputs = _outputs(self._net, params, self._all)
        kernel = kernels.empirical_ntk(self._net, params, self._all, self._x)
        f = np.asarray(outputs, np.float64)
        matrix = kernel_matrix(kernel)
        rows = self._y.size
        train = matrix[:rows]
        n = len(self._y)
        if self._start is None:
            self._start = KernelAndStart(kernel, outputs)
            self._first = train.copy()
            self._last = train
        sought = np.stack([self._y.reshape(-1), (self._y - f[:n]).reshape(-1)], axis=1)
        fitted = kernels.kernel_regression(train, sought, matrix[rows:], self._ridge)
        from_zero, from_here = (column.reshape(-1, self._y.shape[1]) for column in fitted.outputs.T)
        self._taken.append(
            _Record(
                network=self._predictor(f[n:]),
                after=self._predictor(from_zero),
                onward=self._predictor(f[n:] + from_here),
                change=float(kernels.kernel_change(train, self._first)),
                alignment=kernels.alignment(train, self._y.reshape(-1)),
                distance=kernels.kernel_distance(train, self._first),
                moved=kernels.kernel_distance(train, self._last),
                condition=fitted.condition,
                jitter=fitted.jitter,
            )
        )
        self._last = train.copy()  # without the rows of the test points

    def result(self) -> dict[str, tuple[object, ...]]:
        """Map names to values, one per record."""
        return {
            name: tuple(getattr(record, name) for record in self._taken) for name in _Record._fields
        }

    def eigenspaces(self) -> dict[str, tuple[float, ...]]:
        """Return shares of y in leading eigenvectors of the first and last kernel.

        Also return their angles.
        """
        ranks = tuple(rank for rank in RANKS if rank <= self._y.size)
        count = min(ANGLES, self._y.size)
        if not (np.isfinite(self._first).all() and np.isfinite(self._last).all()):
            lost = (math.nan,) * len(ranks)
            return {
                "ranks": ranks,
                "first_share": lost,
                "last_share": lost,
                "angles": (math.nan,) * count,
            }
        first, last = (
            kernels.leading_eigenvectors(each, max(ranks[-1], count))
            for each in (self._first, self._last)
        )
        shares = [kernels.target_share(vectors, self._y.reshape(-1)) for vectors in (first, last)]
        first_share, last_share = (
            tuple(float(share[rank - 1]) for rank in ranks) for share in shares
        )
        angles = tuple(kernels.principal_angles(first[:, :count], last[:, :count]).tolist())
        return {
            "ranks": ranks,
            "first_share": first_share,
            "last_share": last_share,
            "angles": angles,
        }

    def linear_model(self, options: TrainOptions, num_steps: int, progress: Progress) -> Predictor:
        """Train the linear model of f at w₀ through its kernel, and return its predictions."""
        assert self._start is not None
        y = jnp.asarray(self._y, self._x.dtype)
        recorded_steps = (num_steps,) if num_steps else ()
        options = replace(options, loss_threshold=None, recorded_steps=recorded_steps)
        model = KernelModel(SQUARE)
        start = Start(jnp.zeros_like(y), self._start)
        trained = descend(
            {"linearized": model},
            {"linearized": start},
            Samples(self._x, y),
            options,
            progress=progress,
        )["linearized"].trained
        outputs = np.asarray(model.outputs(trained, self._start, self._x), np.float64)
        return self._predictor(outputs[len(y) :])

    def of_infinite_width(self) -> Predictor:
        """Regression with the kernel of infinite width, one output at a time."""
        n = len(self._y)
        kernel = np.asarray(kernels.infinite_width_ntk(self._net, self._all, self._x), np.float64)
        return self._predictor(
            kernels.kernel_regression(kernel[:n], self._y, kernel[n:], self._ridge).outputs
        )

    def _predictor(self, f: Floats) -> Predictor:
        """Test error and loss of F = factor · f."""
        outputs = self._factor * f
        data = self._data
        error = math.nan
        if data.class_names and np.isfinite(outputs).all():
            found = outputs.argmax(axis=1) if outputs.shape[1] > 1 else outputs[:, 0] > 0
            error = float(np.mean(found != data.labels_test))
        return Predictor(
            error=error, loss=float(np.mean(np.sum((outputs - data.y_test) ** 2, axis=1)) / 2)
        )


@partial(jax.jit, static_argnums=0)
def _outputs(net: Network, params: NetworkParams, x: Array) -> Array:
    """f, (n, C)."""
    return net.apply(params, x)
