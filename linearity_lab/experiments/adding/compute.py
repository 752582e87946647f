"""Networks trained on several tasks from one start, and the sums of their changes.

One network and width at a time.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from linearity_lab.data import Dataset
from linearity_lab.experiments.adding.point import (
    KEPT_POINTS,
    AddingPoint,
    AddingRun,
    AddingSpec,
)
from linearity_lab.experiments.lettered_networks import point_of_runs
from linearity_lab.experiments.train_options import levels_of, train_options
from linearity_lab.networks.build import build_network
from linearity_lab.runs import Counted, Outcome
from ntk_core.dynamics import (
    Descent,
    Loss,
    Measure,
    addition_error,
    compiled,
    descend,
    network_of_seeds,
    short_runs,
)
from ntk_core.networks.architectures import Network, NetworkParams, merge
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

TRAINING_SHARE = 0.95  # of a run's progress; the rest takes outputs
DIGITS = 5  # of stored outputs
Indices = NDArray[np.integer]
Floats = NDArray[np.float64]


def compute(spec: AddingSpec, data: Dataset, key: str, progress: Progress) -> AddingPoint:
    """Compute one network at one width, all outputs and seeds, and show the runs so far."""
    letter, width = spec.value_of(key)
    parts = parts_of(data, spec.num_tasks)
    net = build_network(spec.networks[letter], width, data.num_outputs, "linear")
    num_params = net.num_params(data.input_shape, only_trained=True)
    is_curve = spec.is_curve

    def point(runs: tuple[AddingRun, ...]) -> AddingPoint:
        return AddingPoint(
            network=letter,
            width=width,
            num_params=num_params,
            runs=runs,
            x=_row(data.x_test[:KEPT_POINTS]) if is_curve else (),
            x_train=tuple(_row(data.x[part]) for part in parts) if is_curve else (),
            y_train=tuple(_row(data.y[part]) for part in parts) if is_curve else (),
        )

    with short_runs(levels_of(spec.training, Counted.of(spec, spec.networks[letter], width))):
        return point_of_runs(spec, progress, partial(_run, spec, data, key), point)


def parts_of(data: Dataset, num_tasks: int) -> list[Indices]:
    """Return the training points of each task.

    Dealt in turn, or intervals of one-dimensional inputs.
    """
    if data.input_shape == (1,):
        return list(np.array_split(np.argsort(data.x[:, 0], kind="stable"), num_tasks))
    return [np.arange(first, len(data.x), num_tasks) for first in range(num_tasks)]


class _Task(NamedTuple):
    """One trained task.

    Attributes:
        vector: τ = w − w₀, a tree like the parameters.
    """

    vector: NetworkParams
    outcome: Outcome
    num_steps: int


def _run(
    spec: AddingSpec, data: Dataset, key: str, output: str, seed: int, progress: Progress
) -> AddingRun:
    letter, width = spec.value_of(key)
    net = build_network(spec.networks[letter], width, data.num_outputs, output)
    start = net.init(initial_key(seed, width), data.input_shape)
    progress = progress.named(
        f"network {letter}, width {width:,}: {OUTPUTS[output].title}, seed {seed}"
    )
    tasks = []
    for number, part in enumerate(parts_of(data, spec.num_tasks)):
        share = progress.between(0.0, TRAINING_SHARE).part(number, spec.num_tasks)
        tasks.append(_trained(spec, data, part, net, start, share.named(f"task {number + 1}")))
    sums = sums_of(net, start, [task.vector for task in tasks], data.x_test, spec.scale)
    return AddingRun(
        output=output,
        seed=seed,
        outcome=next((t.outcome for t in tasks if t.outcome != "converged"), "converged"),
        steps=tuple(task.num_steps for task in tasks),
        error=sums.error,
        linear=sums.linear,
        **(sums.kept(spec.is_curve) if seed == spec.seed else {}),
    )


def _trained(
    spec: AddingSpec,
    data: Dataset,
    part: Indices,
    net: Network,
    start: NetworkParams,
    progress: Progress,
) -> _Task:
    """Train one task from w₀, and return how far it moved the weights."""
    # A leading axis of one seed, added on the host: in JAX every shape would compile a program.
    one = jax.tree.map(lambda leaf: jnp.array(np.asarray(leaf)[None]), start)
    loss = Loss(net.output, "square")
    models, starts, samples = network_of_seeds(net, one, data.x[part], data.y[part], loss)
    options = train_options(spec.training, together=True)
    descent = descend(models, starts, samples, options, [_KernelAtStart()], progress)["network"]
    trained = merge(descent.trained, starts["network"].fixed)
    vector = _on_host(lambda after, before: after[0] - before, trained, start)
    (outcome,) = descent.outcomes()
    assert outcome != "finished"  # a threshold is always set
    return _Task(vector, outcome, int(descent.steps[0]))


class _KernelAtStart(Measure[None]):
    """Computes the kernel at w₀, which shows whether the network is dead."""

    def record(self, step: int, models: Mapping[str, Descent]) -> None:
        if step == 0:
            _ = models["network"].kernel

    def result(self) -> None:
        return None


class Sums(NamedTuple):
    """Outputs of the tasks and of their sums at test points.

    Attributes:
        start: f(w₀), (k, C).
        tasks: f(w₀ + τ_k), (T, k, C).
        together: f(w₀ + λ Σ τ_k) of the first 1, …, T tasks, (T, k, C).
        of_linear: f(w₀) + J λ Σ τ_k of all tasks, (k, C).
        scale: λ.
    """

    start: Floats
    tasks: Floats
    together: Floats
    of_linear: Floats
    scale: float

    @property
    def error(self) -> tuple[float | None, ...]:
        """E of the first 1, …, T tasks; None if their changes add up to 0."""
        found = []
        for count, together in enumerate(self.together, start=1):
            parts = self.scale * (self.tasks[:count] - self.start)
            found.append(_known(addition_error(together - self.start, list(parts))))
        return tuple(found)

    @property
    def linear(self) -> float | None:
        """Distance of all changes together from those of the linear model with the same vectors."""
        return _known(addition_error(self.together[-1] - self.start, [self.of_linear - self.start]))

    @property
    def summed(self) -> Floats:
        """f(w₀) + λ Σ F(w₀ + τ_k) of all tasks, (k, C)."""
        return self.start + self.scale * (self.tasks - self.start).sum(axis=0)

    def kept(self, is_curve: bool) -> dict[str, object]:
        """Return the outputs that a run stores; curves have those of every model."""
        found: dict[str, object] = {
            "together": _rows(self.together[-1]),
            "summed": _rows(self.summed),
        }
        if is_curve:
            found["tasks"] = tuple(map(_rows, self.tasks))
            found["of_linear"] = _rows(self.of_linear)
        return found


def sums_of(
    net: Network,
    start: NetworkParams,
    vectors: list[NetworkParams],
    x: NDArray[np.floating],
    scale: float,
) -> Sums:
    """Return the outputs at ``x`` after tasks and their sums.

    They are after each task and after sums of the first tasks, (k, C) each.
    """
    inputs = jnp.asarray(x, jnp.result_type(float))
    wide = partial(np.asarray, dtype=np.float64)

    def at_start_and_slope(direction: NetworkParams) -> tuple[Floats, Floats]:
        at_start, slope = _outputs_and_slope(net, start, direction, inputs)
        return wide(at_start), wide(slope)

    def outputs_after(vector: NetworkParams, factor: float) -> Floats:
        # The same program as at w₀, since it takes longer to compile than to run.
        moved = _on_host(lambda w, t: w + w.dtype.type(factor) * t, start, vector)
        return wide(_outputs_and_slope(net, moved, vector, inputs)[0])

    tasks = []  # f(w₀ + τ_k) of each task
    together = []  # f(w₀ + λ Σ τ_k) of the first tasks
    total = _on_host(np.zeros_like, start)
    for vector in vectors:
        tasks.append(outputs_after(vector, 1.0))
        total = _on_host(np.add, total, vector)
        together.append(outputs_after(total, scale))
    at_start, slope = at_start_and_slope(total)
    of_linear = at_start + scale * slope
    return Sums(at_start, np.asarray(tasks), np.asarray(together), of_linear, scale)


def _on_host(function: Callable[..., np.ndarray], *trees: NetworkParams) -> NetworkParams:
    """Apply a function of NumPy to each leaf; in JAX every shape would first compile a program."""
    return jax.tree.map(lambda *leaves: function(*map(np.asarray, leaves)), *trees)


@compiled("records", static_argnums=0)
def _outputs_and_slope(
    net: Network, params: NetworkParams, direction: NetworkParams, x: Array
) -> tuple[Array, Array]:
    """Outputs f and their derivative J τ along a direction τ, (k, C) each."""
    return jax.jvp(lambda w: net.apply(w, x), (params,), (direction,))


def _known(error: float) -> float | None:
    """Return None for an error that is not a number."""
    return None if np.isnan(error) else error


def _row(values: NDArray[np.floating]) -> tuple[float, ...]:
    """Flatten one-dimensional inputs or targets."""
    return tuple(np.asarray(values, np.float64).ravel().tolist())


def _rows(outputs: Floats) -> tuple[tuple[float, ...], ...]:
    """Return the outputs at the kept points, with the digits that a figure shows."""
    return tuple(map(_row, np.round(outputs[:KEPT_POINTS], DIGITS)))
