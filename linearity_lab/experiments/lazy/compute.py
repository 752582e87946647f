"""κ at w₀ and changes in training of scaled networks, one width, scale and richness at a time."""

from functools import partial
from typing import cast

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
from ntk_core.dynamics import BesideLinear, HistoryMeasure, KernelPath, TrainData
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
    place = f"richness {richness:g}" if richness else f"scale {scale:g}"
    progress = progress.named(
        f"width {width:,}, {place}: {OUTPUTS[output].title}, {start} start, seed {seed}"
    )
    progress.report(0.0, "Hessian")
    hidden = build_network(spec.architecture, width, data.num_outputs, output)
    net = ScaledNetwork(_STARTS[start](hidden), scale * width**-richness)
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
    kernel = cast(KernelPath, history.kernel)
    path = history.network
    return LazyRun.read_off(
        kernel,
        history,
        path,
        **found,
        output=output,
        start=start,
        seed=seed,
        num_steps=int(history.steps[-1]),
        first_loss=float(path.loss[0]),
        last_loss=float(path.loss[-1]),
        pre_output_change=finite_sup(kernel.pre_output_change.tolist()),
        distance=float(path.distance[-1]),
        largest_distance=float(path.largest_distance[-1]),
        hidden_change=tuple(
            float(jnp.abs(h - h0).mean()) for h, h0 in zip(after, before, strict=True)
        ),
        last_change=finite_or_none(float(kernel.change[-1])),
        least_distance=tuple(least_distance(net, draw(), history.params, x)),
    )


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
