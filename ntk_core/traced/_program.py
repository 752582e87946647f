"""Traced functions of parameters and inputs: layers, views and tangent kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, subjaxprs
from jax.tree_util import KeyPath, PyTreeDef
from jax.typing import DTypeLike
from jaxtyping import Float, PyTree, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures import Network, output_function, output_jacobian
from ntk_core.traced._contractions import (
    Cotangents,
    FactoredCotangents,
    Patches,
    gram,
    in_stretches,
)
from ntk_core.traced._drawn import EachLeaf
from ntk_core.traced._evaluate import Changes, Threaded, Touch, evaluate
from ntk_core.traced._layers import (
    TracedLayer,
    dense_kernel,
    dense_side,
    layer_kernel,
    sides_of,
    sorted_into_layers,
    wide,
)
from ntk_core.traced._names import leaf_names
from ntk_core.traced._positions import indices, positions_of, z_of
from ntk_core.traced._same_outputs import summed_products
from ntk_core.traced._uses import Avals, Found, Use, find_uses

Apply = Callable[[PyTree, Any], Array]  # of parameters and inputs, an array or a tree
Model = Network | Apply
Rows = Array | np.ndarray
Parts = dict[str, Array]  # by name of the use or parameter
Leaves = Sequence[Any]  # parameters in order: JAX arrays, of those that do not move NumPy's, too
Outputs = tuple[Array, Parts]  # (C,) of one row, and the input of each use


class Views(NamedTuple):
    """Views of a batch of n rows.

    Attributes:
        outputs: f, (n, C).
        inputs: a of each use of a layer, (n, *scans, *a).
        cotangents: ∂f_c(x_i)/∂z of each use, (C, n, *scans, *z); factored if z is read elementwise.
        jacobians: ∂f_c(x_i)/∂w of each other parameter, (C, n, size).

    >>> from ntk_core.traced import traced
    >>> w, x = jnp.ones((3, 2)), jnp.ones((5, 3))
    >>> program = traced(lambda w, x: jnp.tanh(x @ w), w, x)
    >>> program.views(program.leaves(w), x).outputs.shape
    (5, 2)
    """

    outputs: Array
    inputs: dict[str, Array]
    cotangents: Mapping[str, Cotangents]
    jacobians: dict[str, Array]


class Stated(NamedTuple):
    """Facts that a network of this package declares about its own program.

    Attributes:
        layers: names of its layers, which contain its parameters.
        masks: number of a parameter → number of its mask.
        readers: number of a parameter whose z one layer alone reads, elementwise → number
            of that linear layer's parameter, whose result has the same weight in the
            outputs for all inputs.
        patches: number of a weight that multiplies overlapping patches → their products.
        output: the output function φ, which the program omits.
    """

    layers: tuple[str, ...] = ()
    masks: Mapping[int, int] = MappingProxyType({})
    readers: Mapping[int, int] = MappingProxyType({})
    patches: Mapping[int, Patches] = MappingProxyType({})
    output: str = "linear"


# Rows times outputs on each side of a block of the kernel: 1.4 MiB of entries in float32.
BLOCK_ROWS = 600
FUNCTION = Stated()
PLAIN = "route='plain'"  # why a parameter is no layer


class Program:
    """Traced ``apply(params, x) -> (n, C)`` with its layers; static under ``jax.jit``.

    Attributes:
        single: the program for a batch of one row.
        closed: the program of that row.
        stated: declarations of a network; empty for a function.
        moving: whether each parameter is differentiated.
        layers: parts of parameters that only multiply.
        biases: parameters only added to z of a dense layer, by number.
        others: other moving parameters, by number.
        names: of all moving parameters, by number.
        escapes: operations that prevent other parameters from being layers.
        num_outputs: C.
        roughest: the least precise type of its computations.
        kept: results of checks by name.
        only_as_given: names of checks that hold for the given numbers alone, so that
            each call repeats them.
        each_leaf: changes every leaf of packed rows, if inputs are trees; see ``_row_trees``.
        is_plain: whether its layers are ignored, see ``RestrictedFunction``.
        sizes_compared: log2 of the sizes of parameters and inputs at which kernels were compared.

    >>> import jax.numpy as jnp
    >>> from ntk_core.traced import traced
    >>> params, x = {"w": jnp.ones((3, 2))}, jnp.ones((5, 3))
    >>> program = traced(lambda p, x: jnp.tanh(x @ p["w"]), params, x)
    >>> program.num_outputs, list(program.names.values())
    (2, ['w'])
    """

    def __init__(
        self,
        single: ClosedJaxpr,
        structure: PyTreeDef,
        avals: Avals,
        moving: Sequence[bool],
        row: jax.ShapeDtypeStruct,
        stated: Stated = FUNCTION,
        *,
        is_plain: bool = False,
    ):
        self.single = single
        self._structure = structure
        self.stated = stated
        self.is_plain = is_plain
        self.moving = tuple(moving)

        def one_row(leaves: Leaves, row: Rows) -> Array:
            return jax.core.eval_jaxpr(single.jaxpr, single.consts, *leaves, row[None])[0][0]

        with jax.default_matmul_precision("highest"):  # which equations remember
            self.closed = jax.make_jaxpr(one_row)(list(avals), row)
            check_reversible(self.closed, moving)
        paths = _paths_of(structure)
        names = leaf_names(paths)
        self.names = {at: names[at] for at, moves in enumerate(moving) if moves}
        found = find_uses(self.closed, {*self.names, *stated.readers.values()}, stated.masks)
        layers, self.escapes = sorted_into_layers(found, self.names, avals, stated.masks)
        if is_plain:
            layers = []
            self.escapes = {at: {PLAIN} for at in self.names}
        self.layers = tuple(layers)
        self._groups: dict[str, str] = {}  # name of a parameter or of its part → layer
        if stated.layers:
            # Parameters of a network are {layer: {parameter: array}}.
            self._groups = {name: paths[at][0].key for at, name in self.names.items()}
            for layer in layers:
                self._groups[layer.name] = paths[layer.leaf][0].key
        self.biases = tuple(layer.bias[0] for layer in layers if layer.bias is not None)
        escaped = [leaf for leaf in self.names if leaf in self.escapes]
        self.others = tuple(leaf for leaf in escaped if leaf not in self.biases)
        self.uses: dict[str, Use] = {use.name: use for layer in layers for use in layer.uses}
        self.readers = _readers(self.layers, found, stated.readers)
        (output,) = self.closed.out_avals
        self.num_outputs = output.shape[0] if len(output.shape) == 1 else 0
        self.roughest = roughest_type(self.closed.jaxpr)
        self.avals = tuple(avals)
        self._largest = found.largest
        self.kept: dict[str, object] = {}  # results of checks by name
        self.only_as_given: set[str] = set()  # checks that random numbers could not decide
        self.sizes_compared: list[np.ndarray] = []
        self.num_norms = 0
        self._row_bytes: dict[int, int] = {}  # by number of backward passes
        self.each_leaf: EachLeaf | None = None
        self.zero: jax.ShapeDtypeStruct | None = None
        self.dimension = 0  # of the small space, with ``zero``

    @property
    def is_structured(self) -> bool:
        """Whether its kernel comes from uses: always for networks, for functions with layers."""
        return bool(self.layers or self.stated.layers)

    @cached_property
    def part_types(self) -> frozenset[np.dtype]:
        """Types in which the parts of its layers are summed."""
        return frozenset(np.dtype(layer.dtype) for layer in self.layers)

    @property
    def epsilon(self) -> float:
        """Relative rounding of its numbers."""
        return float(jnp.finfo(self.roughest).eps)

    def __call__(self, params: PyTree, x: Rows) -> Array:
        """Outputs (n, C), row by row."""
        leaves = self.leaves(params)
        return jax.vmap(lambda row: self.row(leaves, row))(x)

    def row(self, leaves: Leaves, row: Rows) -> Array:
        """Outputs (C,) of one row."""
        (outputs,) = jax.core.eval_jaxpr(self.closed.jaxpr, self.closed.consts, *leaves, row)
        return jnp.asarray(outputs)

    def leaves(self, params: PyTree) -> list[Any]:
        """Return all parameters in order; of a network, those of its layers."""
        if self.stated.layers:
            params = {name: params[name] for name in self.stated.layers}
        pairs = zip(self._structure.flatten_up_to(params), self.moving, strict=True)
        return [
            leaf if isinstance(leaf, Array) or not moves else jnp.asarray(leaf)
            for leaf, moves in pairs
        ]

    def tree(self, leaves: Leaves) -> PyTree:
        """The inverse of :meth:`leaves`."""
        return jax.tree.unflatten(self._structure, leaves)

    def run(
        self,
        leaves: Leaves,
        row: Rows,
        touch: Touch,
        belongings: Mapping[str, PyTree],
        threaded: Threaded,
    ) -> Outputs:
        """Return (outputs (C,) of one row, inputs of all uses).

        ``taps`` are added to z of some uses.
        """
        uses = list(self.uses.values())
        for readers in self.readers.values():
            uses.extend(readers)
        by_site = {use.site: use for use in uses}
        by_tap = {use.tap: use for use in uses}
        changes = Changes(by_site, by_tap, touch, belongings, threaded)
        (outputs,), seen = evaluate(self.closed.jaxpr, self.closed.consts, [*leaves, row], changes)
        return outputs, seen

    def steady(
        self, leaves: Leaves, row: Rows, taps: Mapping[str, Array] = MappingProxyType({})
    ) -> Outputs:
        """Return (outputs (C,) of one row, inputs of all uses).

        ``taps`` are added to z of some uses.

        Out-of-range look-ups have derivative 0 in forward mode too, as in JAX's reverse mode; JAX's
        forward mode would use the nearest row.
        """
        look_ups: dict[str, PyTree] = {
            name: () for name, use in self.uses.items() if use.kind == "look-up"
        }

        def touch(use: Use, a: Array, z: Array, tap: PyTree) -> Array:
            if use.name in taps:
                return z + tap
            shape = positions_of(use, z).shape
            rows_read = z_of(use, jnp.broadcast_to(indices(use, a), shape))
            num_rows = use.shapes[1][0]
            return jnp.where(rows_read < num_rows, z, jax.lax.stop_gradient(z))

        return self.run(leaves, row, touch, {**look_ups, **taps}, lambda use, level: True)

    def row_views(
        self, leaves: Leaves, row: Rows, seed: Array, with_output: bool = False
    ) -> tuple[Array, Parts, Parts, Parts, Parts]:
        """Return what one backward pass gives of one row.

        These are outputs, inputs, slopes, cotangents and Jacobians, for the seed (C,) of the pass.

        One forward derivative along all elementwise z gives their slopes. ``with_output``
        differentiates φ(f).
        """
        factored = {} if with_output else self.readers
        readers = {use.name: use for uses in factored.values() for use in uses}
        taps = {
            name: jnp.zeros((*use.lengths, *use.shapes[2]), use.dtype)
            for name, use in (self.uses | readers).items()
        }
        moved = {name: taps.pop(name) for name in factored}
        others = {at: leaves[at] for at in self.others}

        def tapped(taps: dict[str, Array], others: dict[int, Array]) -> tuple[Array, PyTree]:
            values = [others.get(at, leaf) for at, leaf in enumerate(leaves)]

            def forward(moved: dict[str, Array]) -> PyTree:
                all_taps = {**taps, **moved}
                found = self.run(
                    values, row, lambda use, a, z, tap: z + tap, all_taps, lambda use, level: True
                )
                _, inputs = found
                read = {}  # what the readers of each z take, one after another
                for name, uses in factored.items():
                    read[name] = jnp.concatenate([inputs[use.name].ravel() for use in uses])
                return read, found

            _, slopes, (outputs, seen) = jax.jvp(
                forward, (moved,), (jax.tree.map(jnp.ones_like, moved),), has_aux=True
            )
            if with_output:
                outputs = output_function(self.stated.output)(outputs)
            return outputs, (seen, slopes)

        outputs, pull, (seen, slopes) = jax.vjp(tapped, taps, others, has_aux=True)
        cotangents, jacobians = pull(seed.astype(outputs.dtype))
        return (
            outputs,
            seen,
            slopes,
            cotangents,
            {self.names[at]: each.ravel() for at, each in jacobians.items()},
        )

    def views(
        self,
        leaves: Leaves,
        x: Shaped[Array, "n ..."],
        seeds: Float[Array, "S C"] | None = None,
        *,
        with_output: bool = False,
    ) -> Views:
        """Compute one forward pass, and one backward pass per output.

        Args:
            seeds: of the backward passes instead of the outputs, whose number S then
                replaces C in the views.
            with_output: differentiate φ(f) instead of f, if φ is not linear;
                cotangents then do not factor.
        """
        through = with_output and self.stated.output != "linear"
        with jax.default_matmul_precision("highest"):
            of_row = partial(self.row_views, with_output=through)
            rows = jax.vmap(of_row, (None, 0, None))
            # outside: (C, n, ...) without transposes
            each_output = jax.vmap(rows, (None, None, 0), (None, None, None, 0, 0))
            outputs, inputs, slopes, deltas, jacobians = each_output(
                list(leaves), x, jnp.eye(self.num_outputs) if seeds is None else seeds
            )
            cotangents: dict[str, Cotangents] = {
                name: deltas[name] for name in self.uses if name in deltas
            }
            for (
                name,
                uses,
            ) in (
                {} if through else self.readers
            ).items():  # their inputs have the same weights for all rows: use the first
                weights = [_pulled(use, leaves, deltas[use.name][:, 0]) for use in uses]
                cotangents[name] = FactoredCotangents(slopes[name], jnp.concatenate(weights, 1))
        return Views(outputs, {name: inputs[name] for name in self.uses}, cotangents, jacobians)

    def kernels(
        self, leaves: Leaves, views1: Views, views2: Views, *, summed: bool = False
    ) -> dict[str, Float[Array, "C n1 C n2"]] | dict[str, Float[Array, "n1 n2"]]:
        """Return the kernel of each layer and other parameter.

        Pass one object twice for a batch with itself.

        ``summed`` gives the sum over equal outputs, Σ_c K[c, i, c, j], without forming pairs of
        outputs.
        """
        same = views2 is views1
        parts: dict[str, Array] = {}
        with jax.default_matmul_precision("highest"):
            for layer in self.layers:
                if layer.is_dense:
                    name = layer.uses[0].name
                    mask = None if layer.mask is None else leaves[layer.mask]
                    sides = [
                        dense_side(layer, each.inputs[name], each.cotangents[name])
                        for each in (views1, views2)
                    ]
                    parts[layer.name], bias = dense_kernel(
                        layer, sides[0], sides[0 if same else 1], mask, summed=summed
                    )
                    if layer.bias is not None and bias is not None:
                        parts[self.names[layer.bias[0]]] = bias
                    continue
                left, looked_up = sides_of(layer, views1.inputs, views1.cotangents)
                right = left if same else sides_of(layer, views2.inputs, views2.cotangents)[0]
                parts[layer.name] = layer_kernel(
                    layer,
                    left,
                    right,
                    looked_up,
                    self.stated.patches.get(layer.leaf),
                    summed=summed,
                )
            for name, jacobian in views1.jacobians.items():
                jacobian = jacobian.astype(wide(jacobian.dtype))
                other = jacobian if same else views2.jacobians[name].astype(jacobian.dtype)
                parts[name] = (summed_products if summed else gram)(jacobian, other)
        return parts

    def kernel(self, leaves: Leaves, views1: Views, views2: Views) -> Float[Array, "n1 n2 C C"]:
        """Return the whole kernel of f, without φ."""
        rows = max(1, BLOCK_ROWS // self.num_outputs)
        is_large = min(_num_rows(views1), _num_rows(views2)) > 2 * rows
        if is_large and in_stretches() and self._is_cheap_in_blocks:
            return self._kernel_in_blocks(leaves, views1, views2, rows)
        parts = self.kernels(leaves, views1, views2)
        total = jnp.asarray(sum(parts.values()))  # (C, n1, C, n2)
        return jnp.transpose(total, (1, 3, 0, 2))

    @cached_property
    def _is_cheap_in_blocks(self) -> bool:
        """Whether a block of the kernel needs only products of its own rows.

        Convolutions and masks may contract Jacobians, which every block would form again.
        """
        return all(layer.is_dense and layer.mask is None for layer in self.layers)

    def _kernel_in_blocks(
        self, leaves: Leaves, views1: Views, views2: Views, size: int
    ) -> Float[Array, "n1 n2 C C"]:
        """Return the kernel from blocks that stay in a core's cache until their layers are summed.

        Of a batch with itself only the upper triangle of blocks is computed.
        """
        n1 = _num_rows(views1)
        n2 = _num_rows(views2)
        mirrored = views2 is views1
        # Slices and updates clamp the start of the last block, which repeats a few rows.
        starts = []
        for start in range(0, n1, size):
            starts += [(start, other) for other in range(start if mirrored else 0, n2, size)]

        def block(pair: Array) -> Array:
            """(C, rows, C, rows)."""
            one = _rows_of(views1, pair[0], size)
            two = _rows_of(views2, pair[1], size)
            return jnp.asarray(sum(self.kernels(leaves, one, two).values()))

        def add(kernel: Array, pair: Array) -> tuple[Array, None]:
            found = block(pair)
            upper = jnp.transpose(found, (1, 3, 0, 2))
            kernel = jax.lax.dynamic_update_slice(kernel, upper, (pair[0], pair[1], 0, 0))
            if mirrored:
                lower = jnp.transpose(found, (3, 1, 2, 0))
                kernel = jax.lax.dynamic_update_slice(kernel, lower, (pair[1], pair[0], 0, 0))
            return kernel, None

        pairs = jnp.array(starts)
        dtype = jax.eval_shape(block, pairs[0]).dtype
        empty = jnp.zeros((n1, n2, self.num_outputs, self.num_outputs), dtype)
        kernel, _ = jax.lax.scan(add, empty, pairs)
        return kernel

    def layer_of(self, name: str) -> str:
        """Return the layer of a network's parameter (part); for a function, the part itself."""
        return self._groups.get(name, name)

    def layer_kernels(self, leaves: Leaves, views1: Views, views2: Views) -> dict[str, Array]:
        """Return the kernel of f, (n1, n2, C, C), by layer.

        Functions have it by parameter.
        """
        found: dict[str, Array] = {}
        for name, part in self.kernels(leaves, views1, views2).items():
            group = self.layer_of(name)
            kernel = jnp.transpose(part, (1, 3, 0, 2))
            found[group] = found[group] + kernel if group in found else kernel
        return found

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of one row's views and temporaries, from shapes."""
        return self.row_bytes_of(self.num_outputs)

    @cached_property
    def largest_use(self) -> int:
        """Entries of the largest z of one row."""
        sizes = (math.prod((*use.lengths, *use.shapes[2])) for use in self.uses.values())
        return max(sizes, default=1)

    def row_bytes_of(self, num_seeds: int) -> int:
        """Bytes of one row's views and temporaries with this number of backward passes."""
        if num_seeds in self._row_bytes:
            return self._row_bytes[num_seeds]
        total: int = sum(
            num_seeds * self.avals[at].size * self.avals[at].dtype.itemsize for at in self.others
        )
        for use in self.uses.values():
            a, _, z = map(math.prod, use.shapes)
            copies = 1 if use.name in self.readers else num_seeds
            total += math.prod(use.lengths) * (a + copies * z) * wide(use.dtype).itemsize
        total += num_seeds * self._largest * wide(self.roughest).itemsize
        self._row_bytes[num_seeds] = total
        return total


def _num_rows(views: Views) -> int:
    return len(views.outputs)


def _rows_of(views: Views, start: Array, size: int) -> Views:
    """Return views of ``size`` rows from ``start`` on."""

    def rows(each: Array, axis: int) -> Array:
        return jax.lax.dynamic_slice_in_dim(each, start, size, axis)

    cotangents: dict[str, Cotangents] = {}
    for name, each in views.cotangents.items():
        if isinstance(each, FactoredCotangents):
            cotangents[name] = each._replace(slopes=rows(each.slopes, 0))
        else:
            cotangents[name] = rows(each, 1)
    inputs = {name: rows(each, 0) for name, each in views.inputs.items()}
    jacobians = {name: rows(each, 1) for name, each in views.jacobians.items()}
    return Views(rows(views.outputs, 0), inputs, cotangents, jacobians)


def _paths_of(structure: PyTreeDef) -> list[KeyPath]:
    """Return the path of each leaf of a tree."""
    tree = jax.tree.unflatten(structure, list(range(structure.num_leaves)))
    leaves_with_paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return [path for path, _ in leaves_with_paths]


def _readers(
    layers: Sequence[TracedLayer], found: Found, stated: Mapping[int, int]
) -> dict[str, tuple[Use, ...]]:
    """Map uses of dense layers to the uses that read them.

    z is read elementwise, and then by one matrix. The uses are in order.
    """
    readers: dict[str, tuple[Use, ...]] = {}
    for layer in layers:
        if layer.leaf not in stated or not layer.is_dense or layer.mask is not None:
            continue
        uses = [use for use in found.uses.values() if use.view.leaf == stated[layer.leaf]]
        plain = all((use.kind, use.blocks) == ("product", ()) and not use.lengths for use in uses)
        if plain and sum(math.prod(use.shapes[0]) for use in uses) == layer.sizes[2]:
            readers[layer.uses[0].name] = tuple(sorted(uses, key=lambda use: use.view.box))
    return readers


def _pulled(use: Use, leaves: Leaves, deltas: Float[Array, "C ..."]) -> Float[Array, "C rows"]:
    """Return cotangents of a from those of z, for an unmodified matrix (rows, columns)."""
    part = tuple(slice(low, high) for low, high in use.view.box)
    return use.view.scale * (deltas.reshape(len(deltas), -1) @ leaves[use.view.leaf][part].T)


def check_reversible(closed: ClosedJaxpr, moving: Sequence[bool]) -> None:
    """Refuse loops without a gradient in JAX.

    The program is one of (*leaves, x), and is differentiated by the ``moving`` leaves.

    Raises:
        InvalidInput: for a ``while_loop`` around parameters.
    """
    if not any(eqn.primitive.name == "while" for eqn in _equations(closed.jaxpr)):
        return

    def gradient(given: list[Array]) -> list[Array]:
        leaves = given[:-1]

        def value(own: list[Array]) -> Array:
            new = iter(own)
            values = [
                next(new) if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)
            ]
            outputs = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *values, given[-1])[0]
            return jnp.sum(outputs.real)

        return jax.grad(value)([leaf for leaf, moves in zip(leaves, moving, strict=True) if moves])

    try:
        jax.eval_shape(gradient, closed.in_avals)
    except ValueError as error:
        raise InvalidInput(
            "net",
            "parameters inside a while_loop, which has no gradient",
            "jax.lax.scan, or fori_loop with a known number of steps",
        ) from error


# By falling precision: of numbers that a program rounds, the first type with no more bits counts.
_NARROW = (jnp.float32, jnp.float16, jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2)


def roughest_type(jaxpr: Jaxpr) -> DTypeLike:
    """Return the least precise type of the inexact numbers in a program."""
    return max(_types(jaxpr), key=lambda dtype: float(jnp.finfo(dtype).eps))


def _types(jaxpr: Jaxpr) -> Iterator[DTypeLike]:
    """Yield the types of all inexact numbers in a program, including its calls."""
    for atom in (*jaxpr.invars, *(var for eqn in _equations(jaxpr) for var in eqn.outvars)):
        dtype = getattr(atom.aval, "dtype", int)
        if jnp.issubdtype(dtype, jnp.inexact):
            yield dtype
    for eqn in _equations(jaxpr):
        if eqn.primitive.name == "reduce_precision":
            bits = eqn.params["mantissa_bits"]
            yield next((dtype for dtype in _NARROW if jnp.finfo(dtype).nmant <= bits), _NARROW[-1])


def _equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    yield from jaxpr.eqns
    for inner in subjaxprs(jaxpr):
        yield from _equations(inner)


def through_output(
    output: str,
    kernel: Float[Array, "n1 n2 C C"],
    f1: Float[Array, "n1 C"],
    f2: Float[Array, "n2 C"],
) -> Float[Array, "n1 n2 C C"]:
    """Kernel of φ(f) from the kernel of f.

    J(x_i) K(x_i, x_j) J(x_j)ᵀ with J = ∂φ/∂f, all of shape (n1, n2, C, C).

    Networks that share parameters and differ only in φ (the linear and the softmax output of Liu et
    al., Fig. 1) thus share one kernel of their pre-outputs.
    """
    if output == "linear":
        return kernel
    with jax.default_matmul_precision("highest"):
        return jnp.einsum(
            "iac,ijcd,jbd->ijab", output_jacobian(output, f1), kernel, output_jacobian(output, f2)
        )


@partial(jax.jit, static_argnums=0)
def views_of(
    program: Program, leaves: Leaves, x: Array, seeds: Float[Array, "S C"] | None = None
) -> Views:
    return program.views(leaves, x, seeds)


@partial(jax.jit, static_argnums=(0, 1))
def kernels_of(
    program: Program,
    per_layer: bool,
    leaves: Leaves,
    left: Views,
    right: Views | None,
    factors: Float[Array, " C"] | None = None,
) -> Array | Parts:
    """Return the kernel, or its parts; entries are multiplied by the factors of their outputs."""
    both = (leaves, left, left if right is None else right)
    kernels = program.layer_kernels(*both) if per_layer else program.kernel(*both)
    if factors is not None:
        # One factor after the other, since their product may be outside of the type.
        kernels = jax.tree.map(lambda kernel: kernel * factors[:, None] * factors, kernels)
    outputs = (left.outputs, both[2].outputs)
    return jax.tree.map(
        lambda kernel: through_output(program.stated.output, kernel, *outputs), kernels
    )


@partial(jax.jit, static_argnums=(0, 1))
def whole_kernels(
    program: Program,
    per_layer: bool,
    leaves: Leaves,
    x1: Array,
    x2: Array | None,
    seeds: Float[Array, "C C"] | None = None,
    factors: Float[Array, " C"] | None = None,
) -> Array | Parts:
    """Return the kernel, or its parts, of rows; ``seeds`` and ``factors`` are usually ones."""
    left = program.views(leaves, x1, seeds)
    right = None if x2 is None else program.views(leaves, x2, seeds)
    return kernels_of(program, per_layer, leaves, left, right, factors)


@partial(jax.jit, static_argnums=(0, 1), static_argnames="stretch")
def summed_kernels(
    program: Program,
    each: bool,
    leaves: Leaves,
    x1: Array,
    x2: Array | None,
    seeds: Float[Array, "S C"],
    *,
    stretch: int | None = None,
) -> Float[Array, "n1 n2"] | Float[Array, "n1 n2 S"]:
    """Return Σ_s ⟨∇(s·φ(f))(x1_i), ∇(s·φ(f))(x2_j)⟩ over seeds s, or ``each`` of its terms.

    With the unit vectors as seeds, the sum over equal outputs, or the entries of each output
    with itself. ``stretch`` is the number of seeds at a time, which bounds memory and keeps
    cotangents in a core's cache.
    """

    def of_seeds(seeds: Array) -> Array:
        left = program.views(leaves, x1, seeds, with_output=True)
        right = left if x2 is None else program.views(leaves, x2, seeds, with_output=True)
        if each:
            return _each_output(program, leaves, left, right)
        return jnp.asarray(sum(program.kernels(leaves, left, right, summed=True).values()))

    if stretch is None or stretch >= len(seeds):
        return of_seeds(seeds)
    num_stretches = math.ceil(len(seeds) / stretch)
    # Seeds of zeros have the kernel 0.
    padded = jnp.pad(seeds, [(0, num_stretches * stretch - len(seeds)), (0, 0)])
    parts = padded.reshape(num_stretches, stretch, -1)
    if each:
        found = jax.lax.map(of_seeds, parts)  # (num_stretches, n1, n2, stretch)
        found = jnp.moveaxis(found, 0, 2)
        return found.reshape(*found.shape[:2], -1)[:, :, : len(seeds)]
    zero = jax.eval_shape(of_seeds, parts[0])
    total, _ = jax.lax.scan(
        lambda total, part: (total + of_seeds(part), None),
        jnp.zeros(zero.shape, zero.dtype),
        parts,
    )
    return jnp.asarray(total)


def _each_output(
    program: Program, leaves: Leaves, left: Views, right: Views
) -> Float[Array, "n1 n2 C"]:
    """Return K[i, j, c, c]: the kernel of each output alone."""

    def of_one(one: Views, two: Views | None) -> Array:
        first = _with_one_output(one)
        second = first if two is None else _with_one_output(two)
        return jnp.asarray(sum(program.kernels(leaves, first, second, summed=True).values()))

    same = right is left
    axes = _output_axes(left)
    found: Array = jax.vmap(of_one, (axes, None if same else axes), 2)(
        left, None if same else right
    )
    return found


def _output_axes(views: Views) -> Any:
    """Return the axis of the outputs in each array of views; None without one."""
    cotangents: dict[str, Any] = {}
    for name, each in views.cotangents.items():
        factored: Any = FactoredCotangents
        if isinstance(each, FactoredCotangents):
            cotangents[name] = factored(slopes=None, weights=0)
        else:
            cotangents[name] = 0
    whole_views: Any = Views
    return whole_views(outputs=None, inputs=None, cotangents=cotangents, jacobians=0)


def _with_one_output(views: Views) -> Views:
    """Return views of one output, whose cotangents lack their first axis, in the usual form."""
    cotangents: dict[str, Cotangents] = {}
    for name, each in views.cotangents.items():
        if isinstance(each, FactoredCotangents):
            cotangents[name] = each._replace(weights=each.weights[None])
        else:
            cotangents[name] = each[None]
    jacobians = {name: each[None] for name, each in views.jacobians.items()}
    return views._replace(cotangents=cotangents, jacobians=jacobians)
