"""Inputs that are trees of arrays.

Dictionaries and tuples whose leaves share their leading axis, the rows.

One array holds them all: row i is the bits of every leaf's row i, side by side. So the rest of the
package slices, blocks and streams rows of an array, and only the model sees the tree. Bits are
exact for every type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.networks.architectures import Network
from ntk_core.real_numbers import refuse_masked
from ntk_core.traced._program import Apply, Model, Rows
from ntk_core.traced._wrappers import inner

# One array, or a tree of arrays.
Inputs: TypeAlias = ArrayLike | Mapping[Any, Any] | tuple[Any, ...]
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # by bytes of an entry


@dataclass(frozen=True)
class Layout:
    """Places of the leaves of a tree in a packed row.

    Attributes:
        structure: of the tree.
        names: of the leaves, such as ``ids``.
        shapes: of one row of each leaf.
        dtypes: of each leaf.
    """

    structure: PyTreeDef
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype, ...]

    @property
    def word(self) -> np.dtype:
        """Type of a packed entry, as wide as the widest leaf."""
        return np.dtype(BITS[max(4, *(dtype.itemsize for dtype in self.dtypes))])

    @property
    def sizes(self) -> list[int]:
        """Entries of one row of each leaf."""
        return [math.prod(shape) for shape in self.shapes]

    def __str__(self) -> str:
        parts = []
        for name, shape, dtype in zip(self.names, self.shapes, self.dtypes, strict=True):
            sizes = ", ".join(map(str, ("n", *shape)))
            parts.append(f"{name} ({sizes}) of {dtype}")
        return "; ".join(parts)

    def packed(self, leaves: Sequence[Rows]) -> Rows:
        """Return (n, size) of leaves (n, *shape)."""
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            columns = []
            for leaf, dtype in zip(leaves, self.dtypes, strict=True):
                traced = _bits(jnp.asarray(leaf, dtype)).astype(self.word)
                columns.append(traced.reshape(len(leaf), -1))
            return jnp.concatenate(columns, 1)
        found = []
        for leaf, dtype in zip(leaves, self.dtypes, strict=True):
            own = np.ascontiguousarray(np.asarray(leaf).astype(dtype, copy=False))
            bits = own.view(BITS[dtype.itemsize]).astype(self.word)
            found.append(bits.reshape(len(own), -1))
        return np.concatenate(found, 1)

    def leaves(self, x: np.ndarray) -> list[np.ndarray]:
        """Return the leaves of known packed rows."""
        found = []
        parts = np.split(x, np.cumsum(self.sizes)[:-1], axis=1)
        for part, shape, dtype in zip(parts, self.shapes, self.dtypes, strict=True):
            bits = np.ascontiguousarray(part.astype(BITS[dtype.itemsize]))
            found.append(bits.view(dtype).reshape(len(x), *shape))
        return found

    def tree(self, x: Array) -> PyTree:
        """Return the tree of packed rows, inside of a traced function."""
        leaves = []
        start = 0
        for size, shape, dtype in zip(self.sizes, self.shapes, self.dtypes, strict=True):
            bits = jax.lax.slice_in_dim(x, start, start + size, axis=1)
            leaves.append(_numbers(bits, dtype).reshape(x.shape[0], *shape))
            start += size
        return jax.tree.unflatten(self.structure, leaves)

    def each(self, change: Callable[[np.ndarray], Rows], x: Rows) -> np.ndarray:
        """Return packed rows after a change of every leaf."""
        return np.asarray(self.packed([change(leaf) for leaf in self.leaves(np.asarray(x))]))


@dataclass(frozen=True)
class Packed:
    """A function of packed rows; equal for equal functions and layouts, as compiled programs need.

    Attributes:
        function: of trees.
        is_open: whether the function takes packed rows itself.
    """

    function: Apply
    layout: Layout
    is_open: bool = False

    def __call__(self, params: PyTree, x: Array) -> Array:
        if self.is_open:
            return self.function(params, x)
        width = sum(self.layout.sizes)
        if x.ndim != 2 or x.shape[1] != width:
            raise InvalidInput("x", f"shape {x.shape}", str(self.layout))
        return self.function(params, self.layout.tree(x))


def layout_of(net: object) -> Layout | None:
    """Return the layout of a model's inputs, or None for arrays."""
    found = inner(net, Packed)
    return None if found is None else found.layout


def takes_trees(net: object) -> bool:
    """Whether the inputs of a model, or of its program, are packed trees."""
    return layout_of(net) is not None or getattr(net, "each_leaf", None) is not None


def of_same_rows(function: Apply, net: object) -> Apply:
    """Return a function of the rows of another model, which may be packed trees."""
    layout = layout_of(net)
    return function if layout is None else Packed(function, layout, is_open=True)


def is_tree(x: object) -> bool:
    """Whether an input is a tree of arrays; lists are arrays, and so are tuples of numbers."""
    if isinstance(x, Mapping):
        return True
    if isinstance(x, list):
        return any(isinstance(each, Mapping) for each in x)
    if isinstance(x, tuple):
        return any(is_tree(each) or _has_axes(each) for each in x) or not x
    return x is not None and not jax.tree_util.all_leaves([x])


def _has_axes(leaf: object) -> bool:
    return isinstance(leaf, list) or getattr(leaf, "ndim", 0) > 0


def packed_rows(net: Model, x: PyTree, field: str = "x") -> tuple[Model, Rows]:
    """Return (a function of packed rows, the rows) for a tree.

    An array and its model are returned unchanged.

    Raises:
        InvalidInput: for trees without rows, with different numbers of rows, or unlike those
            of the model before.
    """
    if not is_tree(x):
        return net, x
    if isinstance(net, Network):
        given = f"a {type(x).__name__} of arrays"
        raise InvalidInput(field, given, "one array: networks of this package take one")
    leaves, layout = _read(x, field)
    known = layout_of(net)
    if known is None:
        net = Packed(net, layout)
    else:
        _check_like(layout, known, field)
        layout = known
    return net, layout.packed(leaves)


def num_rows(x: PyTree, field: str = "x") -> int:
    """Return the number of rows of a tree of arrays.

    Raises:
        InvalidInput: for trees without rows, or with different numbers of rows.
    """
    leaves, _ = _read(x, field)
    return len(leaves[0])


def one_row(x: PyTree, field: str = "x") -> PyTree:
    """Return one input without a batch axis as a tree of one row.

    Raises:
        InvalidInput: for a leaf that is no array of real numbers.
    """
    _, leaves, structure = _arrays(x, field)
    return jax.tree.unflatten(structure, [leaf[None] for leaf in leaves])


def _arrays(x: PyTree, field: str) -> tuple[list[str], list[Rows], PyTreeDef]:
    """Return (names, leaves as arrays, structure); lists of numbers are leaves."""
    paths, structure = jax.tree_util.tree_flatten_with_path(
        x, is_leaf=lambda each: isinstance(each, list) and not is_tree(each)
    )
    if not paths:
        raise InvalidInput(field, "a tree without arrays", "at least one array (n, …)")
    names = []
    leaves = []
    for path, leaf in paths:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        names.append(name)
        leaves.append(_array(leaf, f"{field}.{name}"))
    return names, leaves, structure


def _read(x: PyTree, field: str) -> tuple[list[Rows], Layout]:
    """Return the leaves as arrays, and their layout."""
    names, leaves, structure = _arrays(x, field)
    for name, leaf in zip(names, leaves, strict=True):
        if not leaf.ndim:
            raise InvalidInput(f"{field}.{name}", "a number without rows", "an array (n, …)")
    counts = {name: len(leaf) for name, leaf in zip(names, leaves, strict=True)}
    first = counts[names[0]]
    other = next((name for name in names if counts[name] != first), None)
    if other is not None:
        given = f"{first} rows in {names[0]} and {counts[other]} in {other}"
        raise InvalidInput(field, given, "arrays with one number of rows, their leading axis")
    if not first:
        raise InvalidInput(field, "arrays without rows", "arrays (n, …) with at least one input")
    shapes = tuple(tuple(leaf.shape[1:]) for leaf in leaves)
    dtypes = tuple(np.dtype(jax.dtypes.canonicalize_dtype(leaf.dtype)) for leaf in leaves)
    if not sum(math.prod(shape) for shape in shapes):
        raise InvalidInput(field, "a tree of empty arrays", "at least one number in each row")
    return leaves, Layout(structure, tuple(names), shapes, dtypes)


def _array(leaf: object, field: str) -> Rows:
    refuse_masked(leaf, field)
    try:
        array = leaf if isinstance(leaf, Rows) else np.asarray(leaf)
    except ValueError:
        given = f"a {type(leaf).__name__} of rows of different lengths"
        raise InvalidInput(field, given, "an array of numbers, or a tuple of arrays") from None
    is_real = jnp.issubdtype(array.dtype, jnp.integer) or jnp.issubdtype(array.dtype, jnp.floating)
    if not (is_real or array.dtype == bool):
        given = f"{kind_of(leaf)} of type {array.dtype}"
        raise InvalidInput(field, given, "an array of real numbers")
    return array


def _check_like(layout: Layout, known: Layout, field: str) -> None:
    """Refuse rows of another structure, of other shapes, or floats in place of integers."""
    is_same = layout.structure == known.structure and layout.shapes == known.shapes
    kinds = [dtype.kind for dtype in layout.dtypes]
    if not is_same or kinds != [dtype.kind for dtype in known.dtypes]:
        raise InvalidInput(field, f"arrays {layout}", f"{known}, as in the other inputs")


def _bits(leaf: Array) -> Array:
    if leaf.dtype.kind == "b":
        return leaf.astype(np.uint8)
    return jax.lax.bitcast_convert_type(leaf, BITS[leaf.dtype.itemsize])


def _numbers(bits: Array, dtype: np.dtype) -> Array:
    """Return the entries of this type from their bits."""
    if dtype.kind == "b":
        return bits != 0
    return jax.lax.bitcast_convert_type(bits.astype(BITS[dtype.itemsize]), dtype)
