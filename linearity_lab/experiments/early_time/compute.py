"""Networks and their linear models, one width or input dimension at a time.

Source: Hu, Xiao, Adlam & Pennington 2020.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from linearity_lab.data import Dataset
from linearity_lab.experiments.early_time.inputs import image_pair, synthetic_data
from linearity_lab.experiments.early_time.point import (
    Constants,
    EarlyPoint,
    EarlyRun,
    InputSizes,
    KernelComparison,
    ModelCurve,
    PathBound,
    Series,
)
from linearity_lab.experiments.early_time.spec import NUM_LOSS_INPUTS, EarlyTimeSpec
from linearity_lab.networks.build import build_network
from ntk_core import early_time
from ntk_core.dynamics import AtRecords, Descent, Measure, TrainOptions, descend
from ntk_core.early_time import InputSpan
from ntk_core.kernels import infinite_width_ntk
from ntk_core.networks.architectures import (
    ConvNet,
    FullyConnected,
    Mirrored,
    Network,
    NetworkParams,
    merge,
)
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

AUTO_RATE_SHARE = 0.1  # of the largest stable rate of the linear model; our choice
NUM_SINGLE_POINTS = 5
_DIVERGED = 10.0  # times the initial loss
_Row = tuple[float, float, float, float, Series]  # four losses, single outputs


def load(spec: EarlyTimeSpec) -> dict[int, Dataset]:
    """Load the data of every point, by input dimension."""
    data = spec.dataset
    dims = sorted({spec.dim_at(key) for key in spec.point_keys()})
    if not data.is_synthetic:
        return {dims[0]: image_pair(data.name, **data.image_options())}
    return {
        d: synthetic_data(
            data.name,
            early_time.covariance_spectrum(data.spectrum, d),
            data.target,
            **data.model_dump(
                include={"num_samples", "num_test", "seed", "teacher_width", "noise"}
            ),
        )
        for d in dims
    }


def compute(
    spec: EarlyTimeSpec, data: dict[int, Dataset], key: str, progress: Progress
) -> EarlyPoint:
    """Compute one point, all activations and seeds, and show its growing curves."""
    d = spec.dim_at(key)
    width = spec.width_at(key)
    name = f"d = {d:,}" if spec.swept == "input_dim" else f"width {width:,}"
    found = _PointSoFar(spec, data[d], width, d)
    tasks = [(activation, seed) for activation in spec.network.activations for seed in spec.seeds]
    for index, (activation, seed) in enumerate(tasks):
        of_task = progress.part(index, len(tasks)).named(f"{name}: {activation}, seed {seed}")
        features = _features(spec, activation, d, found.ratio)
        found.constants[activation] = _constants(activation, features, found.ratio)
        dims = (d,) if spec.swept == "input_dim" else ()
        drawn = initial_key(seed, width, *dims)
        task = _Task(activation, seed, _network(spec, activation, width, d), features, drawn)
        kernel_error: float | None = None
        # The kernel at infinite width is the same for all seeds.
        if spec.kernel_samples and not (spec.infinite_width and seed > spec.seed):
            of_task.report(0.0, "kernel")
            difference = found.compare_kernels(task)
            kernel_error = difference if spec.has_path else None
        if spec.training.max_steps:
            found.train(task, kernel_error, of_task)
    return found.point()


class _Task(NamedTuple):
    """One network of a point, and the key of its weights."""

    activation: str
    seed: int
    net: Network
    features: early_time.LinearFeatures
    key: Array


class _PointSoFar:
    """Runs and measures of a point whose networks are being computed.

    Attributes:
        ratio: of the covariance of the inputs, Tr Σ²/d.
    """

    def __init__(self, spec: EarlyTimeSpec, data: Dataset, width: int, d: int):
        self._spec = spec
        self._data = data
        self._width = width
        self._d = d
        self._x = _shaped(spec, data.x)
        self._sizes: InputSizes | None = None
        if spec.dataset.is_synthetic:
            self.ratio = float(
                np.mean(early_time.covariance_spectrum(spec.dataset.spectrum, d) ** 2)
            )
            if spec.kernel_samples:
                sizes = early_time.input_sizes(data.x[: spec.kernel_samples])
                self._sizes = InputSizes(**sizes._asdict())
        else:
            self.ratio = early_time.covariance_ratio(data.x)
        self._span: InputSpan | None = None
        self.constants: dict[str, Constants] = {}
        self._runs: list[EarlyRun] = []
        self._kernels: list[KernelComparison] = []

    def point(self, *growing: EarlyRun) -> EarlyPoint:
        """Return the point, with a run that is not finished."""
        return EarlyPoint(
            swept=self._spec.swept,
            width=self._width,
            input_dim=self._d,
            covariance_ratio=self.ratio,
            span_dimension=self._span.dimension if self._span else 0,
            constants=self.constants,
            runs=(*self._runs, *growing),
            kernels=tuple(self._kernels),
            inputs=self._sizes,
        )

    def compare_kernels(self, task: _Task) -> float:
        """Add the norm of K − ψψᵀ and its parts; return the norm."""
        x = self._x[: self._spec.kernel_samples]
        kernel = _kernel(self._spec, task.net, x, task.key)
        norms = early_time.kernel_norms(kernel, task.features, x)
        which = {"activation": task.activation, "seed": task.seed, "num_samples": len(x)}
        self._kernels.append(KernelComparison.read_off(norms, **which))
        return norms.difference

    def train(self, task: _Task, kernel_error: float | None, progress: Progress) -> None:
        """Train one network beside its linear models and add its run."""
        spec = self._spec
        data = self._data
        progress.report(0.0, "linear model")
        span = self._span = self._span or InputSpan(data.x_test)
        models = _LinearModels(spec, data, task.features, task.seed)
        progress.report(0.0, "first step")
        params = task.net.init(task.key, self._x.shape[1:])
        path = None if kernel_error is None else _Path(spec, data, params, kernel_error)
        curves = _Curves(spec, data, task.activation, task.net, params, models, span, path)
        start = early_time.early_start(task.net, params, self._x, data.y)
        options = _options(spec, params, models)
        show = AtRecords(lambda _: progress.show(self.point(curves.result())))
        descend(*start, options, [curves, show], progress)
        self._runs.append(curves.result())


def _constants(activation: str, features: early_time.LinearFeatures, ratio: float) -> Constants:
    moments = early_time.activation_constants(activation)
    theta = (moments.theta0, moments.theta1, moments.theta2)
    return Constants.read_off(features, zeta=moments.zeta, nu=moments.nu(ratio), theta=theta)


class _LinearModels:
    """The linear and the naive model, with the rate and batches of the network."""

    def __init__(
        self, spec: EarlyTimeSpec, data: Dataset, features: early_time.LinearFeatures, seed: int
    ):
        settings = spec.training
        self.seed = seed
        if settings.learning_rate == "auto":
            largest = early_time.LinearModel(features, data.x, data.y).largest_eigenvalue
            self.rate = AUTO_RATE_SHARE * 2 / largest if largest > 0 else AUTO_RATE_SHARE
        else:
            self.rate = float(settings.learning_rate)
        order = (len(data.y), settings.batch_size, settings.max_steps, seed)
        self.batches = early_time.batch_order(*order) if settings.batch_size else None
        scaled = features.at_rate(self.rate)
        self.linear = _Linear(scaled, data, self.batches)
        # Without a norm feature the two coincide.
        self.naive = (
            self.linear if scaled == scaled.naive() else _Linear(scaled.naive(), data, self.batches)
        )


def _options(spec: EarlyTimeSpec, params: NetworkParams, models: _LinearModels) -> TrainOptions:
    """Return the options of a network with the rate and the batches of its linear models."""
    settings = spec.training
    hidden = models.rate * settings.rate_hidden
    last = models.rate * settings.rate_output
    batches = models.batches
    return TrainOptions(
        learning_rate=early_time.layer_rates(params, hidden, last),
        max_steps=settings.max_steps,
        num_records=settings.num_records,
        batches=None if batches is None else jnp.asarray(batches, jnp.int32),
    )


class _Path:
    """Distance to the linear model and movement of the weights along training."""

    def __init__(
        self, spec: EarlyTimeSpec, data: Dataset, params: NetworkParams, kernel_error: float
    ):
        settings = spec.training
        factors = early_time.layer_rates(params, settings.rate_hidden, settings.rate_output)
        self._factors = {name: float(factor) for name, factor in factors.items()}
        # Copies on the host, since training overwrites the weights.
        self._start = {name: jax.device_get(layer) for name, layer in params.items()}
        self._kernel_error = kernel_error
        self._scale = math.sqrt(float(np.mean(np.square(data.y, dtype=np.float64))))
        self._num_samples = len(data.y)
        self._distance: list[float] = []
        self._movement: list[float] = []

    def record(self, params: NetworkParams, apart: NDArray) -> None:
        """Add weights, and f − f_lin on all training inputs, (n,)."""
        square = 0.0
        for name, factor in self._factors.items():
            if factor > 0:
                now = jax.device_get(params[name])
                changes = jax.tree.map(np.subtract, now, self._start[name])
                leaves = jax.tree.leaves(changes)
                square += (
                    sum(float(np.sum(np.square(leaf, dtype=np.float64))) for leaf in leaves)
                    / factor
                )
        self._movement.append(math.sqrt(square))
        self._distance.append(math.sqrt(float(np.mean(apart**2))))

    def result(self) -> PathBound:
        """Return the records so far."""
        return PathBound(
            distance=tuple(self._distance),
            movement=tuple(self._movement),
            kernel_error=self._kernel_error,
            scale=self._scale,
            num_samples=self._num_samples,
        )


class _Curves(Measure[EarlyRun]):
    """Losses and outputs of a network beside its linear models."""

    def __init__(
        self,
        spec: EarlyTimeSpec,
        data: Dataset,
        activation: str,
        net: Network,
        params: NetworkParams,
        models: _LinearModels,
        span: InputSpan,
        path: _Path | None,
    ):
        self._activation = activation
        self._net = net
        self._seed = models.seed
        self._span = span
        self._path = path
        self._keeps_outputs = models.seed == spec.seed
        self._rate = models.rate
        self._linear = models.linear
        self._naive = models.naive
        x = _shaped(spec, data.x)[:NUM_LOSS_INPUTS]
        x_test = _shaped(spec, data.x_test)
        self._x = x
        self._x_test = x_test
        self._y = data.y[:NUM_LOSS_INPUTS][:, 0].astype(np.float64)
        self._y_test = data.y_test[:, 0].astype(np.float64)
        self._initial = tuple(
            early_time.outputs_in_blocks(net, params, seen) for seen in (x, x_test)
        )
        self._curves: dict[str, list[_Row]] = {"network": [], "linear": [], "naive": []}
        self._steps: list[int] = []
        self._distances: dict[str, list[float]] = {
            "distance": [],
            "naive_distance": [],
            "linear_power": [],
        }
        self._outcome: Literal["completed", "diverged"] = "completed"

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        """Record outputs and losses of the three models."""
        descent = models["network"]
        params = merge(descent.trained, descent.fixed)
        seen = zip((self._x, self._x_test), self._initial, strict=True)
        outputs = {
            "network": tuple(
                early_time.outputs_in_blocks(self._net, params, x) - initial for x, initial in seen
            ),
            "linear": self._linear.outputs_at(step),
            "naive": self._naive.outputs_at(step),
        }
        self._steps.append(step)
        for name, (train, test) in outputs.items():
            residual = test - self._y_test
            single = tuple(test[:NUM_SINGLE_POINTS].tolist())
            losses = (
                _half_mean_square(train - self._y),
                _half_mean_square(residual),
                *self._span.split(residual),
            )
            self._curves[name].append((*losses, single))
        network, linear, naive = (test for _, test in outputs.values())
        for name, apart in zip(
            self._distances, (network - linear, network - naive, linear), strict=True
        ):
            self._distances[name].append(float(np.mean(apart**2)))
        if self._path is not None:
            self._path.record(params, outputs["network"][0] - outputs["linear"][0])
        first, *_ = self._curves["network"][0]
        loss, *_ = self._curves["network"][-1]
        if not loss <= _DIVERGED * max(first, 1e-12):
            self._outcome = "diverged"
        # NaN ends the descent.
        loss = loss if self._outcome == "completed" else math.nan
        descent.hand_over(losses=jnp.asarray(loss, jnp.result_type(float)))

    def result(self) -> EarlyRun:
        """Recorded curves."""
        targets = self._y_test[: NUM_SINGLE_POINTS if self._keeps_outputs else 0]
        curves = {}
        for name, rows in self._curves.items():
            *losses, outputs = zip(*rows, strict=True)
            named = zip(
                ("train_loss", "test_loss", "span_loss", "complement_loss"), losses, strict=True
            )
            curves[name] = ModelCurve(**dict(named), outputs=outputs if self._keeps_outputs else ())
        train_loss, test_loss = (
            _half_mean_square(outputs - y)
            for outputs, y in zip(self._linear.best(), (self._y, self._y_test), strict=True)
        )
        return EarlyRun(
            activation=self._activation,
            seed=self._seed,
            learning_rate=self._rate,
            outcome=self._outcome,
            steps=tuple(self._steps),
            **curves,
            **self._distances,
            target_power=float(np.mean(self._y_test**2)),
            optimal_train_loss=train_loss,
            optimal_test_loss=test_loss,
            targets=tuple(targets.tolist()),
            path=None if self._path is None else self._path.result(),
        )


class _Linear:
    """Outputs of a linear model at increasing steps, on the measured inputs."""

    def __init__(self, features: early_time.LinearFeatures, data: Dataset, batches: NDArray | None):
        self._model = early_time.LinearModel(features, data.x, data.y)
        self._psi_test = features(data.x_test)
        self._batches = batches
        self._step = 0
        self._weights = np.zeros(self._psi_test.shape[1])

    def outputs_at(self, step: int) -> tuple[NDArray, NDArray]:
        """Return (training, test) outputs after ``step`` steps.

        In closed form, or by iterating minibatches.
        """
        if self._batches is None:
            self._weights = self._model.weights_at(step)
        else:
            self._weights = self._model.after_batches(
                self._weights, self._batches[self._step : step]
            )
        self._step = step
        return self._outputs(self._weights)

    def best(self) -> tuple[NDArray, NDArray]:
        """(training, test) outputs of the least-squares solution."""
        return self._outputs(self._model.optimal_weights())

    def _outputs(self, weights: NDArray) -> tuple[NDArray, NDArray]:
        return self._model.outputs(weights)[:NUM_LOSS_INPUTS], self._psi_test @ weights


def _features(
    spec: EarlyTimeSpec, activation: str, d: int, ratio: float
) -> early_time.LinearFeatures:
    """Return ψ at η = 1, including the rate factors of layers."""
    rates = spec.training.rate_hidden, spec.training.rate_output
    if spec.network.num_hidden == 1:
        return early_time.two_layer_features(
            early_time.activation_constants(activation), d, ratio, *rates
        )
    return early_time.deep_features(activation, spec.network.num_hidden, d, ratio, *rates)


def _network(spec: EarlyTimeSpec, activation: str, width: int, d: int) -> Network:
    network = spec.network
    trained: Literal["all", "hidden", "last"] = "all"
    if spec.training.rate_output == 0:
        trained = "hidden"
    elif spec.training.rate_hidden == 0:
        trained = "last"
    halves = network.start == "symmetric" and not network.is_doubled
    architecture = network.architecture(activation, d, trained)
    return build_network(
        architecture, width, 1, "linear", symmetric=halves, dimensions=network.dimensions
    )


def _kernel(spec: EarlyTimeSpec, net: Network, x: NDArray, drawn: Array) -> NDArray:
    """The kernel at w₀, or of infinite width, at η = 1."""
    rates = spec.training.rate_hidden, spec.training.rate_output
    if not spec.infinite_width:
        return early_time.weighted_kernel(net, net.init(drawn, x.shape[1:]), x, *rates)
    plain = net.net if isinstance(net, Mirrored) else net
    kernel = np.zeros((len(x), len(x)))
    assert isinstance(plain, FullyConnected | ConvNet)
    for part, rate in zip(("hidden", "last"), rates, strict=True):
        if rate:
            kernel += rate * np.asarray(infinite_width_ntk(replace(plain, trained=part), x))
    return kernel


def _shaped(spec: EarlyTimeSpec, x: NDArray) -> NDArray:
    """Add the channel axis of sequences to inputs."""
    return x[:, :, None] if spec.network.kind == "convnet-1d" else x


def _half_mean_square(values: NDArray) -> float:
    with np.errstate(over="ignore"):
        return float(np.mean(np.square(values))) / 2
