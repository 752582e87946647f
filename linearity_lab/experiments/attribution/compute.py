"""Networks retrained without single points.

They train in one batch, beside the changes that their kernels predict.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PyTree, Shaped
from numpy.typing import NDArray

from linearity_lab.data import Dataset
from linearity_lab.experiments.attribution.point import (
    KEPT_POINTS,
    LARGEST_INPUT,
    AttributionPoint,
    AttributionRun,
    AttributionSpec,
    Prediction,
)
from linearity_lab.experiments.lettered_networks import point_of_runs
from linearity_lab.experiments.train_options import levels_of, train_options
from linearity_lab.networks.build import build_network
from linearity_lab.runs import Counted, Outcome
from ntk_core import dynamics
from ntk_core.kernels import leave_one_out, pre_output_ntk
from ntk_core.networks.architectures import Network, NetworkParams, merge, output_function
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress
from ntk_core.traced import through_output

TRAINING_SHARE = 0.9  # of a run's progress; the rest computes kernels
DIGITS = 4  # significant ones of stored changes
Floats = NDArray[np.float64]


def compute(spec: AttributionSpec, data: Dataset, key: str, progress: Progress) -> AttributionPoint:
    """Compute one network at one width, all outputs and seeds, and show the runs so far."""
    letter, width = spec.value_of(key)
    net = build_network(spec.networks[letter], width, data.num_outputs, "linear")
    num_params = net.num_params(data.input_shape, only_trained=True)
    inputs = np.asarray(data.x[: spec.num_removed], np.float64).reshape(spec.num_removed, -1)
    targets = np.asarray(data.y[: spec.num_removed], np.float64)

    def point(runs: tuple[AttributionRun, ...]) -> AttributionPoint:
        return AttributionPoint(
            network=letter,
            width=width,
            num_params=num_params,
            runs=runs,
            removed=_rounded(inputs) if inputs.shape[1] <= LARGEST_INPUT else (),
            targets=_rounded(targets),
            input_shape=data.input_shape,
        )

    levels = levels_of(spec.training, Counted.of(spec, spec.networks[letter], width))
    with dynamics.short_runs(levels):
        return point_of_runs(spec, progress, partial(_run, spec, data, key), point)


def _run(
    spec: AttributionSpec,
    data: Dataset,
    key: str,
    output: str,
    seed: int,
    progress: Progress,
) -> AttributionRun:
    letter, width = spec.value_of(key)
    net = build_network(spec.networks[letter], width, data.num_outputs, output)
    start = net.init(initial_key(seed, width), data.input_shape)
    progress = progress.named(
        f"network {letter}, width {width:,}: {OUTPUTS[output].title}, seed {seed}"
    )
    at_start = _at(net, start, data)
    rate = _rate(spec, net, at_start.kernel_of_f[: len(data.x)])
    trained = _retrained(spec, data, net, start, rate, progress.between(0.0, TRAINING_SHARE))
    x = jnp.asarray(data.x_test, jnp.result_type(float))
    outputs = np.asarray(_outputs_of_each(net, trained.params, x), np.float64)
    changes = outputs[1:] - outputs[0]  # (removed, test, C)

    residuals = np.asarray(data.y, np.float64) - at_start.outputs[: len(data.x)]
    with_all = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[0]), trained.params)
    is_kept = seed == spec.seed
    predictions = []
    for moment in (at_start, _at(net, with_all, data)):
        predicted = predicted_changes(moment.kernel, residuals)[: spec.num_removed]
        predictions.append(_compared(predicted, changes, is_kept))
    before, after = predictions
    return AttributionRun(
        output=output,
        seed=seed,
        outcome=trained.outcome,
        steps=trained.steps,
        before=before,
        after=after,
        changes=_kept(changes) if is_kept else (),
    )


class _Moment(NamedTuple):
    """A network at the training points, which come first, and at the test points.

    Attributes:
        outputs: φ(f), (n + test, C).
        kernel_of_f: kernel of f at all points and the training points, (n + test, n, C, C).
        kernel: that of φ(f).
    """

    outputs: Floats
    kernel_of_f: Floats
    kernel: Floats


def _at(net: Network, params: NetworkParams, data: Dataset) -> _Moment:
    """Return outputs and kernels at ``params``, in one program."""
    x = jnp.asarray(data.x)
    both = jnp.asarray(np.concatenate([data.x, data.x_test]))
    found = _outputs_and_kernels(net, params, both, x)
    return _Moment(*(np.asarray(each, np.float64) for each in found))


@dynamics.compiled("records", static_argnums=0)
def _outputs_and_kernels(
    net: Network, params: NetworkParams, both: Array, x: Array
) -> tuple[Array, Array, Array]:
    """Return the fields of :class:`_Moment`."""
    kernel_of_f, f, at_training = pre_output_ntk(net, params, both, x)
    kernel = through_output(net.output, kernel_of_f, f, at_training)
    return output_function(net.output)(f), kernel_of_f, kernel


class _Retrained(NamedTuple):
    """Networks trained with all points, and without each removed one.

    Attributes:
        params: trees with a leading axis, (1 + removed, …); the first is trained with all points.
    """

    params: NetworkParams
    outcome: Outcome
    steps: tuple[int, ...]


class FixedAndWeights(NamedTuple):
    """Constants of a model, and the weight of each training point.

    1, or 0 for a removed one, (n,).
    """

    fixed: PyTree
    weights: Array


@dataclass(frozen=True)
class WithoutPoints(dynamics.Model):
    """Another model with the square loss of the kept points.

    L = Σ_kept ½‖F − y‖² / (number kept).
    """

    model: dynamics.NetworkModel

    @property
    def loss(self) -> dynamics.Loss:  # type: ignore[override]
        return self.model.loss

    def outputs(
        self, trained: PyTree, fixed: FixedAndWeights, x: Shaped[Array, "n ..."]
    ) -> Float[Array, "n C"]:
        return self.model.outputs(trained, fixed.fixed, x)

    def pack(self, trained: PyTree) -> PyTree:
        return self.model.pack(trained)

    def unpack(self, packed: PyTree) -> PyTree:
        return self.model.unpack(packed)

    def loss_and_gradient(
        self, fixed: FixedAndWeights, x: Array, y: Array
    ) -> Callable[[PyTree, Array | None], tuple[Array, PyTree]]:
        """Return the loss of the kept points with its gradient; all points are in every step."""

        def at(packed: PyTree, rows: Array | None) -> tuple[Array, PyTree]:
            assert rows is None  # the settings have no batches

            def kept_loss(w: PyTree) -> Array:
                outputs = self.model.packed_outputs(w, fixed.fixed, x)
                return mean_of_kept(outputs, y, fixed.weights)

            return jax.value_and_grad(kept_loss)(packed)

        return at


def mean_of_kept(outputs: Array, y: Array, weights: Array) -> Array:
    """Return Σ_i weight_i ½‖F_i − y_i‖² / Σ weights."""
    each = 0.5 * jnp.sum((outputs - y) ** 2, axis=1)  # (n,)
    return jnp.sum(weights * each) / jnp.sum(weights)


_losses_of_kept = jax.jit(jax.vmap(mean_of_kept, (0, None, 0)))


class _LossesOfKept(dynamics.Measure[None]):
    """Gives each descent the losses without its removed point, by which it stops."""

    def record(self, step: int, models: Mapping[str, dynamics.Descent]) -> None:
        descent = models["network"]
        losses = _losses_of_kept(descent.outputs, descent.samples.y, descent.fixed.weights)
        descent.hand_over(losses=losses)

    def result(self) -> None:
        return None


def _retrained(
    spec: AttributionSpec,
    data: Dataset,
    net: Network,
    start: NetworkParams,
    rate: float,
    progress: Progress,
) -> _Retrained:
    """Train 1 + ``num_removed`` copies from the same w₀ in one batch."""
    copies = 1 + spec.num_removed
    weights = np.ones((copies, len(data.x)), np.float32)
    weights[np.arange(1, copies), np.arange(spec.num_removed)] = 0

    def repeated(leaf: Array) -> Array:
        # In NumPy: in JAX every shape would first compile a program.
        return jnp.asarray(np.repeat(np.asarray(leaf)[None], copies, axis=0))

    trained, fixed = net.partition(jax.tree.map(repeated, start))
    loss = dynamics.Loss(net.output, "square")
    model = WithoutPoints(dynamics.NetworkModel(net, loss))
    samples = dynamics.Samples(jnp.asarray(data.x), jnp.asarray(data.y))
    options = train_options(spec.training, learning_rate=rate, together=True)
    begin = dynamics.Start(trained, FixedAndWeights(fixed, jnp.asarray(weights)))
    measures = [_LossesOfKept()]
    found = dynamics.descend(
        {"network": model}, {"network": begin}, samples, options, measures, progress
    )["network"]
    others: list[Outcome] = []  # of the trainings that did not converge
    for each in found.outcomes():
        assert each != "finished"  # a threshold is always set
        if each != "converged":
            others.append(each)
    outcome: Outcome = others[0] if others else "converged"
    return _Retrained(
        params=merge(found.trained, fixed),
        outcome=outcome,
        steps=tuple(int(step) for step in found.steps),
    )


def _rate(spec: AttributionSpec, net: Network, kernel_of_f: Floats) -> float:
    """Return one learning rate for all trainings: the given one, or that of all points."""
    if spec.training.learning_rate != "auto":
        return spec.training.learning_rate
    loss = dynamics.Loss(net.output, "square")
    return float(dynamics.auto_learning_rate(kernel_of_f, loss))


def predicted_changes(kernels: Floats, residuals: Floats) -> Floats:
    """Return predicted changes at test points without each training point, (n, test, C).

    Args:
        kernels: kernel at all points and the training points, (n + test, n, C, C).
        residuals: y − F at the training points, (n, C).
    """
    kernel, cross = np.split(kernels, [len(residuals)])
    return leave_one_out(kernel, residuals, cross).changes


@dynamics.compiled("records", static_argnums=0)
def _outputs_of_each(net: Network, params: NetworkParams, x: Array) -> Array:
    """f of every copy at x, (copies, k, C)."""
    return jax.lax.map(lambda each: net.apply(each, x), params)


def _compared(predicted: Floats, retrained: Floats, is_kept: bool) -> Prediction:
    """Compare changes (removed, test, C)."""
    size = np.linalg.norm(retrained)
    error = float(np.linalg.norm(predicted - retrained) / size) if size > 0 else np.nan
    rank = rank_correlation(predicted, retrained)
    return Prediction(
        error=error if np.isfinite(error) else None,
        rank=rank if np.isfinite(rank) else None,
        changes=_kept(predicted) if is_kept else (),
    )


def rank_correlation(predicted: Floats, retrained: Floats) -> float:
    """Return Spearman's correlation over the first axis, the mean over all others.

    NaN if it is not defined.

    >>> one = np.array([[1.0], [2.0], [5.0]])
    >>> round(rank_correlation(one, one**3), 6)
    1.0
    """
    if not (np.isfinite(predicted).all() and np.isfinite(retrained).all()):
        return np.nan
    ranks = []
    for values in (predicted, retrained):
        of_each = np.apply_along_axis(_ranks, 0, values.reshape(len(values), -1))
        ranks.append(of_each - of_each.mean(axis=0))
    products = (ranks[0] * ranks[1]).sum(axis=0)
    sizes = np.linalg.norm(ranks[0], axis=0) * np.linalg.norm(ranks[1], axis=0)
    defined = sizes > 0  # equal changes have no order
    return float((products[defined] / sizes[defined]).mean()) if defined.any() else np.nan


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value, (n,); equal values share the mean of their ranks."""
    # As scipy.stats.rankdata, which takes half a second to import.
    ordered = np.sort(values)
    below = np.searchsorted(ordered, values, side="left")
    below_or_equal = np.searchsorted(ordered, values, side="right")
    return (below + below_or_equal + 1) / 2


def _kept(changes: Floats) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Return the changes at the kept test points, with the digits that a figure shows."""
    return tuple(map(_rounded, changes[:, :KEPT_POINTS]))


def _rounded(rows: Floats) -> tuple[tuple[float, ...], ...]:
    """Return the rows with ``DIGITS`` significant digits."""
    rounded = []
    for row in rows:
        texts = [f"{value:.{DIGITS}g}" for value in row]
        rounded.append(tuple(map(float, texts)))
    return tuple(rounded)
