"""Networks trained beside their linear models and their infinite-width predictions."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ntk_core.dynamics import _models as models
from ntk_core.dynamics._condition import most_kernel_points
from ntk_core.dynamics._descent import Descent, Measure, Samples, Start, descend, pre_outputs
from ntk_core.dynamics._history import Difference, TrainingHistory
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._measures import DifferenceMeasure, KernelPathMeasure, PathMeasure
from ntk_core.dynamics._optimizer import Optimizer, check_rate
from ntk_core.dynamics._options import TrainOptions, check_whole
from ntk_core.dynamics._points import TrainingPoints
from ntk_core.dynamics._rates import adam_rates, auto_learning_rate, largest_eigenvalue
from ntk_core.errors import InvalidInput, check_choice
from ntk_core.kernels import (
    has_lost_entries,
    infinite_width_ntk,
    moving_of,
    refuse_rows_without_outputs,
    refuse_traced,
    unchecked_ntk,
)
from ntk_core.networks.architectures import Network, merge
from ntk_core.progress import Progress, Stopped
from ntk_core.traced import (
    Apply,
    Inputs,
    Trainable,
    accepted,
    axes_of,
    of_same_rows,
    restricted,
    through_output,
    with_usual_settings,
)

MAX_KERNEL_MODEL_ROWS = 3000  # largest n·C for training a linear model by its kernel


@with_usual_settings
def train(
    net: Network | Apply,
    params: PyTree,
    x: Inputs,
    y: ArrayLike,
    *,
    loss: Loss | str | None = None,
    optimizer: Optimizer | str | optax.GradientTransformation = "gradient-descent",
    learning_rate: float | str = "auto",
    rate_factor: float = 1.0,
    max_steps: int = 1000,
    num_records: int = 40,
    loss_threshold: float | None = None,
    x_test: Inputs | None = None,
    y_test: ArrayLike | None = None,
    followed: Sequence[int] | None = None,
    followed_test: Sequence[int] | None = None,
    key: Array | None = None,
    linearized: bool = True,
    linear_route: str = "auto",
    infinite_width: bool = False,
    kernels: bool = True,
    num_kernel_points: int | None = None,
    trainable: Trainable = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> TrainingHistory:
    """Train a network and its linear model together.

    Train ``net`` and its linear model from w₀ = ``params`` by the same steps w ← w − η ∇L(w).

    >>> start, ones = jnp.zeros((1, 1)), jnp.ones((1, 1))
    >>> options = {"learning_rate": 0.5, "max_steps": 2, "num_records": 2}
    >>> history = train(lambda w, x: x @ w, start, ones, ones, **options)
    >>> history.network.outputs.ravel()  # 1 − (1 − η)^t
    array([0.  , 0.5 , 0.75])
    >>> history.params.item()
    0.75

    Args:
        net: a network of this package, or any callable ``apply(params, x)`` with outputs (n, C),
            (n,) or (n, T, C). Outputs (n, T, C) are recorded as (n, T·C), the output a = t·C + c.
        params: w₀; not changed.
        x: training inputs, (n, *input_shape).
        y: targets, of the shape of the outputs.
        loss: a :class:`Loss`, or the name of one, of the network's output; by default cross-entropy
            for softmax and square for any other output.
        optimizer: an :class:`Optimizer`, the name of one, or any ``optax.GradientTransformation``.
        learning_rate: η, or ``"auto"``: a quarter of the stable rate; for Adam the rate whose first
            step changes no output by more than 0.05; 1 for a transformation with its own rate.
        rate_factor: multiplies the learning rate, given or automatic.
        max_steps: maximum number of steps.
        num_records: number of records, at w₀ and on a logarithmic grid of steps.
        loss_threshold: recorded when the network reaches it; training ends at the record where
            every model has reached it or diverged.
        x_test, y_test: test points, of any number.
        followed, followed_test: indices of points whose outputs are kept; all by default.
        key: of the batches; a fixed one by default.
        linearized: also train the linear model.
        linear_route: ``"kernel"`` trains it in n·C numbers (exact; not with Adam), ``"weights"`` in
            weight space, ``"auto"`` by its kernel if possible.
        infinite_width: add the infinite-width prediction (linear outputs, networks with a known
            limit; not with Adam).
        kernels: record the kernel of the output φ on the first ``num_kernel_points`` training
            points.
        num_kernel_points: by default as many as fit kernels of at most 900 rows.
        trainable: the parameters that move, as for ``empirical_ntk``; all others are constants.
        should_stop: called several times a second; training ends when it returns True.

    Returns:
        The records until the end or stop, and the trained parameters as ``history.params``.

    Raises:
        InvalidInput: names the invalid setting.

    Source: Liu, Zhu & Belkin 2020, §2 and §6; Lee et al. 2019 for the linear model.
    """
    options = TrainOptions(
        learning_rate=learning_rate,
        rate_factor=rate_factor,
        optimizer=optimizer,
        loss=loss,
        loss_threshold=loss_threshold,
        max_steps=max_steps,
        num_records=num_records,
        key=key,
    )
    data = TrainData(x, y, x_test, y_test, followed, followed_test)
    beside = BesideLinear(
        net,
        params,
        data,
        options,
        linearized=linearized,
        linear_route=linear_route,
        infinite_width=infinite_width,
        trainable=trainable,
    )
    history = HistoryMeasure(beside, kernels=kernels, num_kernel_points=num_kernel_points)
    with contextlib.suppress(Stopped):
        beside.descend([history], Progress(should_stop=should_stop))
    return history.result()


@dataclass(frozen=True, eq=False)
class TrainData:
    """Training and test points, as given to :func:`train`, which documents them."""

    x: Inputs
    y: ArrayLike
    x_test: Inputs | None = None
    y_test: ArrayLike | None = None
    followed: Sequence[int] | None = None
    followed_test: Sequence[int] | None = None


class BesideLinear:
    """A network (or any callable), its linear model and its infinite-width prediction, at w₀.

    :meth:`descend` trains them by the same steps; :func:`train` documents the arguments.

    Attributes:
        points: the checked data.
        options: with the learning rate that an automatic one has become.
        stable_rate: the rate above which the linear model diverges; None for Adam.
        models, params: as :func:`ntk_core.dynamics.descend` takes them, by name.
        network: the model of the network.
        origin: w₀, which training leaves as it is.

    Raises:
        InvalidInput: names the invalid setting.
    """

    def __init__(
        self,
        net: Network | Apply,
        params: PyTree,
        data: TrainData,
        options: TrainOptions,
        *,
        linearized: bool = True,
        linear_route: str = "auto",
        infinite_width: bool = False,
        trainable: Trainable = None,
    ):
        refuse_traced((params, data.x), "x")
        output = net.output if isinstance(net, Network) else "linear"
        if trainable is not None:
            # Pre-outputs: the loss applies φ itself.
            pre_outputs_of = net.with_output("linear") if isinstance(net, Network) else net
            net = restricted(pre_outputs_of, params, trainable)
        net, inputs, num_outputs = accepted(net, params, data.x)
        self.points = _checked_points(net, inputs, num_outputs, data)
        n = len(self.points.y)
        options.check_batch(n)
        options.method.check_rows(self.points.y.size)
        check_choice("linear_route", linear_route, ("auto", "kernel", "weights"))
        self._net = net
        self._loss = options.loss_of(output)
        self._loss.check_axes(axes_of(net))
        # ``restored``: trained weights → a tree like params.
        self.network, self.origin, self.restored = _model_of(net, params, self._loss)

        at_start, pre_kernel = self._kernels_at_start()
        kernel = at_start.kernel[:n]  # of F at the training points, (n, n, C, C)
        largest = largest_eigenvalue(kernel)
        self.stable_rate = options.method.stable_rate(largest, n, self._loss.model_curvature)
        self._is_dead = not np.asarray(pre_kernel).any()
        rate = options.rate_factor * self._rate(options, pre_kernel)
        self.options = options.at_rate(rate)
        self.models: dict[str, models.Model] = {"network": self.network}
        self.params: dict[str, Start] = {"network": self._copied(self.origin.fixed)}
        if linearized:
            self._add_linear(linear_route, at_start)
        if infinite_width:
            self._add_infinite(at_start.start)

    @property
    def learning_rate(self) -> float:
        """η, as used."""
        return float(np.asarray(self.options.learning_rate))

    def descend(
        self, measures: Sequence[Measure[Any]], progress: Progress | None = None
    ) -> dict[str, Descent]:
        """Train all models by the same steps, see :func:`ntk_core.dynamics.descend`."""
        data = Samples(self.points.x, self.points.y)
        return descend(self.models, self.params, data, self.options, measures, progress)

    def _kernels_at_start(self) -> tuple[models.KernelAndStart, Array]:
        """Return kernel and outputs F at all points, and the kernel of f at the training points."""
        all_x = self.points.all_x  # training points first
        n = len(self.points.y)
        f = pre_outputs(self.network, *self.origin, all_x)
        if has_lost_entries(f):
            params = self.restored(self.origin.trained)
            refuse_rows_without_outputs(self._net, params, all_x[:n])
            if len(all_x) > n:
                refuse_rows_without_outputs(self._net, params, all_x[n:], "x_test")
        net, params = self.network.traced(*self.origin)
        pre_kernel = unchecked_ntk(net, params, all_x, self.points.x)  # (N, n, C, C)
        kernel = through_output(self._loss.model_output, pre_kernel, f, f[:n])
        return models.KernelAndStart(kernel, self._loss.model(f)), pre_kernel[:n]

    def _rate(self, options: TrainOptions, pre_kernel: Array) -> float:
        given = options.learning_rate
        if not isinstance(given, str) or given != "auto":
            return check_rate(given)  # refuses other strings
        if options.method.own_rate is not None:
            return options.method.own_rate
        if options.method.is_linear:
            return auto_learning_rate(pre_kernel, self._loss)
        return float(adam_rates(self.network, *self.origin, self.points.x, together=False)[0])

    def _copied(self, fixed: PyTree) -> Start:
        """Copy w₀, since training overwrites its start."""
        return Start(jax.tree.map(jnp.copy, self.origin.trained), fixed, self._is_dead)

    def _add_linear(self, route: str, at_start: models.KernelAndStart) -> None:
        is_linear = self.options.method.is_linear
        if route == "kernel" and not is_linear:
            raise InvalidInput(
                "linear_route", route, "weights with steps that are not linear in the gradient"
            )
        is_small = self.points.y.size <= MAX_KERNEL_MODEL_ROWS
        if route == "kernel" or (route == "auto" and is_linear and is_small):
            zero = jnp.zeros_like(self.points.y)
            self.models["linearized"] = models.KernelModel(self._loss)
            self.params["linearized"] = Start(zero, at_start, self._is_dead)
            return
        self.models["linearized"] = models.TangentModel(self.network)
        self.params["linearized"] = self._copied(self.origin)

    def _add_infinite(self, start: Array) -> None:
        if not isinstance(self._net, Network) or self._loss.model_output != "linear":
            raise InvalidInput(
                "infinite_width", True, "false, except for a network with linear outputs"
            )
        if not self.options.method.is_linear:
            raise InvalidInput(
                "infinite_width", True, "false with steps that are not linear in the gradient"
            )
        points = self.points
        limit = infinite_width_ntk(self._net.with_output("linear"), points.all_x, points.x)
        kernel = limit[:, :, None, None] * jnp.eye(start.shape[-1], dtype=start.dtype)
        self.models["infinite"] = models.KernelModel(self._loss)
        zero = jnp.zeros_like(points.y)
        self.params["infinite"] = Start(zero, models.KernelAndStart(kernel, start))


def _checked_points(
    net: Network | Apply, inputs: Array | np.ndarray, num_outputs: int, data: TrainData
) -> TrainingPoints:
    is_number = jnp.issubdtype(inputs.dtype, jnp.inexact)  # else ids for look-ups
    if isinstance(net, Network) or is_number:
        inputs = jnp.asarray(inputs, jnp.result_type(float))
    return TrainingPoints(
        inputs,
        data.y,
        data.x_test,
        data.y_test,
        data.followed,
        data.followed_test,
        num_outputs,
        axes_of(net),
        net,
    )


def _model_of(
    net: Network | Apply, params: PyTree, loss: Loss
) -> tuple[models.NetworkModel | models.CallableModel, models.Origin, Callable[[PyTree], PyTree]]:
    """Return the model of the network, w₀, and the map from trained weights to parameters."""
    if isinstance(net, Network):
        origin = models.Origin(*net.partition(params))
        return models.NetworkModel(net, loss), origin, partial(merge, fixed=origin.fixed)
    leaves, restore = moving_of(net, params)
    function = of_same_rows(lambda moving, x: net(restore(moving), x), net)
    origin = models.Origin([jnp.asarray(leaf) for leaf in leaves], ())
    return models.CallableModel(function, loss), origin, restore


class HistoryMeasure(Measure[TrainingHistory]):
    """Paths of all models, their difference, and the kernel: everything that :func:`train` returns.

    Args:
        kernels: also record the kernel of the network at the first ``num_kernel_points`` training
            points; by default as many as fit kernels of at most 900 rows.
    """

    def __init__(
        self, beside: BesideLinear, *, kernels: bool = True, num_kernel_points: int | None = None
    ):
        if num_kernel_points is not None:
            check_whole("num_kernel_points", num_kernel_points)
        self._beside = beside
        points = beside.points
        self._steps: list[int] = []
        self._paths: dict[str, PathMeasure] = {}
        for name in beside.models:
            origin = None if name == "infinite" else beside.origin
            self._paths[name] = PathMeasure(name, points, origin, beside.network)
        self._parts: list[Measure[Any]] = [*self._paths.values()]
        self._difference: DifferenceMeasure | None = None
        if "linearized" in self._paths:
            pair = self._paths["network"], self._paths["linearized"]
            self._difference = DifferenceMeasure(*pair)
            self._parts.append(self._difference)
        self._kernel: KernelPathMeasure | None = None
        if kernels:
            most = most_kernel_points(points.y.shape[1])
            rows = min(len(points.y), num_kernel_points or most)
            self._kernel = KernelPathMeasure("network", points.x[:rows])
            self._parts.append(self._kernel)

    @property
    def steps(self) -> tuple[int, ...]:
        """Recorded steps so far."""
        return tuple(self._steps)

    def start(self, models: Mapping[str, Descent]) -> None:
        self._network = models["network"]
        for part in self._parts:
            part.start(models)

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        self._steps.append(step)
        for part in self._parts:
            part.record(step, models)

    def result(self) -> TrainingHistory:
        """The records so far, and the current weights."""
        paths = {name: path.result() for name, path in self._paths.items()}
        differences: dict[str, Difference | None] = {}
        if self._difference is not None:
            differences = self._difference.result()
        return TrainingHistory(
            steps=np.asarray(self._steps, np.int64),
            learning_rate=self._beside.learning_rate,
            stable_rate=self._beside.stable_rate,
            network=paths["network"],
            linearized=paths.get("linearized"),
            infinite=paths.get("infinite"),
            kernel=None if self._kernel is None else self._kernel.result(),
            difference=differences.get("train"),
            test_difference=differences.get("test"),
            followed=self._beside.points.followed,
            followed_test=self._beside.points.followed_test,
            params=self._beside.restored(self._network.trained),
        )
