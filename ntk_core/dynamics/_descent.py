"""Several models trained by the same steps, with measures at recorded steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree, Shaped
from numpy.typing import NDArray

from ntk_core.dynamics._history import Outcome, ended
from ntk_core.dynamics._losses import Loss
from ntk_core.dynamics._models import CallableModel, Model, NetworkModel
from ntk_core.dynamics._optimizer import Rate, check_rate
from ntk_core.dynamics._options import TrainOptions
from ntk_core.dynamics._rates import adam_rates, auto_learning_rate
from ntk_core.dynamics._short_runs import compiled
from ntk_core.dynamics._steps import DescentState, advance, over_seeds, start
from ntk_core.kernels import pre_output_ntk, unchecked_ntk
from ntk_core.networks.architectures import Network, NetworkParams, merge
from ntk_core.progress import Progress
from ntk_core.traced import through_output

Result = TypeVar("Result", covariant=True)
LONGEST_STRETCH_S = 0.3  # between stop checks


class Samples(NamedTuple):
    """Training data: inputs (n, …) and targets (n, C), on the device."""

    x: Array
    y: Array


class Start(NamedTuple):
    """Weights of a model before its first step.

    Attributes:
        trained: w₀, which training overwrites.
        fixed: constants of the model, see :class:`Model`.
        is_dead: whether the tangent kernel is 0 at w₀, so that no step changes an output;
            (together) per seed.
    """

    trained: PyTree
    fixed: PyTree
    is_dead: bool | Sequence[bool] = False


class Measure(Generic[Result]):
    """Record of a training: a loss, kernel change, outputs, difference of models.

    :func:`descend` calls :meth:`start` once, at w₀, then :meth:`record` at w₀ and at every recorded
    step, also where the first model crosses its threshold. Measures see the models in the order of
    their list. A :class:`Descent` computes its outputs, losses and kernel at most once at a record,
    whichever measures read them.

    >>> class Losses(Measure[list[float]]):
    ...     def __init__(self):
    ...         self.found = []
    ...     def record(self, step, models):
    ...         self.found.append(float(models["network"].losses))
    ...     def result(self):
    ...         return self.found
    """

    def start(self, models: Mapping[str, Descent]) -> None:
        """Prepare for the models at w₀, by name."""

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        """Measure the models after ``step`` steps."""
        raise NotImplementedError(f"{type(self).__name__} records nothing")

    def result(self) -> Result:
        """Return the records so far."""
        raise NotImplementedError(f"{type(self).__name__} has no result")


class AtRecords(Measure[None]):
    """Calls a function with every recorded step after w₀.

    Such a function shows growing curves, for example.
    """

    def __init__(self, call: Callable[[int], None]):
        self._call = call

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        if step:
            self._call(step)

    def result(self) -> None:
        return None


def descend(
    models: Mapping[str, Model],
    params: Mapping[str, Start],
    data: Samples,
    options: TrainOptions,
    measures: Sequence[Measure[Any]] = (),
    progress: Progress | None = None,
) -> dict[str, Descent]:
    """Train several models by the same steps, and measure them at the recorded steps.

    w ← w − η d with one learning rate η, one order of batches, and the optimizer's
    direction d of each model.

    The first model decides when the others are recorded: training reaches the step at which its
    loss is at the threshold, and the others take the same steps. If its loss rises again with the
    next step, it continues to the next record. Training ends when all models are done: dead,
    diverged, or at the threshold at a record. Seeds together stop separately.

    >>> from ntk_core.dynamics import CallableModel
    >>> model = CallableModel(lambda w, x: x @ w[0], Loss("linear"))
    >>> data = Samples(jnp.ones((1, 1)), jnp.ones((1, 1)))
    >>> options = TrainOptions(learning_rate=0.5, max_steps=2)
    >>> start = Start([jnp.zeros((1, 1))], ())
    >>> found = descend({"network": model}, {"network": start}, data, options)
    >>> float(found["network"].losses)  # the residual halves at each step
    0.03125

    Args:
        models: static descriptions by name.
        params: w₀ of each model; ``trained`` is overwritten.
        data: training inputs and targets.
        options: learning rate, optimizer, batches, stop and records; models carry their loss.
        measures: see :class:`Measure`; each keeps its records when training is stopped.
        progress: gets the current step several times a second, on a logarithmic axis
            up to the last record.

    Returns:
        The models after their last step.

    Raises:
        Stopped: when ``progress`` asks for a stop; the measures keep their records.
        InvalidInput: names the invalid option.

    Source: our choice, docs/decisions/0016-progress.md.
    """
    options.check_batch(len(data.y))
    options.method.check_rows(data.y.size)
    descents = {name: Descent(model, params[name], data, options) for name, model in models.items()}
    first = next(iter(descents.values()))
    rate = options.learning_rate
    if isinstance(rate, str):
        rate = first.automatic_rate() if rate == "auto" else check_rate(rate)
    for each in descents.values():
        each.set_rate(rate)

    def record(step: int) -> None:
        for measure in measures:
            measure.record(step, descents)
        for each in descents.values():
            each.note()

    for measure in measures:
        measure.start(descents)
    record(0)
    _train(list(descents.values()), record, options.records, progress or Progress())
    return descents


def compile_steps(
    models: Mapping[str, Model], params: Mapping[str, Start], data: Samples, options: TrainOptions
) -> None:
    """Compile the programs of :func:`descend` that take steps, by taking none.

    Another thread can meanwhile compile its other programs.

    Args:
        models, params, data, options: as for :func:`descend`.
    """
    for name, model in models.items():
        Descent(model, params[name], data, options).take_no_step()


class Descent:
    """A model in training, as measures see it.

    Attributes:
        model, samples, options: as given to :func:`descend`.
        fixed: constants of the model.
        state: weights and optimizer state after the last step.
        learning_rate: η as used, per seed in float64 (one without seeds); infinite if the model is
            dead and the rate automatic. Empty for rates per layer.
    """

    def __init__(self, model: Model, at: Start, samples: Samples, options: TrainOptions):
        self.model = model
        self.samples = samples
        self.options = options
        self.fixed = at.fixed
        self.threshold = options.loss_threshold
        self.learning_rate: NDArray[np.float64] = np.zeros(0)
        self._dead = np.reshape(np.asarray(at.is_dead), -1)
        self._lost = np.zeros(1, bool)
        self._rate: Rate = 0.0
        self._noted: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        self._found: dict[object, Any] = {}  # quantities at w_t, computed at most once
        begin = partial(start, model, options.method, num_samples=len(samples.y))
        self.state: DescentState = (jax.vmap(begin) if options.together else begin)(at.trained)

    @property
    def trained(self) -> PyTree:
        """w_t; the next step overwrites it."""
        return self.state.trained

    @property
    def steps(self) -> NDArray[np.int64]:
        """t of each seed, (S,)."""
        return np.asarray(self.state.step, np.int64).reshape(-1)

    @property
    def pre_outputs(self) -> Array:
        """f on the training points, (n, C), with a leading axis of seeds if together."""
        model = self.model

        def compute() -> Array:
            if self.options.together:
                return self._network_of_seeds(with_kernel=False)[0]
            return pre_outputs(model, self.state.trained, self.fixed, self.samples.x)

        return self._once("pre_outputs", compute)

    @property
    def outputs(self) -> Array:
        """F on the training points, (n, C), with a leading axis of seeds if together."""
        of = self.model, self.options.together, self.state.trained, self.fixed, self.samples.x
        return self._once("outputs", lambda: _outputs(*of, len(self.samples.y)))

    @property
    def losses(self) -> Array:
        """Mean losses on the training points: a scalar, or (S,) for seeds together."""

        def compute() -> Array:
            is_pre = "pre_outputs" in self._found
            values = self.pre_outputs if is_pre else self.outputs
            together = self.options.together
            return mean_losses(self.model.loss, is_pre, together, values, self.samples.y)

        return self._once("losses", compute)

    @property
    def kernel(self) -> Array:
        """Kernel of the pre-outputs at w_t, (n, n, C, C), with a leading axis of seeds if together.

        Read at w₀, it also shows which seeds are dead.
        """

        model = self.model

        def compute() -> Array:
            if self.options.together:
                f, kernel = self._network_of_seeds(with_kernel=True)
                self.hand_over(pre_outputs=f)
            else:
                assert isinstance(model, NetworkModel | CallableModel)
                net, params = model.traced(self.state.trained, self.fixed)
                kernel = unchecked_ntk(net, params, self.samples.x)
            if not self._noted:
                self._dead = self._dead | [not each.any() for each in self._by_seed(kernel)]
            return kernel

        return self._once("kernel", compute)

    def kernels_of(self, outputs: tuple[str, ...]) -> dict[str, Array]:
        """Return the kernels of these output functions φ.

        They are functions of the pre-outputs; the shapes are those of :attr:`kernel`.
        """
        together = self.options.together

        def compute() -> dict[str, Array]:
            kernel = self.kernel  # hands over the pre-outputs, too
            return _through_outputs(outputs, together, self.pre_outputs, kernel)

        return self._once(("kernels", outputs), compute)

    def hand_over(self, **quantities: Array) -> None:
        """Take ``outputs`` or ``losses`` at w_t from a measure.

        The measure computes them in its own way.
        """
        self._found.update(quantities)

    @property
    def is_lost(self) -> NDArray[np.bool_]:
        """Whether each seed has diverged: a loss at w_t, or of the last step, is not finite."""
        seen = [np.asarray(each, np.float64).reshape(-1) for each in (self.state.loss, self.losses)]
        return np.asarray(self._lost | ~np.isfinite(seen[0]) | ~np.isfinite(seen[1]))

    @property
    def is_done(self) -> NDArray[np.bool_]:
        """Whether each seed was done at the last record: dead, diverged, or at the threshold."""
        _, losses = self._noted[-1]
        at_end = losses <= (-math.inf if self.threshold is None else self.threshold)
        return np.asarray(self._dead | ~np.isfinite(losses) | at_end)

    @property
    def crossing(self) -> int | None:
        """Index of the first record with the loss at the threshold, for a single seed, or None."""
        at = -math.inf if self.threshold is None else self.threshold
        for index, (_, losses) in enumerate(self._noted):
            if losses[0] <= at:
                return index
        return None

    def outcomes(self) -> list[Outcome]:
        """Return the outcome for each seed, from the recorded losses."""
        steps, losses = (np.transpose(each).tolist() for each in zip(*self._noted, strict=True))
        dead = np.broadcast_to(self._dead, len(losses))
        return [
            ended(at, seen, self.threshold, dead=bool(is_dead))
            for at, seen, is_dead in zip(steps, losses, dead, strict=True)
        ]

    def automatic_rate(self) -> NDArray[np.float64]:
        """Return the automatic learning rate of each seed, see :class:`TrainOptions`."""
        method = self.options.method
        if method.own_rate is not None:
            return np.full(len(self.steps), method.own_rate)
        if method.is_linear:
            kernels = self._by_seed(self.kernel)
            return np.asarray([auto_learning_rate(each, self.model.loss) for each in kernels])
        together = self.options.together
        return adam_rates(self.model, self.state.trained, self.fixed, self.samples.x, together)

    def set_rate(self, rate: Rate | ArrayLike) -> None:
        """Take the learning rate, times the factor of the options. Infinite: dead.
        NaN: diverged.
        """
        if isinstance(rate, dict):
            factor = self.options.rate_factor
            self._rate = {name: factor * each for name, each in rate.items()}
            return
        one_or_each = np.asarray(rate, np.float64).reshape(-1) * self.options.rate_factor
        given = np.broadcast_to(one_or_each, len(self.steps))
        self.learning_rate = given
        self._dead = self._dead | np.isinf(given)
        self._lost = np.isnan(given)
        usable = np.where(np.isfinite(given), given, 0.0)
        together = self.options.together
        self._rate = jnp.asarray(usable, jnp.result_type(float)) if together else float(usable[0])

    def advance(self, until: int, *, to_threshold: bool) -> None:
        """Dispatch steps up to ``until`` or, with ``to_threshold``, to the threshold."""
        threshold: float | np.ndarray = (
            self.threshold if to_threshold and self.threshold is not None else -math.inf
        )
        if self.options.together:
            threshold = np.where(self.is_done, math.inf, threshold)
        self._found.clear()
        self._advance(until, threshold)

    def take_no_step(self) -> None:
        """Compile the program of the steps; the state stays that at w₀."""
        self.set_rate(0.0)
        self._advance(0, -math.inf)

    def _advance(self, until: int, threshold: float | np.ndarray) -> None:
        together = self.options.together
        method = self.options.method
        stops_at = threshold
        lead: tuple[int, ...] = ()
        if together:
            num_seeds = len(self.steps)
            lead = (num_seeds,)
            stops_at = np.broadcast_to(threshold, lead).astype(self.state.loss.dtype)
        if method.solves:
            # Steps that solve a system need the matrices of the model itself.
            model = self.model
            fixed = self.fixed
        else:
            model, fixed = self.model.stepping(self.fixed, lead)
        self.state = advance(
            model,
            method,
            self.state,
            fixed,
            *self.samples,
            self._rate,
            until,
            stops_at,
            key=self.options.batch_key,
            batches=self.options.batches,
            together=together,
        )

    def note(self) -> None:
        """Note the losses at w_t, by which the descent continues or is done."""
        lost = self.is_lost
        losses = self.losses
        if lost.any():
            losses = jnp.where(lost if self.options.together else lost[0], jnp.nan, losses)
        # The loop continues from these: a loss that rose above the threshold again is not the end.
        self.state = self.state._replace(loss=losses)
        self._lost = lost
        noted = np.where(lost, np.nan, np.asarray(losses, np.float64).reshape(-1))
        self._noted.append((self.steps, noted))

    def _once(self, name: object, compute: Callable[[], Any]) -> Any:
        """Return a quantity at w_t, computed when first read."""
        if name not in self._found:
            self._found[name] = compute()
        return self._found[name]

    def _by_seed(self, kernel: Array) -> list[np.ndarray]:
        """Return the kernel of each seed on the host."""
        held = np.asarray(kernel)
        return list(held) if self.options.together else [held]

    def _network_of_seeds(self, *, with_kernel: bool) -> tuple[Array, Any]:
        """Return (f, kernel of f, or None without it) of all seeds, by one program."""
        assert isinstance(self.model, NetworkModel)
        params = merge(self.state.trained, self.fixed)
        return _pre_outputs_and_kernel(self.model.net, with_kernel, params, self.samples.x)


def _train(
    descents: Sequence[Descent],
    record: Callable[[int], None],
    records: Sequence[int],
    progress: Progress,
) -> None:
    """Train all models simultaneously until all are done, see :func:`descend`."""
    step = 0
    pace = 1  # steps of the next stretch
    first, *others = descents
    for until in records:
        if all(each.is_done.all() for each in descents):
            return
        stops = not first.is_done.all()
        while step < until:
            began = time.monotonic()
            goal = min(until, step + pace)
            first.advance(goal, to_threshold=stops)
            reached = int(first.steps.max()) if stops else goal
            for each in others:
                each.advance(reached, to_threshold=False)
            reached = max(int(each.steps.max()) for each in descents)  # waits for the device
            spent = max(time.monotonic() - began, 1e-4)
            measured_pace = 1 + int((goal - step) * LONGEST_STRETCH_S / spent)
            # The first stretch compiles, so its pace is not typical.
            pace = min(2 * pace, measured_pace) if step else 8
            step = goal if reached == goal else until
            if step == until:
                record(reached)
                behind = [each.steps[~each.is_done & (each.steps < until)] for each in descents]
                left = np.concatenate(behind)
                if stops and left.size:
                    step = int(left.min())
                    stops = False
            report_step(progress, step, records[-1])


def report_step(progress: Progress, step: int, max_steps: int) -> None:
    """Report the current step on a logarithmic axis."""
    progress.report(math.log1p(step) / math.log1p(max_steps), f"step {step:,}")


def _of_seeds(together: bool, one: Callable[..., PyTree], *given: PyTree) -> PyTree:
    return over_seeds(one, *given) if together else one(*given)


@compiled("records", static_argnums=(0, 1, 5))
def _outputs(
    model: Model, together: bool, trained: PyTree, fixed: PyTree, x: Array, num_samples: int
) -> Array:
    # A linear model by its kernel has outputs at the test points, too.
    return _of_seeds(
        together, lambda w, stays: model.outputs(w, stays, x)[:num_samples], trained, fixed
    )


@compiled("records", static_argnums=0)
def pre_outputs(
    model: Model, trained: PyTree, fixed: PyTree, x: Shaped[Array, "n ..."]
) -> Float[Array, "n C"]:
    """Return f, (n, C)."""
    return model.pre_outputs(trained, fixed, x)


# Programs below do not depend on the width, except the next one.
@compiled("records", static_argnums=(0, 1))
def _pre_outputs_and_kernel(
    net: Network, with_kernel: bool, params: NetworkParams, x: Array
) -> tuple[Array, Array | None]:
    def one(params: NetworkParams) -> tuple[Array, Array | None]:
        if not with_kernel:
            return net.pre_outputs(params, x), None
        kernel, f, _ = pre_output_ntk(net, params, x)
        return f, kernel

    return over_seeds(one, params)


@compiled("data", usual_level=1, static_argnums=(0, 1, 2))
def mean_losses(loss: Loss, is_pre: bool, together: bool, values: Array, y: Array) -> Array:
    """Return the mean loss of pre-outputs f, or of outputs F: a scalar, or one for each seed."""
    return _of_seeds(
        together, lambda each: loss(each, y) if is_pre else loss.of_model(each, y), values
    )


@compiled("data", static_argnums=(0, 1))
def _through_outputs(
    outputs: tuple[str, ...], together: bool, f: Array, kernel: Array
) -> dict[str, Array]:
    def one(f: Array, kernel: Array) -> dict[str, Array]:
        return {output: through_output(output, kernel, f, f) for output in outputs}

    return _of_seeds(together, one, f, kernel)
