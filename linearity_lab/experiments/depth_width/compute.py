"""Scatter of K(x, x), ‖H‖ at w₀ and ΔK in training, one pair of depth and width at a time."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from linearity_lab.data import Dataset
from linearity_lab.experiments.depth_width import point as depth_width
from linearity_lab.experiments.depth_width.point import DepthRun, DepthWidthPoint, DepthWidthSpec
from linearity_lab.experiments.depth_width.random_kernels import Scatter, random_kernels, scatter
from linearity_lab.experiments.train_options import loss_of, train_options
from linearity_lab.networks.build import build_network
from ntk_core.dynamics import KernelChangeMeasure, descend, network_of_seeds
from ntk_core.hessians import hessian_norm
from ntk_core.networks.architectures import NetworkParams
from ntk_core.networks.keys import initial_key
from ntk_core.progress import Progress


def compute(spec: DepthWidthSpec, data: Dataset, key: str, progress: Progress) -> DepthWidthPoint:
    """Compute one pair, all draws and seeds."""
    depth, width = spec.value_of(key)
    seeds = list(spec.seeds) if spec.trains(depth, width) else []
    num_parts = 1 + len(seeds)
    found = _drawn(spec, depth, width, progress.part(0, num_parts))
    runs = []
    for index, seed in enumerate(seeds):
        part = progress.part(1 + index, num_parts)
        runs.append(_trained(spec, data, depth, width, seed, part))
    return DepthWidthPoint.read_off(
        found,
        depth=depth,
        width=width,
        num_kernels=spec.num_kernels,
        seed=spec.seed,
        runs=tuple(runs),
    )


def _drawn(spec: DepthWidthSpec, depth: int, width: int, progress: Progress) -> Scatter:
    random = np.random.default_rng([spec.seed, depth, width])
    together = max(1, depth_width.BLOCK_NUMBERS // (depth * width))
    blocks = []
    for first in range(0, spec.num_kernels, together):
        message = f"depth {depth}, width {width:,}: network {first:,}"
        progress.report(first / spec.num_kernels, message)
        blocks.append(
            random_kernels(
                depth, width, min(together, spec.num_kernels - first), random.standard_normal
            )
        )
    return scatter(np.concatenate(blocks), random)


def _trained(
    spec: DepthWidthSpec, data: Dataset, depth: int, width: int, seed: int, progress: Progress
) -> DepthRun:
    progress = progress.named(f"depth {depth}, width {width:,}: seed {seed}")
    net = build_network(
        spec.architecture(depth), width, data.num_outputs, "linear", gain=depth_width.GAIN
    )
    params = net.init(initial_key(seed, width, depth), data.input_shape)
    norms = None
    if spec.measures_hessian(depth):
        progress.report(0.0, "Hessian")
        inputs = jnp.asarray(data.x[: depth_width.INPUTS])
        if depth > depth_width.UNROLLED_DEPTH:
            norms = hessian_norm(
                layer_by_layer, stacked(params), inputs, batched=True, repeated=False
            )
        else:
            norms = hessian_norm(net, params, inputs, batched=True, repeated=False)
    progress.report(0.3, "initial kernel")
    together = jax.tree.map(lambda leaf: leaf[None], params)
    change = KernelChangeMeasure(("linear",))
    targets = spec.training.targets_of(data.y)
    loss = loss_of(spec.training, "linear")
    models = network_of_seeds(net, together, data.x, targets, loss)
    options = train_options(spec.training, together=True)
    descend(*models, options, [change], progress.between(0.3, 1.0))
    assert change.kernel is not None
    kernel = np.asarray(change.kernel[0], np.float64)
    squares = np.einsum("iiaa->ia", kernel)[: depth_width.INPUTS, 0]
    return DepthRun.read_off(
        change.result()["linear"][0],
        seed=seed,
        hessian=float(np.mean(norms.value)) if norms else math.nan,
        squared_gradient=float(squares.mean()),
        hessian_converged=norms is None or bool(norms.converged.all()),
    )


Stacked = tuple[Array, Array, Array]


def stacked(params: NetworkParams) -> Stacked:
    """Return (W¹ (d, m), W² … W^L (L − 1, m, m), V (m, 1)), for two or more hidden layers."""
    first, *middle, last = (layer["weight"] for layer in params.values())
    return first, jnp.stack(middle), last


def layer_by_layer(weights: Stacked, x: Float[Array, "n d"]) -> Float[Array, "n 1"]:
    """Apply the network by a loop over its layers.

    So its Hessian compiles in seconds at every depth.
    """
    first, middle, last = weights

    def layer(a: Array, weight: Array) -> tuple[Array, None]:
        return jax.nn.relu(depth_width.GAIN * a @ weight / math.sqrt(a.shape[-1])), None

    a, _ = jax.lax.scan(layer, layer(x, first)[0], middle)
    return a @ last / math.sqrt(a.shape[-1])
