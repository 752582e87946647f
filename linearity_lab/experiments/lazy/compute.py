"""κ at w₀ and changes in training of scaled networks, one width, scale and richness at a time."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from linearity_lab.data import Dataset
from linearity_lab.experiments.lazy.point import LazyPoint, LazyRun, LazySpec
from linearity_lab.experiments.train_options import train_options
from linearity_lab.experiments.trained_runs import every_run
from linearity_lab.networks.build import build_network
from linearity_lab.runs import finite_or_none, finite_sup
from ntk_core.dynamics import (
    BesideLinear,
    HistoryMeasure,
    KernelPath,
    TrainData,
    TrainingHistory,
    TrainOptions,
)
from ntk_core.hessians import hessian_norm
from ntk_core.kernels import empirical_ntk, least_distance
from ntk_core.networks.architectures import (
    Mirrored,
    Network,
    NetworkParams,
    ScaledNetwork,
    Subtracted,
)
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress

INPUTS_OF_A_CLASS = 2  # or of a numeric target, at which κ is measured; our choice
_STARTS = {"random": lambda net: net, "symmetric": Mirrored, "subtracted": Subtracted}


def compute(spec: LazySpec, data: Dataset, key: str, progress: Progress) -> LazyPoint:
    """Compute one point, all outputs, starts and seeds."""
    return LazyPoint(**every_run(spec, _run, data, key, progress, spec.outputs, spec.starts))


def _run(
    spec: LazySpec,
    data: Dataset,
    key: str,
    output: str,
    start: str,
    seed: int,
    progress: Progress,
) -> LazyRun:
    width, scale, richness = spec.value_of(key)
    progress = progress.named(_name_of(width, scale, richness, output, start, seed))
    progress.report(0.0, "Hessian")
    hidden = build_network(spec.architecture, width, data.num_outputs, output)
    started = _STARTS[start](hidden)
    net = ScaledNetwork(started, scale * width**-richness)
    draw = partial(net.init, initial_key(seed, width), data.input_shape)
    params = draw()
    found = laziness(net, params, data)
    progress.report(0.3, "initial kernel")
    options = train_options(spec.training)
    points = TrainData(data.x, spec.training.targets_of(data.y), followed=())
    beside = BesideLinear(net, params, points, options, linearized=False)
    x = beside.points.x
    before = pre_activations(hidden, params, x)
    del params
    measure = HistoryMeasure(beside)
    beside.descend([measure], progress.between(0.3, 1.0))
    history = measure.result()

    after = pre_activations(hidden, history.params, x)
    num_steps = int(history.steps[-1])
    label_difference = None
    if output == "linear" and scale != 1 and num_steps > 0:
        label_difference = difference_to_scaled_labels(
            ScaledNetwork(started, width**-richness),
            draw,
            history.params,
            points,
            beside.options,
            scale,
            num_steps,
        )
    return _read_off(
        history,
        **found,
        output=output,
        start=start,
        seed=seed,
        num_steps=num_steps,
        hidden_change=_mean_changes(before, after),
        least_distance=tuple(least_distance(net, draw(), history.params, x)),
        label_difference=label_difference,
    )


def _name_of(width: int, scale: float, richness: float, output: str, start: str, seed: int) -> str:
    """Return the name of a run in messages."""
    place = f"richness {richness:g}" if richness else f"scale {scale:g}"
    return f"width {width:,}, {place}: {OUTPUTS[output].title}, {start} start, seed {seed}"


def _mean_changes(before: Sequence[Array], after: Sequence[Array]) -> tuple[float, ...]:
    """Return the mean |h − h₀| of each layer's pre-activations."""
    changes = []
    for h0, h in zip(before, after, strict=True):
        changes.append(float(jnp.abs(h - h0).mean()))
    return tuple(changes)


def _read_off(history: TrainingHistory, **measured: Any) -> LazyRun:
    """Return the run of a training, with what was measured beside it."""
    kernel = cast(KernelPath, history.kernel)
    path = history.network
    return LazyRun.read_off(
        kernel,
        history,
        path,
        first_loss=float(path.loss[0]),
        last_loss=float(path.loss[-1]),
        pre_output_change=finite_sup(kernel.pre_output_change.tolist()),
        distance=float(path.distance[-1]),
        largest_distance=float(path.largest_distance[-1]),
        last_change=finite_or_none(float(kernel.change[-1])),
        **measured,
    )


def difference_to_scaled_labels(
    net: Network,
    draw: Callable[[], NetworkParams],
    trained: NetworkParams,
    points: TrainData,
    options: TrainOptions,
    scale: float,
    num_steps: int,
) -> float | None:
    """Return ‖w − w′‖₂ / ‖w − w₀‖₂ with w′ of f trained on y/α; None if a run diverged.

    The loss of α f on y is α² times that of f on y/α, so w′ takes as many steps at the rate α² η.

    Args:
        net: f, without the scale α.
        draw: returns w₀.
        trained: w, of α f trained at the rate η of ``options``.

    Source: Liu, Zhu & Belkin 2020, §1.1, after Eq. 4.
    """
    scaled_labels = replace(points, y=np.asarray(points.y) / scale)
    rate = float(np.asarray(options.learning_rate))
    same_steps = replace(
        options,
        learning_rate=scale**2 * rate,
        loss_threshold=None,
        max_steps=num_steps,
        num_records=1,
    )
    beside = BesideLinear(net, draw(), scaled_labels, same_steps, linearized=False)
    measure = HistoryMeasure(beside)
    beside.descend([measure])
    other = measure.result().params

    def distance(one: NetworkParams, another: NetworkParams) -> float:
        squares = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), one, another)
        return math.sqrt(sum(map(float, jax.tree.leaves(squares))))

    return finite_or_none(distance(trained, other) / distance(trained, draw()))


@partial(jax.jit, static_argnums=0)
def pre_activations(net: Network, params: NetworkParams, x: Array) -> tuple[Array, ...]:
    """Return h of every layer but the last, (n, *output_shape) each, in call order."""
    found: list[Array] = []

    def call(name: str, a: Array) -> Array:
        found.append(net.layers[name].apply(params[name], a))
        return found[-1]

    net.body(call, x)
    return tuple(found[:-1])


def laziness(net: Network, params: NetworkParams, data: Dataset) -> dict[str, float | bool]:
    """Return κ and its factors.

    Means over the first inputs of each class, or of all without classes.
    """
    found = []
    converged = True
    for label in range(data.num_outputs):
        chosen = (
            np.flatnonzero(data.labels == label) if data.class_names else np.arange(len(data.x))
        )
        chosen = chosen[:INPUTS_OF_A_CLASS]
        x = jnp.asarray(data.x[chosen])
        off = np.abs(np.asarray(net.apply(params, x), np.float64)[:, label] - data.y[chosen, label])
        square = np.einsum("iiaa->ia", np.asarray(empirical_ntk(net, params, x), np.float64))[
            :, label
        ]
        norms = hessian_norm(net, params, x, label, batched=True, repeated=False)
        found.append(np.stack([off * norms.value / square, off, norms.value, square]))
        converged = converged and bool(norms.converged.all())
    names = ("kappa", "residual", "hessian", "squared_gradient")
    means = dict(zip(names, np.concatenate(found, axis=1).mean(axis=1).tolist(), strict=True))
    return {**means, "hessian_converged": converged}
