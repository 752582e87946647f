"""A function of parameters and inputs, traced: its layers, their views, and its tangent kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, subjaxprs
from jaxtyping import Float, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures._contractions import gram
from ntk_core.traced._evaluate import Changes, evaluate
from ntk_core.traced._layers import layer_kernel, sides_of, sorted_into_layers, wide
from ntk_core.traced._positions import indices, positions_of, z_of
from ntk_core.traced._uses import Use, find_uses

Apply = Callable[[Any, Array], Array]


class TracedViews(NamedTuple):
    """What is seen of a batch of n rows.

    Attributes:
        outputs: f, (n, C).
        inputs: a of each use of a layer, (n, *scans, *a).
        cotangents: ∂f_c(x_i)/∂z of each use, (C, n, *scans, *z).
        jacobians: ∂f_c(x_i)/∂w of each parameter that is no layer, (n, C, size).
    """

    outputs: Array
    inputs: dict[str, Array]
    cotangents: dict[str, Array]
    jacobians: dict[str, Array]


class Program:
    """``apply(params, x) -> (n, C)`` with its layers, as it was when it was traced; static under ``jax.jit``.

    Attributes:
        single: the program for a batch of one row.
        closed: the program of that row.
        layers: parts of parameters that only multiply.
        others: moving parameters that are used otherwise, by number.
        names: of all moving parameters, by number.
        escapes: of each that is no layer, the operations that say so.
        num_outputs: C.
        roughest: of all types that the program computes in the one that rounds most.
        kept: what checks found, by what they are about.
        masks: of parameters with removed entries, by name, the number of the leaf of those that move.

    >>> import jax.numpy as jnp
    >>> from ntk_core.traced import traced
    >>> program = traced(lambda p, x: jnp.tanh(x @ p["w"]), {"w": jnp.ones((3, 2))}, jnp.ones((5, 3)))
    >>> program.num_outputs, list(program.names.values())
    (2, ["['w']"])
    """

    def __init__(
        self,
        single: ClosedJaxpr,
        structure: Any,
        avals: Sequence[Any],
        moving: Sequence[bool],
        row: Any,
        masks: Mapping[str, int] = MappingProxyType({}),
    ):
        self.single, self._structure, self._moving, self.masks = single, structure, moving, masks

        def one_row(leaves: list[Any], row: Array) -> Array:
            return jax.core.eval_jaxpr(single.jaxpr, single.consts, *leaves, row[None])[0][0]

        with jax.default_matmul_precision("highest"):  # which equations remember
            self.closed = jax.make_jaxpr(one_row)(list(avals), row)
            if any(eqn.primitive.name == "while" for eqn in _equations(self.closed.jaxpr)):
                _check_reversible(one_row, avals, moving, row)
        paths = jax.tree_util.tree_flatten_with_path(jax.tree.unflatten(structure, list(range(len(avals)))))[0]
        self.names = {
            at: jax.tree_util.keystr(path) or "params" for (path, at), moves in zip(paths, moving, strict=True) if moves
        }
        found = find_uses(self.closed, list(self.names))
        layers, self.escapes = sorted_into_layers(found, self.names, [aval.dtype for aval in avals])
        self.layers = tuple(layers)
        self.others = tuple(leaf for leaf in self.names if leaf in self.escapes)
        self.uses: dict[str, Use] = {use.name: use for layer in layers for use in layer.uses}
        (output,) = self.closed.out_avals
        self.num_outputs = output.shape[0] if len(output.shape) == 1 else 0
        self.roughest = max(_types(self.closed.jaxpr), key=lambda dtype: float(jnp.finfo(dtype).eps))
        self.avals = tuple(avals)
        self.kept: dict[str, Any] = {}

    @property
    def epsilon(self) -> float:
        """Relative rounding of its numbers."""
        return float(jnp.finfo(self.roughest).eps)

    def __call__(self, params: Any, x: Array) -> Array:
        """Outputs (n, C), row by row."""
        leaves = self.leaves(params)
        return jax.vmap(lambda row: self.row(leaves, row))(x)

    def row(self, leaves: Sequence[Any], row: Array) -> Array:
        """Outputs (C,) of one row."""
        (outputs,) = jax.core.eval_jaxpr(self.closed.jaxpr, self.closed.consts, *leaves, row)
        return jnp.asarray(outputs)

    def leaves(self, params: Any) -> list[Any]:
        """All parameters in their order."""
        leaves = self._structure.flatten_up_to(params)
        return [jnp.asarray(leaf) if moves else leaf for leaf, moves in zip(leaves, self._moving, strict=True)]

    def run(self, leaves: Sequence[Any], row: Array, touch: Any, belongings: Any, threaded: Any) -> tuple[Array, Any]:
        """(outputs (C,) of one row, inputs of all uses), see :func:`ntk_core.traced._evaluate.evaluate`."""
        changes = Changes({use.site: use for use in self.uses.values()}, touch, belongings, threaded)
        (outputs,), seen = evaluate(self.closed.jaxpr, self.closed.consts, [*leaves, row], changes)
        return outputs, seen

    def steady(self, leaves: Sequence[Any], row: Array, taps: Mapping[str, Array] = MappingProxyType({})) -> Any:
        """(outputs (C,) of one row, inputs of all uses) with ``taps`` added to z of some uses.

        The derivative of a look-up outside its table is 0 in forward mode too. JAX gives it to the nearest row there,
        and to none in reverse mode, where ids are promised to lie inside.
        """
        look_ups: dict[str, Any] = {name: () for name, use in self.uses.items() if use.kind == "look-up"}

        def touch(use: Use, a: Array, z: Array, tap: Any) -> Array:
            if use.name in taps:
                return z + tap
            reads = z_of(use, jnp.broadcast_to(indices(use, a), positions_of(use, z).shape)) < use.shapes[1][0]
            return jnp.where(reads, z, jax.lax.stop_gradient(z))

        return self.run(leaves, row, touch, {**look_ups, **taps}, lambda use, level: True)

    def row_views(self, leaves: Sequence[Any], row: Array, seed: Array) -> tuple[Array, Any, Any, Any]:
        """Outputs, inputs, cotangents and Jacobians of one row, for the seed (C,) of a backward pass."""
        taps = {name: jnp.zeros((*use.lengths, *use.shapes[2]), use.dtype) for name, use in self.uses.items()}
        others = {at: leaves[at] for at in self.others}

        def tapped(taps: Any, others: Any) -> tuple[Array, Any]:
            values = [others.get(at, leaf) for at, leaf in enumerate(leaves)]
            return self.run(values, row, lambda use, a, z, tap: z + tap, taps, lambda use, level: True)

        outputs, pull, seen = jax.vjp(tapped, taps, others, has_aux=True)
        cotangents, jacobians = pull(seed.astype(outputs.dtype))
        return outputs, seen, cotangents, {self.names[at]: each.ravel() for at, each in jacobians.items()}

    def views(self, leaves: Sequence[Any], x: Shaped[Array, "n ..."]) -> TracedViews:
        """One forward pass, and one backward pass for each output."""
        with jax.default_matmul_precision("highest"):
            rows = jax.vmap(self.row_views, (None, 0, None))
            each_output = jax.vmap(rows, (None, None, 0), (None, None, 0, 1))  # outside: (C, n, ...) without transposes
            return TracedViews(*each_output(list(leaves), x, jnp.eye(self.num_outputs)))

    def kernels(self, views1: TracedViews, views2: TracedViews) -> dict[str, Float[Array, "n1 n2 C C"]]:
        """The part of each layer and of each other parameter; one object twice for a batch with itself."""
        same = views2 is views1
        parts: dict[str, Array] = {}
        with jax.default_matmul_precision("highest"):
            for layer in self.layers:
                left, looked_up = sides_of(layer, views1.inputs, views1.cotangents)
                right = left if same else sides_of(layer, views2.inputs, views2.cotangents)[0]
                parts[layer.name] = jnp.transpose(layer_kernel(layer, left, right, looked_up), (1, 3, 0, 2))
            for name, jacobian in views1.jacobians.items():
                jacobian = jacobian.astype(wide(jacobian.dtype))
                other = jacobian if same else views2.jacobians[name].astype(jacobian.dtype)
                products = gram(jacobian, other)  # (n1, C, n2, C)
                parts[name] = jnp.transpose(products, (0, 2, 1, 3))
        return parts

    def row_bytes(self) -> int:
        """Bytes of the views of one row, from shapes."""
        total: int = sum(self.num_outputs * self.avals[at].size * self.avals[at].dtype.itemsize for at in self.others)
        for use in self.uses.values():
            a, _, z = map(math.prod, use.shapes)
            total += math.prod(use.lengths) * (a + self.num_outputs * z) * wide(use.dtype).itemsize
        return total


def _check_reversible(one_row: Apply, avals: Sequence[Any], moving: Sequence[bool], row: Any) -> None:
    """Refuse loops through which JAX has no gradient."""

    def gradient(leaves: list[Any], row: Array) -> Any:
        own = [leaf for leaf, moves in zip(leaves, moving, strict=True) if moves]

        def value(own: list[Any]) -> Array:
            new = iter(own)
            values = [next(new) if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)]
            return jnp.sum(one_row(values, row).real)

        return jax.grad(value)(own)

    try:
        jax.eval_shape(gradient, list(avals), row)
    except ValueError as error:
        raise InvalidInput(
            "net",
            "parameters inside a while_loop, which has no gradient",
            "jax.lax.scan, or fori_loop with a known number of steps",
        ) from error


def _types(jaxpr: Jaxpr) -> Iterator[Any]:
    """Of all inexact numbers in a program, those of its calls included."""
    for atom in (*jaxpr.invars, *(var for eqn in _equations(jaxpr) for var in eqn.outvars)):
        dtype = getattr(atom.aval, "dtype", int)
        if jnp.issubdtype(dtype, jnp.inexact):
            yield dtype


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    yield from jaxpr.eqns
    for inner in subjaxprs(jaxpr):
        yield from _equations(inner)


@partial(jax.jit, static_argnums=0)
def views_of(program: Program, leaves: list[Any], x: Array) -> TracedViews:
    return program.views(leaves, x)


@partial(jax.jit, static_argnums=(0, 1))
def kernels_of(program: Program, per_layer: bool, left: TracedViews, right: TracedViews | None) -> Any:
    """The kernel, or its parts."""
    parts = program.kernels(left, left if right is None else right)
    return parts if per_layer else jnp.asarray(sum(parts.values()))


@partial(jax.jit, static_argnums=(0, 1))
def whole_kernels(program: Program, per_layer: bool, leaves: list[Any], x1: Array, x2: Array | None) -> Any:
    left = program.views(leaves, x1)
    return kernels_of(program, per_layer, left, None if x2 is None else program.views(leaves, x2))
