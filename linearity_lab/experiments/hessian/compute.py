"""Hessian norms against width.

One network and width is measured after the other (Liu, Zhu & Belkin 2020, §3, §4 and Table 1).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpy.typing import ArrayLike

from linearity_lab.data import Dataset, load_dataset
from linearity_lab.experiments.hessian import point as hessian
from linearity_lab.experiments.hessian.network import ComparedNetwork, titles
from linearity_lab.experiments.hessian.spec import HessianSpec, hidden_and_output
from linearity_lab.experiments.kernel_change.spec import training_groups
from linearity_lab.experiments.train_options import train_options
from linearity_lab.experiments.trained_sweep import TrainedRun
from linearity_lab.networks.build import build_network
from linearity_lab.networks.sizes import min_width
from linearity_lab.runs import finite_or_none
from ntk_core import hessians
from ntk_core.dynamics import KernelChangeMeasure, Loss, descend, network_of_seeds
from ntk_core.kernels import empirical_ntk, pre_output_ntk
from ntk_core.networks.architectures import Bottleneck, FullyConnected, Network, NetworkParams
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress
from ntk_core.traced import through_output

DataByLength = Dataset | dict[int, Dataset]  # one data set, or one for each number of tokens
# Relative residual; the error of an isolated eigenvalue is of the order of its square.
TOLERANCE = 1e-3
MAX_MATVECS = 128
# Lanczos separates slowly the many eigenvalues near the largest of a diagonal Hessian; its
# vectors are short.
MAX_MATVECS_OF_DIAGONAL = 256


def load(spec: HessianSpec) -> DataByLength:
    """Load the data set, or one per number of tokens if swept."""
    if spec.swept == "width":
        return load_dataset(spec.dataset.name, **spec.data_options())
    each = {value: spec.dataset_at(value) for value in spec.widths}
    return {
        value: load_dataset(dataset.name, **dataset.options()) for value, dataset in each.items()
    }


def compute(
    spec: HessianSpec, data: DataByLength, key: str, progress: Progress
) -> hessian.HessianPoint:
    """Compute one network at one width or length, all seeds."""
    value, line = spec.value_of(key)
    data = data if isinstance(data, Dataset) else data[value]
    network = spec.lines()[line]
    width = spec.width_at(value)
    what = f"{value:,} tokens" if spec.swept == "num_tokens" else f"width {value:,}"
    title = f"{what}: {titles(spec.lines())[line]}"
    net, seen, output_index = _network(spec, data, width, network)
    x = seen[: spec.num_inputs]
    draw = jax.jit(net.init, static_argnums=1)
    runs: list[hessian.HessianRun] = []
    blocks: hessian.HessianBlocks | None = None
    for index, seed in enumerate(spec.seeds):
        of_seed = progress.part(index, spec.num_seeds).named(f"{title}, seed {seed}")
        of_seed.report(0.0)
        params = draw(initial_key(seed, value), x.shape[1:])
        measured = _measured(spec, network, net, params, seen, output_index)
        if spec.vector:
            of_seed.report(0.1, "all outputs")
            vector, known = _vector(net, params, x)
            measured |= {"vector": vector, "converged": measured["converged"] and known}
        if index == 0 and spec.blocks and value == spec.widths[-1]:
            of_seed.report(0.2, "blocks")
            found = hessians.hessian_block_norms(
                net, params, x[0], output_index, tolerance=TOLERANCE
            )
            shown: dict[str, Any] = {"layers": found.layers, "norms": found.values.tolist()}
            blocks = hessian.HessianBlocks(
                seed=seed, converged=bool(np.all(found.converged)), **shown
            )
        if index < spec.num_ball_seeds and spec.radii:
            of_balls = of_seed.between(0.3, 0.5)
            measured["balls"] = _balls(spec, network, net, params, x, output_index, of_balls)
        if index < spec.num_trained and network.input == "data":
            of_training = of_seed.between(0.5, 1.0)
            measured["trained"] = _trained(spec, data, network.output, net, params, of_training)
        runs.append(hessian.HessianRun(seed=seed, **measured))
    return hessian.HessianPoint(
        width=value,
        line=line,
        network=network,
        wide_width=network.at(width)[1],
        min_width=min_width(network, hidden_and_output(spec, network, value)),
        num_params=net.num_params(x.shape[1:], only_trained=True),
        runs=tuple(runs),
        blocks=blocks,
        num_tokens=value if spec.swept == "num_tokens" else None,
    )


def _network(
    spec: HessianSpec, data: Dataset, width: int, network: ComparedNetwork
) -> tuple[Network, Array, int]:
    """(network, its training inputs, index of the output)."""
    if network.input == "one":
        return build_network(*network.at(width), 1, network.output), jnp.ones((1, 1)), 0
    return (
        build_network(*network.at(width), data.num_outputs, network.output),
        jnp.asarray(data.x),
        spec.output_index,
    )


def _measured(
    spec: HessianSpec,
    network: ComparedNetwork,
    net: Network,
    params: NetworkParams,
    seen: Array,
    output_index: int,
) -> dict[str, Any]:
    """Measure one seed.

    Norms, bounds and closed forms are at the first inputs, the kernel is over all ``seen``.
    """
    x = seen[: spec.num_inputs]
    most = MAX_MATVECS_OF_DIAGONAL if network.closed_form == "shallow" else MAX_MATVECS
    found = hessians.hessian_norm(
        net,
        params,
        x,
        output_index,
        tolerance=TOLERANCE,
        max_matvecs=most,
        batched=True,
        repeated=hessians.repetition_pays(spec.num_seeds * spec.num_inputs),
    )
    parts = None
    converged = bool(np.all(found.converged))
    if spec.bounds and network.output != "linear":
        parts, known = _nonlinear_parts(net, params, x, output_index)
        converged = converged and known
    return {
        "norm": float(np.mean(found.value)),
        "largest_norm": float(np.max(found.value)),
        "residual": float(np.max(found.residual)),
        "converged": converged,
        "num_matvecs": int(np.sum(found.num_matvecs)),
        "kernel": float(_kernel(net, params, seen)),
        "exact": _exact(network, net, params, x),
        "zero_distance": _zero_distance(network, params, x),
        "bound": _layer_bound(net, params, x, output_index)
        if spec.bounds and network.has_bound
        else None,
        "parts": parts,
        "shares": _shares(network, net, params, seen) if spec.shares else (),
    }


@partial(jax.jit, static_argnums=0)
def _kernel(net: Network, params: NetworkParams, x: Array) -> Array:
    """Mean over inputs and outputs of K(x, x)[c, c]."""
    kernel, f, _ = pre_output_ntk(net, params, x)
    return jnp.mean(jnp.einsum("iicc->ic", through_output(net.output, kernel, f, f)))


def _shares(
    network: ComparedNetwork, net: Network, params: NetworkParams, x: Array
) -> tuple[hessian.LayerShare, ...]:
    """Return tr K_l / tr K of each layer, or of all layers with one role, such as queries."""
    roles = {
        f"hidden{index}": role
        for index, role in enumerate(network.written_out.roles(), start=1)
        if role
    }
    traces: dict[str, float] = {}
    for name, part in empirical_ntk(net, params, x, per_layer=True).items():
        layer = roles.get(name, name)
        traces[layer] = traces.get(layer, 0.0) + float(jnp.einsum("iicc->", part))
    total = sum(traces.values())
    shared = traces if total > 0 else {}
    return tuple(
        hessian.LayerShare(layer=layer, share=trace / total) for layer, trace in shared.items()
    )


def _exact(network: ComparedNetwork, net: Network, params: NetworkParams, x: Array) -> float | None:
    """Return the closed form if there is one; that of Theorem 4.1 in NTK parameterization."""
    if network.closed_form == "shallow" and isinstance(net, FullyConnected):
        return float(jnp.max(jnp.abs(hessians.shallow_hessian_blocks(net, params, x[0]))))
    if _is_theorem_41(network):
        w1, _, w3, v = _bottleneck_weights(params)
        return float(hessians.bottleneck_block_norm(w1, w3, v, x[0, 0]))
    return None


def _is_theorem_41(network: ComparedNetwork) -> bool:
    """Whether the network is that of Theorem 4.1.

    It has quadratic activations and the NTK parameterization.
    """
    return network.closed_form == "quadratic-bottleneck" and network.parameterization == "ntk"


def _bottleneck_weights(params: NetworkParams) -> tuple[Array, Array, Array, Array]:
    """(w1, w2, w3, v) of the network of Theorem 4.1, each of shape (m,)."""
    w1 = params["hidden1"]["weight"][0]
    w2 = params["hidden2"]["weight"][:, 0]
    w3 = params["hidden3"]["weight"][0]
    v = params["output"]["weight"][:, 0]
    return w1, w2, w3, v


def _zero_distance(network: ComparedNetwork, params: NetworkParams, x: Array) -> float | None:
    """Return the distance of w₀ to a zero of its Hessian, where one is known."""
    if not _is_theorem_41(network):
        return None
    steps = hessians.bottleneck_zero_step(*_bottleneck_weights(params), x[0, 0])
    return float(jnp.sqrt(sum(jnp.sum(step**2) for step in steps)))


def _towards_zero(params: NetworkParams, x: Array, share: float) -> NetworkParams:
    """Return the parameters after this share of the way to the zero of the Hessian."""
    step_w2, step_v = hessians.bottleneck_zero_step(*_bottleneck_weights(params), x[0, 0])
    w2 = params["hidden2"]["weight"]
    v = params["output"]["weight"]
    return {
        **params,
        "hidden2": {**params["hidden2"], "weight": w2 + share * step_w2[:, None]},
        "output": {**params["output"], "weight": v + share * step_v[:, None]},
    }


def _layer_bound(
    net: Network, params: NetworkParams, x: Array, output_index: int
) -> hessian.LayerBound:
    assert isinstance(net, FullyConnected | Bottleneck)
    each = [hessians.layer_quantities(net, params, one, output_index) for one in x]
    means = {
        name: np.mean(np.asarray([getattr(found, name) for found in each], float), axis=0).tolist()
        for name in hessian.LayerBound.model_fields
    }
    return hessian.LayerBound.model_validate(means)


def _nonlinear_parts(
    net: Network, params: NetworkParams, x: Array, output_index: int
) -> tuple[hessian.NonlinearParts, bool]:
    each = [
        hessians.nonlinear_output_parts(net, params, one, output_index, tolerance=TOLERANCE)
        for one in x
    ]
    gradients, linears, known = zip(*each, strict=True)
    lower = _mean([max(0.0, gradient - linear) for gradient, linear, _ in each])
    parts = hessian.NonlinearParts(
        gradient_part=_mean(gradients), linear_part=_mean(linears), lower=lower
    )
    return parts, all(known)


def _vector(net: Network, params: NetworkParams, x: Array) -> tuple[hessian.VectorNorm, bool]:
    each = [
        hessians.vector_hessian_norm(net, params, one, tolerance=TOLERANCE, max_matvecs=MAX_MATVECS)
        for one in x
    ]
    norm = _mean([found.value for found in each])
    upper = _mean([found.upper for found in each])
    return hessian.VectorNorm(norm=norm, upper=upper), all(found.converged for found in each)


def _least_in_ball(
    network: ComparedNetwork, net: Network, params: NetworkParams, x: Array, radius: float
) -> float | None:
    """Return ‖H‖ where the way to its known zero leaves the ball; 0 if the zero is inside."""
    distance = _zero_distance(network, params, x)
    if distance is None:
        return None
    if distance <= radius:
        return 0.0
    nearest = _towards_zero(params, x, radius / distance)
    found = hessians.hessian_norm(net, nearest, x[0], tolerance=TOLERANCE, max_matvecs=MAX_MATVECS)
    return float(found.value)


def _quantities_in_ball(
    spec: HessianSpec,
    net: Network,
    params: NetworkParams,
    x: Array,
    output_index: int,
    radius: float,
) -> dict[str, float]:
    """Return the largest layer quantities at distance R, in random directions and along ±∇f."""
    flat, unravel = ravel_pytree(params)
    gradient = jax.grad(lambda at: net.apply(unravel(at), x[:1])[0, output_index])(flat)
    directions = [gradient, -gradient]
    for key in jax.random.split(jax.random.key(spec.seed), spec.num_starts):
        directions.append(jax.random.normal(key, flat.shape))
    names = ("q_inf", "q_l", "q_221")
    found: dict[str, list[float]] = {name: [] for name in names}
    for direction in directions:
        at = unravel(flat + radius * direction / jnp.linalg.norm(direction))
        quantities = hessians.layer_quantities(net, at, x[0], output_index)
        for name in names:
            found[name].append(float(getattr(quantities, name)))
    return {name: max(values) for name, values in found.items()}


def _balls(
    spec: HessianSpec,
    network: ComparedNetwork,
    net: Network,
    params: NetworkParams,
    x: Array,
    output_index: int,
    progress: Progress,
) -> tuple[hessian.BallBound, ...]:
    """Return the suprema in balls of increasing radius."""
    norms = hessians.ball_sup(
        net,
        params,
        x[0],
        spec.radii,
        "hessian",
        num_starts=spec.num_starts,
        output_index=output_index,
        progress=progress.part(0, 2),
    )
    kernels = hessians.ball_sup(
        net,
        params,
        x,
        spec.radii,
        "kernel",
        num_starts=spec.num_starts,
        progress=progress.part(1, 2).named("kernel"),
    )
    bounds = []
    for norm, kernel in zip(norms, kernels, strict=True):
        quantities = {}
        if spec.bounds and network.has_bound:
            quantities = _quantities_in_ball(spec, net, params, x, output_index, norm.radius)
        bounds.append(
            hessian.BallBound(
                radius=norm.radius,
                hessian=float(norm.value),
                hessian_random=float(norm.random.max()),
                kernel_change=float(kernel.value),
                kernel_change_random=float(kernel.random.max()),
                converged=norm.converged,
                hessian_least=_least_in_ball(network, net, params, x, norm.radius),
                **quantities,
                hessian_last_gain=finite_or_none(norm.last_gain),
                kernel_change_last_gain=finite_or_none(kernel.last_gain),
            )
        )
    return tuple(bounds)


def _trained(
    spec: HessianSpec,
    data: Dataset,
    output: str,
    net: Network,
    params: NetworkParams,
    progress: Progress,
) -> hessian.TrainedChange:
    """Train one seed, and return its kernel change."""
    (group,) = training_groups((output,), classes=bool(data.class_names))
    together = jax.tree.map(lambda leaf: leaf[None], params)
    change = KernelChangeMeasure(group.observed)
    models = network_of_seeds(net, together, data.x, data.y, Loss(group.loss_output))
    descend(*models, train_options(spec.training, together=True), [change], progress)
    (recorded,) = change.result()[output]
    run = TrainedRun.read_off(recorded, seed=0)
    return hessian.TrainedChange.read_off(run, final_loss=run.loss[-1])


def _mean(values: Sequence[ArrayLike]) -> float:
    return float(np.mean(np.asarray(values, float)))
