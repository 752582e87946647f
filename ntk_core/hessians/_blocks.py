"""Norms of the layer × layer blocks of a Hessian."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Int, Key, Shaped

from ntk_core.hessians._lanczos import lanczos_extreme
from ntk_core.hessians._norm import MAX_MATVECS, checked_request
from ntk_core.hessians._operator import Operator, operator
from ntk_core.networks.architectures import Network, NetworkParams, accepted_network
from ntk_core.traced import accepted_input


@dataclass(frozen=True)
class BlockNorms:
    """Spectral norms ‖H_{l,l'}‖ = ‖∂²φ_a/∂w_l ∂w_l'‖ of all pairs of trained layers.

    Attributes:
        layers: names of the trained layers, in the order of the axes (that of the forward pass).
        values: symmetric, (num_layers, num_layers).
        residuals: of each, as in ``SpectralEstimate``.
        converged: of each.
        num_matvecs: products with H in all; an off-diagonal block needs two a step.
    """

    layers: tuple[str, ...]
    values: np.ndarray
    residuals: np.ndarray
    converged: np.ndarray
    num_matvecs: int


def hessian_block_norms(
    net: Network,
    params: NetworkParams,
    x: Shaped[Array, "..."],
    output_index: int = 0,
    *,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    key: Key[Array, ""] | None = None,
) -> BlockNorms:
    """Return the norm of every layer block of the Hessian.

    ‖H_{l,l'}‖ for every pair of trained layers of a network, for one input; arguments as for ``hessian_norm``.

    An off-diagonal block B is the upper right of the symmetric [[0, B], [Bᵀ, 0]], whose eigenvalues are plus and minus
    the singular values of B. ‖H‖ <= Σ_{l,l'} ‖H_{l,l'}‖ (Lemma E.1).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> hessian_block_norms(net, params, x).values.shape  # two layers
    (2, 2)

    Args:
        net, params, x, output_index, tolerance, max_matvecs, key: as for :func:`hessian_norm`.

    Returns:
        Norms of all blocks, by layers.

    Raises:
        InvalidInput: as ``hessian_norm``, and for a callable that is not a network (its layers are not known).

    Source: Liu, Zhu & Belkin 2020, Lemma E.1.
    """
    _, x, num_outputs = accepted_input(accepted_network(net), params, x)
    relative, key = checked_request(net, params, x, num_outputs, output_index, tolerance, max_matvecs, key)
    order = net.layer_input_shapes(x.shape)
    layers = tuple(name for name in order if net.layers[name].trainable)
    rows, columns = np.triu_indices(len(layers))
    with jax.default_matmul_precision("highest"):
        found = _all_blocks(
            net, params, x, output_index, layers, jnp.stack([rows, columns], 1), relative, max_matvecs, key
        )
    values, residuals, converged, steps = (np.asarray(part) for part in found)

    def symmetric(entries: Shaped[np.ndarray, " pairs"]) -> Shaped[np.ndarray, "layers layers"]:
        square = np.zeros((len(layers), len(layers)), entries.dtype)
        square[rows, columns] = square[columns, rows] = entries
        return square

    num_matvecs = int(np.sum(steps * np.where(rows == columns, 1, 2)))
    return BlockNorms(layers, symmetric(values), symmetric(residuals), symmetric(converged), num_matvecs)


@partial(jax.jit, static_argnums=(0, 4, 7))
def _all_blocks(
    net: Network,
    params: NetworkParams,
    x: Array,
    output_index: int | Array,
    layers: tuple[str, ...],
    pairs: Array,
    tolerance: float | Array,
    max_matvecs: int,
    key: Array,
) -> tuple[Array, Array, Array, Array]:
    hessian = operator(net, params, x, output_index)
    owner = layer_of_each_coordinate(hessian, layers)
    start, spare = hessian.random(key)

    def norm(pair: Array) -> tuple[Array, Array, Array, Array]:
        row, column = owner == pair[0], owner == pair[1]
        within = row | column

        def matvec(v: Array) -> Array:
            once = jnp.where(row, hessian.matvec(jnp.where(column, v, 0)), 0)
            other = lax.cond(
                pair[0] == pair[1],
                jnp.zeros_like,
                lambda v: jnp.where(column, hessian.matvec(jnp.where(row, v, 0)), 0),
                v,
            )
            return once + other

        found = lanczos_extreme(
            matvec,
            jnp.where(within, start, 0),
            spare,
            max_steps=min(max_matvecs, hessian.dimension),
            tolerance=tolerance,
            project=lambda v: jnp.where(within, hessian.project(v), 0),
        )
        return jnp.abs(found.values[0]), found.residuals[0], found.converged, found.num_steps

    return lax.map(norm, pairs)


def layer_of_each_coordinate(hessian: Operator, layers: tuple[str, ...]) -> Int[Array, " d"]:
    """Index into ``layers`` of the layer that owns each entry of a flat vector of the operator, (d,)."""
    owners: list[Array] = []
    for name, moved in sorted(hessian.unravel(hessian.zero).items()):
        at = next(at for at, layer in enumerate(layers) if name.startswith(f"[{layer!r}]"))  # ['layer']['weight']
        owners += [jnp.full(leaf.size, at) for leaf in jax.tree.leaves(moved)]
    return jnp.concatenate(owners)
