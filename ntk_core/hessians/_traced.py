"""The small space of a traced program's Hessian: that of :mod:`_restriction`, block by block of each layer.

All positions of a layer share one matrix W, so the range of the Hessian lies in {A U + V Dᵀ} with bases A of everything
that meets the rows of W and D of everything that meets its columns; uses of Wᵀ bring cotangents to A and inputs to D.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from ntk_core.errors import InvalidInput
from ntk_core.kernels import as_it_is
from ntk_core.networks.architectures import Network
from ntk_core.networks.sizes import small_space_pays
from ntk_core.traced import (
    Program,
    TracedLayer,
    TracingDisagrees,
    checked,
    compared_once,
    features_at,
    quickly,
    sides_of,
    wide,
    z_of,
)

Coordinates = dict[str, dict[str, Array]]


class Bases(NamedTuple):
    """Orthonormal columns in each block: (blocks, fan_in, r_a) and (blocks, num_features, r_δ)."""

    inputs: Array
    cotangents: Array


class TracedSpace(NamedTuple):
    """Bases of the layers that gain from them, and zero coordinates of all that moves."""

    bases: dict[str, Bases]
    zero: Coordinates


def space(program: Program, leaves: list[Any], x: Array, output_index: int | Array) -> TracedSpace:
    """The space around ``leaves`` for one output and one row ``x``."""
    seed = jax.nn.one_hot(jnp.asarray([output_index]), program.num_outputs)
    _, inputs, cotangents, _ = program.row_views(leaves, x, seed)
    inputs = {name: a[None] for name, a in inputs.items()}
    cotangents = {name: d[:, None] for name, d in cotangents.items()}
    bases: dict[str, Bases] = {}
    zero: Coordinates = {
        program.names[at]: {"whole": jnp.zeros(leaves[at].shape, wide(leaves[at].dtype))} for at in program.others
    }
    for layer in program.layers:
        blocks, fan_in, num_features = layer.sizes
        dtype = layer.dtype
        if not small_space_pays(layer.positions(), fan_in, num_features):
            zero[layer.name] = {"weight": jnp.zeros((blocks, fan_in, num_features), dtype)}
            continue
        met = _met(layer, inputs, cotangents)
        bases[layer.name] = Bases(*(jnp.linalg.qr(jnp.swapaxes(each, 1, 2).astype(dtype))[0] for each in met))
        a, d = bases[layer.name]
        zero[layer.name] = {
            "along_inputs": jnp.zeros((blocks, a.shape[-1], num_features), dtype),
            "along_cotangents": jnp.zeros((blocks, fan_in, d.shape[-1]), dtype),
        }
    return TracedSpace(bases, zero)


def _met(layer: TracedLayer, inputs: dict[str, Array], cotangents: dict[str, Array]) -> tuple[Array, Array]:
    """What meets the rows and the columns of a layer's matrices, (blocks, positions, fan_in or num_features)."""
    (straight, flipped), _ = sides_of(layer, inputs, cotangents, indexed=False)
    rows, columns = [], []
    if straight is not None:
        rows.append(straight.inputs[:, 0])
        columns.append(straight.cotangents[:, 0, 0])
    if flipped is not None:
        rows.append(flipped.cotangents[:, 0, 0])
        columns.append(flipped.inputs[:, 0])
    return jnp.concatenate(rows, 1), jnp.concatenate(columns, 1)


def displaced(program: Program, leaves: list[Any], small: TracedSpace, coordinates: Coordinates, x: Array) -> Array:
    """f(w0 + direction; x), (C,), without forming a weight."""
    values = list(leaves)
    for at in program.others:
        values[at] = (values[at] + coordinates[program.names[at]]["whole"]).astype(values[at].dtype)
    belongings, flips = {}, {}
    for layer in program.layers:
        blocks = layer.sizes[0]
        for use, flipped in zip(layer.uses, layer.flipped, strict=True):
            stacked = [length for length, axis in zip(use.lengths, use.view.levels, strict=True) if axis is not None]
            own = int(blocks // np.prod(stacked, dtype=int))
            belongings[use.name] = jax.tree.map(
                lambda each, front=(*stacked, own): each.reshape(*front, *each.shape[1:]),
                (coordinates[layer.name], small.bases.get(layer.name)),
            )
            flips[use.name] = flipped

    def touch(use: Any, a: Array, z: Array, own: Any) -> Array:
        moved, bases = own
        gain = _gain(features_at(use, a).astype(wide(a.dtype)), moved, bases, flips[use.name])
        return z + z_of(use, gain).astype(z.dtype)

    outputs, _ = program.run(values, x, touch, belongings, lambda use, level: use.view.levels[level] is not None)
    return outputs


def _gain(features: Array, moved: dict[str, Array], bases: Bases | None, flipped: bool) -> Array:
    """features · Δ, or features · Δᵀ, of Δ = A U + V Dᵀ, in each block."""
    product = partial(jnp.einsum, "bpk,bfk->bpf" if flipped else "bpk,bkf->bpf")
    if bases is None:
        return product(features, moved["weight"])
    chains = ((bases.inputs, moved["along_inputs"]), (moved["along_cotangents"], jnp.swapaxes(bases.cotangents, 1, 2)))
    return sum(
        product(product(features, two), one) if flipped else product(product(features, one), two) for one, two in chains
    )  # type: ignore[return-value]


def projected(small: TracedSpace, coordinates: Coordinates) -> Coordinates:
    """The nearest coordinates that obey Aᵀ V = 0."""
    result = {name: dict(moved) for name, moved in coordinates.items()}
    for name, bases in small.bases.items():
        v = coordinates[name]["along_cotangents"]
        result[name]["along_cotangents"] = v - bases.inputs @ (jnp.swapaxes(bases.inputs, 1, 2) @ v)
    return result


def lifted(program: Program, small: TracedSpace, coordinates: Coordinates, leaves: list[Any]) -> list[Any]:
    """The direction itself, of the size of the parameters; those that do not move stand as they are."""
    found = {at: jnp.zeros(leaves[at].shape, wide(leaves[at].dtype)) for at in program.names}
    for at in program.others:
        found[at] = coordinates[program.names[at]]["whole"]
    for layer in program.layers:
        moved, bases = coordinates[layer.name], small.bases.get(layer.name)
        if bases is None:
            weight = moved["weight"]
        else:
            weight = bases.inputs @ moved["along_inputs"] + moved["along_cotangents"] @ jnp.swapaxes(
                bases.cotangents, 1, 2
            )
        # Not ``.at[box].set``: XLA aborts on a scatter of the whole array before a convolution's reversed kernel
        # (docs/decisions/0005-hessian-norms.md).
        starts = [low for low, _ in layer.uses[0].view.box]
        found[layer.leaf] = jax.lax.dynamic_update_slice(found[layer.leaf], _in_place(layer, weight), starts)
    return [found.get(at, leaf) for at, leaf in enumerate(leaves)]


def _in_place(layer: TracedLayer, weight: Array) -> Array:
    """(blocks, fan_in, num_features) as the part of the parameter that it is."""
    blocks, rows, columns = layer.axes
    view, groups = layer.uses[0].view, layer.uses[0].groups
    sizes = [[size for _, _, size in axes] for axes in (blocks, rows, columns)]
    weight = weight.reshape(*sizes[0], groups, *sizes[1], weight.shape[-1])
    weight = jnp.moveaxis(weight, len(blocks), -2).reshape(*sizes[0], *sizes[1], *sizes[2])
    atoms = [*blocks, *rows, *columns]
    order = sorted(range(len(atoms)), key=lambda at: (atoms[at][0], -atoms[at][1]))
    return weight.transpose(order).reshape([high - low for low, high in view.box])


def dimension(small: TracedSpace) -> int:
    """An upper bound of the dimension of the space, from shapes."""
    total = sum(each.size for each in jax.tree.leaves(small.zero))
    for bases in small.bases.values():
        blocks, _, rank = bases.inputs.shape
        total -= blocks * rank * bases.cotangents.shape[-1]
    return total


class Parts(NamedTuple):
    """What an operator is made of: products, projection, coordinates of a flat vector, zero, dimension."""

    matvec: Callable[[Array], Array]
    project: Callable[[Array], Array]
    unravel: Callable[[Array], Any]
    zero: Array
    dimension: int


def operator_parts(program: Program, params: Any, x: Array, output_index: int | Array) -> Parts:
    """The Hessian of one output for one row ``x`` on its small space."""
    leaves = program.leaves(params)
    small = space(program, leaves, x, output_index)
    zero, unravel = ravel_pytree(small.zero)

    def value(flat: Array) -> Array:
        return displaced(program, leaves, small, unravel(flat), x)[output_index]

    def project(flat: Array) -> Array:
        return ravel_pytree(projected(small, unravel(flat)))[0]

    _, tangent = jax.linearize(jax.grad(value), zero)
    return Parts(lambda v: project(tangent(v)), project, unravel, zero, dimension(small))


def written_out(program: Program, params: Any, x: Array, output_index: int | Array, coordinates: Coordinates) -> Any:
    """A direction as a tree like ``params``."""
    leaves = program.leaves(params)
    full = lifted(program, space(program, leaves, x, output_index), coordinates, leaves)
    return jax.tree.unflatten(jax.tree.structure(params), full)


def with_layers(net: Any, params: Any, x: Array) -> Any:
    """The traced program of a callable; one that cannot be traced is compiled at every call.

    Before its first use a product with the Hessian of layers is compared with a plain one.

    Raises:
        InvalidInput: where rows of a batch meet each other.
        TracingDisagrees: where the kernel or the Hessian is not that of plain derivatives.
    """
    if isinstance(net, Network):
        return net
    try:
        program = checked(net, params, jnp.asarray(x)[None])
    except InvalidInput:
        raise
    except (TypeError, ValueError):  # parameters and x do not fit, which is said elsewhere
        return net
    if program is None:
        return as_it_is(net)
    if program.layers and not compared_once(program, "hessian", _compared, params, jnp.asarray(x)[None]):
        return as_it_is(net)
    return program


def _compared(program: Program, params: Any, rows: Array) -> float:
    """How far ‖H d‖ and ⟨d, H d⟩ are from plain ones, for one random direction d of the space.

    What of H d lay outside of the space would be missing from its length.
    """
    eps = program.epsilon
    with jax.default_matmul_precision("highest"):
        inside, outside, along, beside, slack = (float(each) for each in quickly(_products)(program, params, rows[0]))
    largest = max(inside, outside)
    difference = max(abs(inside - outside), abs(along - beside))
    if not difference <= 10 * eps**0.5 * largest + 10 * eps * slack and np.isfinite(outside):
        raise TracingDisagrees(
            f"A product with the Hessian of {len(program.layers)} traced layers differs from a plain one by "
            f"{difference:.1e} of {largest:.1e}. Please report the model."
        )
    return difference / largest if largest else 0.0


def _products(program: Program, params: Any, x: Array) -> tuple[Array, ...]:
    """(‖H d‖ in the space, plainly; ⟨d, H d⟩ / ‖d‖ in the space, plainly; ‖d‖ ‖∇f‖, by which rounding is measured)."""
    parts = operator_parts(program, params, x, 0)
    start = parts.project(jax.random.normal(jax.random.key(0), parts.zero.shape, parts.zero.dtype))
    leaves, places = program.leaves(params), list(program.names)
    direction = jax.tree.leaves(written_out(program, params, x, 0, parts.unravel(start)))

    def value(moving: list[Array]) -> Array:
        values = list(leaves)
        for at, leaf in zip(places, moving, strict=True):
            values[at] = leaf
        return program.steady(values, x)[0]

    at_zero = [leaves[at] for at in places]
    along = [direction[at].astype(leaf.dtype) for at, leaf in zip(places, at_zero, strict=True)]
    slopes, product = jax.jvp(jax.grad(value), (at_zero,), (along,))
    inside, plain, whole = parts.matvec(start), _flat(product), _flat(along)
    length = jnp.linalg.norm(start)
    slack = length * jnp.linalg.norm(_flat(slopes))
    return jnp.linalg.norm(inside), jnp.linalg.norm(plain), start @ inside / length, whole @ plain / length, slack


def _flat(leaves: list[Array]) -> Array:
    return ravel_pytree([leaf.astype(wide(leaf.dtype)) for leaf in leaves])[0]
