"""Networks and their linear models trained by the same steps, recorded and stopped between stretches."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
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
from ntk_core.dynamics._descent import Descent, Optimizer, check_rate, descend, record_steps
from ntk_core.dynamics._history import Difference, TrainingHistory
from ntk_core.dynamics._kernel_training import FollowedKernel, pre_outputs
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._rates import adam_rate, auto_learning_rate, largest_eigenvalue
from ntk_core.dynamics._runs import Points, Run
from ntk_core.errors import InvalidInput, check_choice
from ntk_core.kernels import infinite_width_ntk, moving_of, refuse_traced, unchecked_ntk
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


class Training:
    """Trains a model, its linear model and its infinite-width prediction by the same steps.

    Call :meth:`train`, then take :meth:`history`; :func:`train` does both and documents the arguments.

    Raises:
        InvalidInput: names the invalid setting.
    """

    def __init__(
        self,
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
    ):
        refuse_traced((params, x), "x")
        _check_whole("max_steps", max_steps)
        _check_whole("num_records", num_records)
        if num_kernel_points is not None:
            _check_whole("num_kernel_points", num_kernel_points)
        if loss_threshold is not None and not isinstance(loss_threshold, int | float):
            raise InvalidInput("loss_threshold", loss_threshold, "a number, or None")
        if key is not None:
            _check_key(key)
        output = net.output if isinstance(net, Network) else "linear"
        if trainable is not None:
            # Pre-outputs: the loss applies φ itself.
            pre_outputs_of = net.with_output("linear") if isinstance(net, Network) else net
            net = restricted(pre_outputs_of, params, trainable)
        net, inputs, num_outputs = accepted(net, params, x)
        if isinstance(net, Network) or jnp.issubdtype(
            inputs.dtype, jnp.inexact
        ):  # else ids for look-ups
            inputs = jnp.asarray(inputs, jnp.result_type(float))
        self.points = Points(
            inputs, y, x_test, y_test, followed, followed_test, num_outputs, axes_of(net), net
        )
        n = len(self.points.y)
        self.optimizer = Optimizer.of(optimizer)
        if self.optimizer.batch_size is not None and self.optimizer.batch_size > n:
            raise InvalidInput(
                "batch_size", self.optimizer.batch_size, f"at most {n}, the number of samples"
            )
        check_choice("linear_route", linear_route, ("auto", "kernel", "weights"))
        self.threshold = loss_threshold
        self.records = record_steps(max_steps, num_records)
        self.steps: list[int] = []
        self.key = jax.random.key(0) if key is None else key
        self.net = net
        self.loss = loss if isinstance(loss, Loss) else Loss(output, loss or "")
        self.loss.check_axes(axes_of(net))
        self.model: models.NetworkModel | models.CallableModel
        self._restored: Callable[[PyTree], PyTree]
        if isinstance(net, Network):
            self.model, self.origin = (
                models.NetworkModel(net, self.loss),
                models.Origin(*net.partition(params)),
            )
            self._restored = partial(merge, fixed=self.origin.fixed)
        else:
            leaves, restore = moving_of(net, params)
            function = of_same_rows(lambda moving, x: net(restore(moving), x), net)
            self.model = models.CallableModel(function, self.loss)
            self.origin, self._restored = (
                models.Origin([jnp.asarray(w) for w in leaves], ()),
                restore,
            )

        start = pre_outputs(self.model, *self.origin, self.points.all_x)
        pre_kernel = unchecked_ntk(
            *self.model.traced(*self.origin), self.points.all_x, self.points.x
        )
        at_start = models.KernelAndStart(
            through_output(self.loss.model_output, pre_kernel, start, start[:n]),
            self.loss.model(start),
        )
        self.stable_rate = self.optimizer.stable_rate(
            largest_eigenvalue(at_start.kernel[:n]), n, self.loss.model_curvature
        )
        self.learning_rate = check_rate(rate_factor, "rate_factor") * self._rate(
            learning_rate, pre_kernel[:n]
        )

        self._is_dead = not pre_kernel[:n].any()
        copied = jax.tree.map(jnp.copy, self.origin.trained)  # since training overwrites its start
        self.runs = {"network": self._run(self.model, copied, self.origin.fixed, self.origin)}
        if linearized:
            self.runs["linearized"] = self._linear_run(linear_route, at_start)
        if infinite_width:
            self.runs["infinite"] = self._infinite_run(at_start.start)
        rows = min(n, num_kernel_points or most_kernel_points(num_outputs))
        self.kernel = (
            FollowedKernel(self.model, self.origin.fixed, self.points.x[:rows]) if kernels else None
        )
        self._differences: dict[str, list[tuple[float, float]]] = {"train": [], "test": []}
        self._record(0)

    def train(
        self, progress: Progress | None = None, watch: Callable[[], None] | None = None
    ) -> None:
        """Train until every model is done, see :func:`descend`; a stopped training has a :meth:`history`, too.

        Args:
            watch: called after every record but that at w₀.
        """

        def record(step: int) -> None:
            self._record(step)
            if watch is not None:
                watch()

        descents = [run.descent for run in self.runs.values()]
        descend(descents, record, self.records, progress)

    def history(self) -> TrainingHistory:
        """Records so far."""
        paths = {name: run.path(self.steps) for name, run in self.runs.items()}
        differences = {
            name: Difference(*np.asarray(rows, np.float64).T) if rows else None
            for name, rows in self._differences.items()
        }
        return TrainingHistory(
            steps=np.asarray(self.steps, np.int64),
            learning_rate=self.learning_rate,
            stable_rate=self.stable_rate,
            network=paths["network"],
            linearized=paths.get("linearized"),
            infinite=paths.get("infinite"),
            kernel=None if self.kernel is None else self.kernel.path(),
            difference=differences["train"],
            test_difference=differences["test"],
            followed=self.points.followed,
            followed_test=self.points.followed_test,
        )

    @property
    def params(self) -> PyTree:
        """Current parameters w_t, a tree like w₀; the next stretch overwrites them."""
        return self._restored(self.runs["network"].descent.state.trained)

    def _rate(self, given: float | str, pre_kernel: Array) -> float:
        if given != "auto":
            return check_rate(given)  # refuses other strings
        if self.optimizer.has_own_rate:
            return 1.0
        if self.optimizer.is_linear:
            return auto_learning_rate(pre_kernel, self.loss)
        return adam_rate(self.model, self.origin, self.points.x)

    def _run(
        self, model: models.Model, trained: PyTree, fixed: PyTree, origin: models.Origin | None
    ) -> Run:
        points = self.points
        descent = Descent(
            model, self.optimizer, trained, fixed, points.x, points.y, self.learning_rate,
            threshold=self.threshold, key=self.key, dead=self._is_dead and origin is not None,
        )  # fmt: skip
        return Run(descent, points, origin, self.model)

    def _linear_run(self, route: str, at_start: models.KernelAndStart) -> Run:
        by_kernel = self.optimizer.is_linear and self.points.y.size <= MAX_KERNEL_MODEL_ROWS
        if route == "kernel" and not self.optimizer.is_linear:
            raise InvalidInput(
                "linear_route", route, "weights with steps that are not linear in the gradient"
            )
        if route == "kernel" or (route == "auto" and by_kernel):
            zero = jnp.zeros_like(self.points.y)
            return self._run(models.KernelModel(self.loss), zero, at_start, self.origin)
        copied = jax.tree.map(jnp.copy, self.origin.trained)
        return self._run(models.TangentModel(self.model), copied, self.origin, self.origin)

    def _infinite_run(self, start: Array) -> Run:
        if not isinstance(self.net, Network) or self.loss.model_output != "linear":
            raise InvalidInput(
                "infinite_width", True, "false, except for a network with linear outputs"
            )
        if not self.optimizer.is_linear:
            raise InvalidInput(
                "infinite_width", True, "false with steps that are not linear in the gradient"
            )
        limit = infinite_width_ntk(self.net.with_output("linear"), self.points.all_x, self.points.x)
        kernel = limit[:, :, None, None] * jnp.eye(start.shape[-1], dtype=start.dtype)
        zero = jnp.zeros_like(self.points.y)
        return self._run(
            models.KernelModel(self.loss), zero, models.KernelAndStart(kernel, start), None
        )

    def _record(self, step: int) -> None:
        self.steps.append(step)
        for run in self.runs.values():
            run.record()
        if "linearized" in self.runs:
            for name in ("train", "test") if len(self.points.x_test) else ("train",):
                ours, theirs = (
                    self.runs[each].last_outputs[name] for each in ("network", "linearized")
                )
                square = float(np.mean(np.sum((ours - theirs) ** 2, axis=-1)))
                scale = float(np.mean(np.sum(theirs**2, axis=-1)))
                self._differences[name].append(
                    (square, square / scale if scale > 0 else 0.0 if square == 0 else np.inf)
                )
        if self.kernel is not None:
            self.kernel.record(self.runs["network"].descent.state.trained)


def _check_whole(field: str, given: object) -> None:
    if isinstance(given, bool) or not (isinstance(given, int | np.integer) and given >= 1):
        raise InvalidInput(field, given, "an integer, at least 1")


def _check_key(key: Any) -> None:
    """Refuse other values than one random key, typed or of raw uint32 numbers."""
    dtype = getattr(key, "dtype", None)
    is_typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    is_raw = dtype == jnp.uint32
    if not (is_typed and not np.shape(key)) and not (is_raw and np.ndim(key) == 1):
        raise InvalidInput("key", key, "one random key, jax.random.key(seed)")


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

    >>> history = train(lambda w, x: x @ w, jnp.zeros((1, 1)), jnp.ones((1, 1)), jnp.ones((1, 1)), learning_rate=0.5,
    ...                 max_steps=2, num_records=2)
    >>> history.network.outputs.ravel()  # 1 − (1 − η)^t
    array([0.  , 0.5 , 0.75])
    >>> history.params.item()
    0.75

    Args:
        net: a network of this package, or any callable ``apply(params, x)`` with outputs (n, C), (n,) or (n, T, C).
            Outputs (n, T, C) are recorded as (n, T·C), the output a = t·C + c.
        params: w₀; not changed.
        x: training inputs, (n, *input_shape).
        y: targets, of the shape of the outputs.
        loss: a :class:`Loss`, or the name of one, of the network's output; by default cross-entropy for softmax and
            square for any other output.
        optimizer: an :class:`Optimizer`, the name of one, or any ``optax.GradientTransformation``.
        learning_rate: η, or ``"auto"``: a quarter of the stable rate; for Adam the rate whose first step changes no
            output by more than 0.05; 1 for a transformation with its own rate.
        rate_factor: multiplies the learning rate, given or automatic.
        max_steps: maximum number of steps.
        num_records: number of records, at w₀ and on a logarithmic grid of steps.
        loss_threshold: recorded when the network reaches it; training ends at the record where every model has
            reached it or diverged.
        x_test, y_test: test points, of any number.
        followed, followed_test: indices of points whose outputs are kept; all by default.
        key: of the batches; a fixed one by default.
        linearized: also train the linear model.
        linear_route: ``"kernel"`` trains it in n·C numbers (exact; not with Adam), ``"weights"`` in weight space,
            ``"auto"`` by its kernel if possible.
        infinite_width: add the infinite-width prediction (linear outputs, networks with a known limit; not with Adam).
        kernels: record the kernel of the output φ on the first ``num_kernel_points`` training points.
        num_kernel_points: by default as many as fit kernels of at most 900 rows.
        trainable: the parameters that move, as for ``empirical_ntk``; all others are constants.
        should_stop: called several times a second; training ends when it returns True.

    Returns:
        The records until the end or stop, and the trained parameters as ``history.params``.

    Raises:
        InvalidInput: names the invalid setting.

    Source: Liu, Zhu & Belkin 2020, §2 and §6; Lee et al. 2019 for the linear model.
    """
    training = Training(
        net, params, x, y, loss=loss, optimizer=optimizer, learning_rate=learning_rate, rate_factor=rate_factor,
        max_steps=max_steps, num_records=num_records, loss_threshold=loss_threshold, x_test=x_test, y_test=y_test,
        followed=followed, followed_test=followed_test, key=key, linearized=linearized, linear_route=linear_route,
        infinite_width=infinite_width, kernels=kernels, num_kernel_points=num_kernel_points, trainable=trainable,
    )  # fmt: skip
    with contextlib.suppress(Stopped):
        training.train(Progress(should_stop=should_stop))
    return replace(training.history(), params=training.params)
