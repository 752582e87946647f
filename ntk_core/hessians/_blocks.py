"""Norms of the layer × layer blocks of a Hessian."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Unpack, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree
from jaxtyping import Int, Key, PyTree, Shaped

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.hessians._compiled import with_layers
from ntk_core.hessians._each_output import BlockOptions, for_each_output
from ntk_core.hessians._lanczos import lanczos_extreme
from ntk_core.hessians._norm import MAX_MATVECS, checked_request
from ntk_core.hessians._operator import (
    Operator,
    operator,
    output_scalar,
    refuse_asymmetric_output,
)
from ntk_core.hessians._range import refuse_out_of_range
from ntk_core.networks.architectures import Network
from ntk_core.traced import (
    Inputs,
    Model,
    Program,
    Route,
    Trainable,
    accepted_input,
    program_of_network,
    restricted,
    with_usual_settings,
)


@dataclass(frozen=True, repr=False)
class BlockNorms:
    """Spectral norms ‖H_{l,l'}‖ = ‖∂²φ_a/∂w_l ∂w_l'‖ of all pairs of trained layers.

    Attributes:
        layers: names of the trained layers, in the order of the axes (the forward pass); parameters
            of a function in tree order.
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

    def __repr__(self) -> str:
        first, second = np.unravel_index(self.values.argmax(), self.values.shape)
        largest = (
            f"largest {self.values.max():.4g} at ({self.layers[first]}, {self.layers[second]})"
        )
        missing = int((~self.converged).sum())
        verdict = f"{missing} entries not converged" if missing else "converged"
        return (
            f"BlockNorms({len(self.layers)} layers; {largest}; {verdict} "
            f"in {self.num_matvecs} products)"
        )


@overload
def hessian_block_norms(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: int = 0,
    **options: Unpack[BlockOptions],
) -> BlockNorms: ...
@overload
def hessian_block_norms(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: None,
    **options: Unpack[BlockOptions],
) -> list[BlockNorms]: ...
@with_usual_settings
def hessian_block_norms(
    net: Model,
    params: PyTree,
    x: Inputs,
    output_index: int | None = 0,
    *,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    key: Key[Array, ""] | None = None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> BlockNorms | list[BlockNorms]:
    """Return the norm of every layer block of the Hessian.

    ‖H_{l,l'}‖ for every pair of trained layers of a network, or of parameters of a
    function, for one input.

    An off-diagonal block B gives the symmetric [[0, B], [Bᵀ, 0]], whose eigenvalues are ± the
    singular values of B. ‖H‖ <= Σ_{l,l'} ‖H_{l,l'}‖ (Lemma E.1).

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> hessian_block_norms(net, params, x).values.shape  # two layers
    (2, 2)

    Args:
        net, params, x, output_index, tolerance, max_matvecs, key, trainable, route: as for
            :func:`hessian_norm`.

    Returns:
        Norms of all blocks, by layers; for ``output_index=None`` a list with those of each output.

    Raises:
        InvalidInput, TooLarge, TracingDisagrees: as ``hessian_norm``; also for a callable
            that cannot be traced.

    Source: Liu, Zhu & Belkin 2020, Lemma E.1.
    """
    if output_index is None:
        return for_each_output(
            hessian_block_norms,
            net,
            params,
            x,
            tolerance=tolerance,
            max_matvecs=max_matvecs,
            key=key,
            trainable=trainable,
            route=route,
        )
    given = net
    net, one, num_outputs = accepted_input(restricted(net, params, trainable, route), params, x)
    net = with_layers(net, params, one)
    relative, key = checked_request(
        net, params, one, num_outputs, output_index, tolerance, max_matvecs, key
    )
    if not isinstance(net, Network | Program):
        raise InvalidInput("net", kind_of(given), "a network, or a function that can be traced")
    program, layers = _program_and_layers(net, params, one)
    refuse_asymmetric_output(net, params, one, num_outputs, output_index)
    rows, columns = np.triu_indices(len(layers))  # pairs l <= l'
    pairs = jnp.stack([rows, columns], 1)
    owner_of_part = owners(program, layers)
    with jax.default_matmul_precision("highest"):
        found = _all_blocks(
            net, params, one, output_index, owner_of_part, pairs, relative, max_matvecs, key
        )
    values, residuals, converged, steps = (np.asarray(part) for part in found)
    refuse_out_of_range(net, params, one, output_index, values)

    products_of_a_step = np.where(rows == columns, 1, 2)
    return BlockNorms(
        layers=layers,
        values=_symmetric(values, len(layers)),
        residuals=_symmetric(residuals, len(layers)),
        converged=_symmetric(converged, len(layers)),
        num_matvecs=int(np.sum(steps * products_of_a_step)),
    )


def _program_and_layers(
    net: Network | Program, params: PyTree, one: Array
) -> tuple[Program, tuple[str, ...]]:
    """Return the traced program, and the names of the layers or parameters that have blocks."""
    if isinstance(net, Program):
        return net, tuple(net.names.values())
    names = net.layer_input_shapes(one.shape)
    trained = tuple(name for name in names if net.layers[name].trainable)
    return program_of_network(net, params, one), trained


def _symmetric(
    entries: Shaped[np.ndarray, " pairs"], num_layers: int
) -> Shaped[np.ndarray, "layers layers"]:
    """Return the matrix with these entries for the pairs l <= l'."""
    rows, columns = np.triu_indices(num_layers)
    square = np.zeros((num_layers, num_layers), entries.dtype)
    square[rows, columns] = entries
    square[columns, rows] = entries
    return square


@partial(jax.jit, static_argnums=(0, 4, 7))
def _all_blocks(
    net: Network | Program,
    params: PyTree,
    x: Array,
    output_index: int | Array,
    owners: tuple[tuple[str, int], ...],
    pairs: Array,
    tolerance: float | Array,
    max_matvecs: int,
    key: Array,
) -> tuple[Array, Array, Array, Array]:
    hessian = operator(net, params, x, output_scalar(net, output_index))
    owner = layer_of_each_coordinate(hessian, dict(owners))
    start, spare = hessian.random(key)

    def norm(pair: Array) -> tuple[Array, Array, Array, Array]:
        row = owner == pair[0]
        column = owner == pair[1]
        within = row | column

        def matvec(v: Array) -> Array:
            """Multiply by [[0, B], [Bᵀ, 0]], or by a block of the diagonal."""
            times_block = jnp.where(row, hessian.matvec(jnp.where(column, v, 0)), 0)

            def times_transpose(v: Array) -> Array:
                return jnp.where(column, hessian.matvec(jnp.where(row, v, 0)), 0)

            is_diagonal = pair[0] == pair[1]
            return times_block + lax.cond(is_diagonal, jnp.zeros_like, times_transpose, v)

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


def owners(program: Program, layers: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return (coordinate name, index of its layer or parameter in ``layers``)."""
    # Coordinates belong to whole parameters, or to parts of them that are layers.
    parameter_of_part = {name: name for name in program.names.values()}
    for layer in program.layers:
        parameter_of_part[layer.name] = program.names[layer.leaf]
    found = []
    for part, name in parameter_of_part.items():
        found.append((part, layers.index(program.layer_of(name))))
    return tuple(found)


def layer_of_each_coordinate(hessian: Operator, owners: Mapping[str, int]) -> Int[Array, " d"]:
    """Return the owner of each entry of a flat vector, (d,)."""
    owner_tree = {}
    for part, moved in hessian.unravel(hessian.zero).items():
        filled = partial(_filled, owners[part])
        owner_tree[part] = jax.tree.map(filled, moved)
    flat, _ = ravel_pytree(owner_tree)
    return flat


def _filled(number: int, like: Array) -> Array:
    return jnp.full(like.shape, number)
