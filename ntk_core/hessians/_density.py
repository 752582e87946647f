"""Spectral density of a Hessian by stochastic Lanczos quadrature."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Unpack, overload

import jax
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Key, PyTree

from ntk_core.errors import InvalidInput
from ntk_core.hessians._compiled import with_layers
from ntk_core.hessians._each_output import DensityOptions, for_each_output
from ntk_core.hessians._lanczos import ROUNDING, lanczos_quadrature
from ntk_core.hessians._operator import (
    check_request,
    operator,
    output_scalar,
    refuse_asymmetric_output,
)
from ntk_core.hessians._range import refuse_out_of_range
from ntk_core.hessians._requests import check_count, checked_key
from ntk_core.kernels import moving_of
from ntk_core.networks.architectures import Network
from ntk_core.real_numbers import is_finite_number
from ntk_core.traced import (
    Inputs,
    Model,
    Route,
    Trainable,
    accepted_input,
    restricted,
    with_usual_settings,
)


@dataclass(frozen=True, repr=False)
class SpectralDensity:
    """Sampled eigenvalue distribution of H on its small space.

    Attributes:
        nodes: quadrature nodes of each probe, (num_probes, num_steps).
        weights: their weights; each row sums to 1. Nodes equal to rounding have equal weights.
        dimension: of the small space, the number of eigenvalues that may differ from zero; the
            other num_parameters - dimension eigenvalues of the full Hessian are exactly 0.
        num_parameters: p, of the trained weights.
    """

    nodes: np.ndarray
    weights: np.ndarray
    dimension: int
    num_parameters: int

    def __repr__(self) -> str:
        """Range and sizes, without the nodes."""
        probes, steps = self.nodes.shape
        ends = f"{self.nodes.min():.4g} to {self.nodes.max():.4g}"
        sizes = f"{self.dimension:,} of {self.num_parameters:,} dimensions"
        return f"SpectralDensity(nodes from {ends}; {probes} probes of {steps} steps; {sizes})"

    def moment(self, order: int) -> tuple[float, float]:
        """(mean, standard error over the probes) of the average of λ^order over the small space."""
        each = np.sum(self.weights * self.nodes**order, axis=1)
        error = float(np.std(each, ddof=1) / math.sqrt(len(each))) if len(each) > 1 else math.inf
        return float(np.mean(each)), error

    def density(
        self, grid: Float[np.ndarray, " points"], bandwidth: float
    ) -> Float[np.ndarray, " points"]:
        """Density at ``grid``, each node smoothed to a Gaussian of deviation ``bandwidth``.

        Integrates to 1.
        """
        if not (is_finite_number(bandwidth) and bandwidth > 0):
            raise InvalidInput("bandwidth", bandwidth, "a finite number above 0")
        distance = (np.asarray(grid)[:, None] - self.nodes.ravel()) / bandwidth
        peaks = np.exp(-(distance**2) / 2) / (bandwidth * math.sqrt(2 * math.pi))
        return peaks @ self.weights.ravel() / len(self.nodes)


@overload
def hessian_density(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: int = 0,
    **options: Unpack[DensityOptions],
) -> SpectralDensity: ...
@overload
def hessian_density(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: None,
    **options: Unpack[DensityOptions],
) -> list[SpectralDensity]: ...
@with_usual_settings
def hessian_density(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: int | None = 0,
    *,
    num_probes: int = 8,
    num_steps: int = 32,
    key: Key[Array, ""] | None = None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> SpectralDensity | list[SpectralDensity]:
    """Return the spectral density of the Hessian of one output.

    Spectral density (1/D) Σ_i δ(λ − λ_i) of the Hessian of one model output for one
    input, in its small space.

    For each of ``num_probes`` random unit vectors v of the small space, ``num_steps`` products give
    nodes and weights that reproduce vᵀ H^k v exactly for k < 2 · num_steps; the mean over v is the
    mean of λ^k. Arguments as for ``hessian_norm``.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), np.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> hessian_density(net, params, x, num_probes=2, num_steps=4).nodes.shape
    (2, 4)

    Args:
        net, params, x, output_index, key: as for :func:`hessian_norm`.
        num_probes: random unit vectors v.
        num_steps: Lanczos steps from each of them.
        trainable: the differentiated parameters, as for ``empirical_ntk``.
        route: as for :func:`hessian_norm`.

    Returns:
        Nodes and weights of the density; for ``output_index=None`` a list with those of each
        output.

    Raises:
        InvalidInput, TooLarge: as ``hessian_norm``; also for numbers below 1.

    Source: Golub & Meurant 2010, ch. 6; Ghorbani, Krishnan & Xiao 2019, §2.
    """
    for field, given in (("num_probes", num_probes), ("num_steps", num_steps)):
        check_count(field, given, 1)
    if output_index is None:
        return for_each_output(
            hessian_density,
            net,
            params,
            x,
            num_probes=num_probes,
            num_steps=num_steps,
            key=key,
            trainable=trainable,
            route=route,
        )
    net, one, num_outputs = accepted_input(restricted(net, params, trainable, route), params, x)
    net = with_layers(net, params, one)
    check_request(net, params, num_outputs, output_index, num_steps)
    refuse_asymmetric_output(net, params, one, num_outputs, output_index)
    key = checked_key(key)
    with jax.default_matmul_precision("highest"):
        nodes, weights, dimension = _sampled(
            net, params, one, output_index, num_probes, num_steps, key
        )
    refuse_out_of_range(net, params, one, output_index, nodes)
    trained, _ = moving_of(net, params)
    removed = _num_removed_edges(net, params)
    num_parameters = sum(leaf.size for leaf in jax.tree.leaves(trained)) - removed
    places = np.asarray(nodes)  # (num_probes, num_steps)
    rough = np.asarray(weights)
    probes = zip(places, rough, strict=True)
    shared = np.stack([_shared(*probe) for probe in probes])
    return SpectralDensity(places, shared, int(dimension) - removed, num_parameters)


def _shared(
    nodes: Float[np.ndarray, " steps"], weights: Float[np.ndarray, " steps"]
) -> Float[np.ndarray, " steps"]:
    """Give nodes that are equal to rounding equal shares of their weight.

    Eigenvectors of equal nodes are not unique, so rounding decides how they divide their weight.
    """
    apart = ROUNDING * np.finfo(nodes.dtype).eps * np.abs(nodes).max()
    # The nodes ascend: a new group begins where the next node is further away.
    group = np.cumsum(np.diff(nodes, prepend=nodes[0]) > apart)
    num_equal = np.bincount(group)
    share = np.bincount(group, weights) / num_equal
    return share[group].astype(weights.dtype)


def _num_removed_edges(net: Model, params: PyTree) -> int:
    """Return the number of masked weights, which have no eigenvalues."""
    if not isinstance(net, Network):
        return 0
    masks = [
        params[name]["mask"]
        for name, layer in net.layers.items()
        if layer.trainable and "mask" in params[name]
    ]
    return sum(mask.size - int(mask.sum()) for mask in masks)


@partial(jax.jit, static_argnums=(0, 4, 5))
def _sampled(
    net: Model,
    params: PyTree,
    x: Array,
    output_index: int | Array,
    num_probes: int,
    num_steps: int,
    key: Array,
) -> tuple[Array, Array, int]:
    hessian = operator(net, params, x, output_scalar(net, output_index))
    steps = min(num_steps, hessian.dimension)

    def probe(key: Array) -> tuple[Array, Array]:
        return lanczos_quadrature(
            hessian.matvec, *hessian.random(key), num_steps=steps, project=hessian.project
        )

    nodes, weights = lax.map(probe, jax.random.split(key, num_probes))
    return nodes, weights, hessian.dimension
