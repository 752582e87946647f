"""κ at initialization and the movement in training of a scaled network, one pair of width and scale at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from ntk_core.data import Dataset, data_fingerprint, load_dataset
from ntk_core.dynamics import Loss, Training, TrainingHistory
from ntk_core.experiments.lazy.result import LazyPoint, LazyRun
from ntk_core.experiments.lazy.spec import LazySpec
from ntk_core.hessians import hessian_norms
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import Mirrored, Network, NetworkParams, Scaled, Subtracted
from ntk_core.networks.build import build_network

Progress = tuple[float, str]
INPUTS_OF_A_CLASS = 2  # or of a number to be learned, at which κ is measured; our choice
_STARTS = {"random": lambda net: net, "symmetric": Mirrored, "subtracted": Subtracted}


@dataclass(frozen=True)
class Laziness:
    """κ = |F − y| ‖H‖ / ‖∇F‖² at w₀ and its factors, each a mean over inputs with their output."""

    kappa: float
    residual: float
    hessian: float
    squared_gradient: float
    converged: bool


def load(spec: LazySpec) -> Dataset:
    """The data of the spec."""
    return load_dataset(spec.dataset.name, **spec.dataset.options())


def fingerprint(data: Dataset) -> str:
    """SHA-256 of the data, for the provenance."""
    return data_fingerprint(data)


def compute(spec: LazySpec, data: Dataset, key: str) -> Generator[Progress, None, LazyPoint]:
    """All outputs, starts and seeds of one pair; yields (fraction, message) between stretches of work."""
    began, (width, scale) = time.monotonic(), spec.value_of(key)
    seeds = range(spec.seed, spec.seed + spec.num_seeds)
    plan = [(output, start, seed) for output in spec.outputs for start in spec.starts for seed in seeds]
    runs, num_params = [], 0
    for index, (output, start, seed) in enumerate(plan):
        words = f"width {width:,}, scale {scale:g}: {output} output, {start} start, seed {seed}"
        yield index / len(plan), f"{words}, Hessian"
        base = build_network(spec.architecture, width, data.num_outputs, output)
        num_params = base.num_params(data.input_shape, only_trained=True)
        net = Scaled(_STARTS[start](base), scale)
        params = net.init(jax.random.key(seed), data.input_shape)
        found = laziness(net, params, data)
        yield (index + 0.3) / len(plan), f"{words}, first kernel"
        training = Training(
            net,
            params,
            data.x,
            data.y,
            loss=Loss(output, "square"),
            learning_rate=spec.training.learning_rate,
            max_steps=spec.training.max_steps,
            num_records=spec.training.num_records,
            loss_threshold=spec.training.loss_threshold,
            followed=(),
            linearized=False,
        )
        del params
        for step in training.stretches():
            share = 0.3 + 0.7 * math.log1p(step) / math.log1p(spec.training.max_steps)
            yield (index + share) / len(plan), f"{words}, step {step:,}"
        runs.append(_run(output, start, seed, found, training.history()))
    return LazyPoint(
        width=width, scale=scale, num_params=num_params, runs=tuple(runs), runtime_s=time.monotonic() - began
    )


def laziness(net: Network, params: NetworkParams, data: Dataset) -> Laziness:
    """κ at ``params``, at the first inputs of each class, or at the first of all for every number to be learned."""
    kappas, residuals, hessians, squares, converged = [], [], [], [], True
    for label in range(data.num_outputs):
        chosen = np.flatnonzero(data.labels == label) if data.class_names else np.arange(len(data.x))
        chosen = chosen[:INPUTS_OF_A_CLASS]
        x = jnp.asarray(data.x[chosen])
        residual = np.abs(np.asarray(net.apply(params, x), np.float64)[:, label] - data.y[chosen, label])
        kernel = np.asarray(empirical_ntk(net, params, x), np.float64)
        square = np.einsum("iiaa->ia", kernel)[:, label]
        norms = hessian_norms(net, params, x, label)
        kappas += list(residual * norms.value / square)
        residuals += list(residual)
        hessians += list(norms.value)
        squares += list(square)
        converged = converged and bool(norms.converged.all())
    kappa, residual_mean, hessian, square_mean = (
        float(np.mean(values)) for values in (kappas, residuals, hessians, squares)
    )
    return Laziness(kappa, residual_mean, hessian, square_mean, converged)


def _run(output: str, start: str, seed: int, found: Laziness, history: TrainingHistory) -> LazyRun:
    kernel, path = history.kernel, history.network
    assert kernel is not None
    assert path.outcome != "finished"  # there is always a threshold here
    return LazyRun(
        output=output,
        start=start,
        seed=seed,
        learning_rate=history.learning_rate,
        outcome=path.outcome,
        last_finite_step=path.last_finite_step,
        num_steps=int(history.steps[-1]),
        kappa=found.kappa,
        residual=found.residual,
        hessian=found.hessian,
        squared_gradient=found.squared_gradient,
        hessian_converged=found.converged,
        first_loss=float(path.loss[0]),
        last_loss=float(path.loss[-1]),
        sup_change=kernel.sup_change,
        pre_output_change=max(filter(math.isfinite, kernel.pre_output_change), default=math.nan),
        distance=float(path.distance[-1]),
        largest_distance=float(path.largest_distance[-1]),
    )
