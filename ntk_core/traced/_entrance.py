"""Validation of models, parameters, inputs, outputs and targets at every public function."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
)
from jax.extend.core import ClosedJaxpr
from jax.tree_util import PyTreeDef
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, kind_of, reason_of
from ntk_core.networks.architectures import Network
from ntk_core.real_numbers import refuse_masked
from ntk_core.traced._collections import check_collections
from ntk_core.traced._malformed_rules import refuse_malformed_rules, rules_of
from ntk_core.traced._names import leaf_name, leaf_names
from ntk_core.traced._of_network import Shapes, avals_of, shapes_of
from ntk_core.traced._overwrites import Plain, overwrites
from ntk_core.traced._primals import refuse_other_values
from ntk_core.traced._program import Apply, Model, Program, Rows
from ntk_core.traced._row_trees import is_tree, layout_of, one_row, packed_rows
from ntk_core.traced._trace import Frozen, Seen, trace
from ntk_core.traced._transposes import refuse_other_transposes

FUNCTION = "a network of this package or a function apply(params, x) that returns outputs (n, C)"
AFTER_DONATION = "one that is in memory; a jitted function that donates it deletes it"
# Conversions of other libraries' modules to (apply, params); `model` is the module.
SPLIT = {
    "flax.nnx": (
        "graphdef, params, rest = nnx.split(model, nnx.Param, ...)",
        "apply = lambda params, x: nnx.merge(graphdef, params, rest, copy=True)(x)",
    ),
    "flax.linen": (
        "variables = model.init(jax.random.key(0), x)",
        'params = variables["params"]',
        'apply = lambda params, x: model.apply({**variables, "params": params}, x)',
    ),
    "equinox": (
        "params, static = eqx.partition(model, eqx.is_inexact_array)",
        "apply = lambda params, x: jax.vmap(eqx.combine(params, static))(x)",
    ),
    "torch": ("apply, params = ntk_core.from_torch(model, x)",),
}
_UNTRACEABLE = (ConcretizationTypeError, TracerArrayConversionError, TracerIntegerConversionError)


class ModelFails(InvalidInput):
    """A model that raises an error for inputs of this shape.

    Attributes:
        reason: the model's own words.

    >>> ModelFails("x", "shape (3, 4)", "inputs (n, 5)", "shapes do not match").reason
    'shapes do not match'
    """

    def __init__(self, field: str, given: object, allowed: str, reason: str):
        self.reason = reason
        self._allowed_inputs = allowed
        super().__init__(field, given, f"{allowed}; the model reports: {reason}")

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.field, self.given, self._allowed_inputs, self.reason))


class Accepted(NamedTuple):
    """Validated model.

    Attributes:
        net: the model, with outputs (n, C); T·C outputs if it returns (n, T, C).
        x: inputs as an array, (n, *input_shape).
        num_outputs: C.
    """

    net: Model
    x: Rows
    num_outputs: int


class AcceptedInput(NamedTuple):
    """Validated model with one input; as :class:`Accepted`, but x has no batch axis."""

    net: Model
    x: Array
    num_outputs: int


@dataclass(frozen=True)
class Flat:
    """Wrap a function with outputs (n,) or (n, T, C).

    It returns (n, 1) or (n, T·C), with output a = t·C + c.

    Equal for equal functions, as compiled programs need.

    Attributes:
        axes: () or (T, C).
    """

    function: Apply
    axes: tuple[int, ...]

    def __call__(self, params: PyTree, x: Array) -> Array:
        outputs = self.function(params, x)
        if outputs.shape != (len(x), *self.axes):
            raise InvalidInput(
                "net",
                f"outputs {outputs.shape} for {len(x)} inputs, ({len(x)}, *{self.axes}) expected",
                "one shape for every number n of inputs, such as by squeeze(-1) in place of "
                "squeeze()",
            )
        return outputs.reshape(len(outputs), math.prod(self.axes))


def accepted(net: Model, params: PyTree, x: PyTree, field: str = "x") -> Accepted:
    """Validate a model at inputs x of shape (n, *input_shape).

    Its outputs are (n, C), (n,) or (n, T, C).

    Inputs that are a tree of arrays become one array, and the model a function of it
    (``_row_trees``).

    Raises:
        InvalidInput: with the remedy, for a ``net`` that is no model, parameters without floats, a
            missing batch axis, a loss instead of outputs, or outputs of another shape or type.
    """
    check_model(net, params)
    net, x = packed_rows(net, x, field)
    inputs = checked_array(x, field)
    if not inputs.ndim:
        raise InvalidInput(field, "a number", "inputs of shape (n, *input_shape)")
    if not len(inputs):
        raise InvalidInput(field, f"shape {inputs.shape}", "shape (n, …) with at least one input")
    outputs, closed = _outputs(net, params, inputs, field)
    shape = tuple(outputs.shape)
    n = len(inputs)
    single = shape == (n,) and (n == 1 or _tried(net, params, _rows(inputs, 1)) == (1,))
    if not (single or (len(shape) in (2, 3) and shape[0] == n)):
        raise _wrong_shape(net, params, inputs, field, shape)
    if 0 in shape:
        given = f"a function with outputs of shape {shape}"
        raise InvalidInput("net", given, "at least one output")
    _check_type(outputs)
    if closed is None or isinstance(net, Network | Program):
        return Accepted(net, inputs, shape[-1])
    rules = rules_of(closed)
    refuse_malformed_rules(closed, rules)
    seen = Seen(net, closed, *rules)
    model = Plain(seen) if overwrites(closed.jaxpr) else seen
    refuse_other_transposes(seen, closed.jaxpr, params, inputs)
    refuse_other_values(seen, closed.jaxpr, params, inputs)
    if len(shape) == 2:
        return Accepted(model, inputs, shape[-1])
    return Accepted(Flat(model, shape[1:]), inputs, math.prod(shape[1:]))


def axes_of(net: object) -> tuple[int, ...]:
    """Return (T, C) of an accepted model whose outputs were (n, T, C); () for any other."""
    return net.axes if isinstance(net, Flat) else ()


def accepted_input(net: Model, params: PyTree, x: PyTree) -> AcceptedInput:
    """Validate like :func:`accepted`, for one input x without a batch axis."""
    check_model(net, params)
    if is_tree(x):
        net, rows = packed_rows(net, one_row(x))
        x = rows[0]
    one = checked_array(x, "x")
    try:
        found = accepted(net, params, one[None])
    except InvalidInput as error:
        if error.field != "params" and one.ndim and _fits(net, params, one):
            raise InvalidInput(
                "x", f"{len(one)} inputs of shape {one.shape[1:]}", "one input, such as x[0]"
            ) from None
        if error.field != "x":
            raise
        given = f"shape {one.shape} and type {one.dtype}"
        allowed = "one input of the shape that the parameters are for, without the batch axis"
        if isinstance(error, ModelFails):
            raise ModelFails("x", given, allowed, error.reason) from error
        outputs = _tried(net, params, _rows(one))
        if outputs is not None:  # the model accepts the input
            raise InvalidInput(
                "net",
                f"a function with outputs of shape {outputs} for one input",
                "outputs (1, C) for x[None], such as by squeeze(-1) in place of squeeze()",
            ) from error
        raise InvalidInput("x", given, f"{allowed}; {error.allowed}") from error
    whole = isinstance(net, Network) and not jnp.issubdtype(one.dtype, jnp.inexact)
    return AcceptedInput(
        found.net, jnp.asarray(one, jnp.result_type(float) if whole else None), found.num_outputs
    )


def accepted_targets(
    y: object,
    num_samples: int,
    num_outputs: int | None,
    field: str = "y",
    axes: tuple[int, ...] = (),
) -> Rows:
    """Return targets as floats (n, C).

    (n,) becomes (n, 1), and (n, T, C) becomes (n, T·C) for such models.

    Raises:
        InvalidInput: for another shape, with the conversion of class labels.
    """
    targets = checked_array(y, field)
    if jnp.issubdtype(targets.dtype, jnp.complexfloating):
        raise InvalidInput(field, f"complex numbers, of type {targets.dtype}", "real numbers")
    if targets.ndim == 1 and num_outputs in (None, 1):
        targets = targets[:, None]
    if axes and targets.shape == (num_samples, *axes):
        targets = targets.reshape(num_samples, math.prod(axes))
    allowed = (
        f"shape ({num_samples}, {'C' if num_outputs is None else num_outputs}), one row for "
        "each input"
    )
    if targets.ndim == 1 and jnp.issubdtype(targets.dtype, jnp.integer):
        allowed += f"; class labels by jax.nn.one_hot({field}, {num_outputs})"
    if (
        targets.ndim != 2
        or len(targets) != num_samples
        or num_outputs not in (None, targets.shape[1])
    ):
        raise InvalidInput(field, f"shape {targets.shape}", allowed)
    inexact = jnp.issubdtype(targets.dtype, jnp.floating)
    return targets if inexact else targets.astype(jnp.result_type(float))


def like_rows(x: PyTree, rows: Rows, field: str, net: Model | None = None) -> Rows:
    """Return ``x`` as an array of further inputs like ``rows``, those of an accepted model.

    Raises:
        InvalidInput: for another shape, and for numbers that the type of ``rows`` would change.
    """
    if net is not None and layout_of(net) is not None:
        _, x = packed_rows(net, x, field)
    array = checked_array(x, field)
    if array.ndim + 1 == rows.ndim and array.shape == rows.shape[1:]:
        raise _without_batch(array, field)
    if array.shape[1:] != rows.shape[1:] or not array.ndim:
        raise InvalidInput(
            field, f"shape {array.shape}", f"rows of shape {rows.shape[1:]}, as in the other inputs"
        )
    if not _keeps_values(array, rows.dtype):
        raise InvalidInput(
            field, f"numbers of type {array.dtype}", f"numbers of type {rows.dtype}, as x"
        )
    return array


def _keeps_values(array: Rows, dtype: np.dtype) -> bool:
    """Whether the type of other inputs holds these.

    No complex numbers as real, no fractions as ids.
    """
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        return bool(jnp.issubdtype(dtype, jnp.complexfloating))
    if jnp.issubdtype(dtype, jnp.inexact) or array.dtype == dtype:
        return True
    if isinstance(array, jax.core.Tracer):
        return not jnp.issubdtype(array.dtype, jnp.inexact)
    numbers = np.asarray(array)
    with np.errstate(invalid="ignore"):
        return bool((numbers.astype(dtype) == numbers).all())


def like_params(params: PyTree, origin: PyTree, field: str) -> None:
    """Refuse parameters whose tree differs from ``origin``.

    Raises:
        InvalidInput: with the difference.
    """
    given = _named_shapes(params)
    expected = _named_shapes(origin)
    for name in [*expected, *given]:
        here = given.get(name)
        there = expected.get(name)
        if here != there:
            allowed = (
                f"no {name}, as before" if there is None else f"{name} of shape {there}, as before"
            )
            raise InvalidInput(
                field, f"no {name}" if here is None else f"{name} of shape {here}", allowed
            )
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(origin), strict=True)
    for (leaf, before), name in zip(pairs, expected, strict=True):
        if _is_float(leaf) != _is_float(before) or not _is_parameter(leaf):
            kind = getattr(before, "dtype", kind_of(before))
            own = getattr(leaf, "dtype", kind_of(leaf))
            raise InvalidInput(field, f"{name} of type {own}", f"{name} of type {kind}, as before")
    found, structure = (str(jax.tree.structure(tree)) for tree in (params, origin))
    if found != structure:  # containers of other types
        raise InvalidInput(field, f"a tree {found}", f"one like {structure}")


def _named_shapes(tree: PyTree) -> dict[str, tuple[int, ...]]:
    paths = jax.tree_util.tree_leaves_with_path(tree)
    names = leaf_names([path for path, _ in paths])
    return {name: jnp.shape(leaf) for name, (_, leaf) in zip(names, paths, strict=True)}


def check_model(net: object, params: PyTree) -> None:
    """Refuse other values than models, and parameters that cannot be differentiated.

    Raises:
        InvalidInput: field ``net`` or ``params``.
    """
    library = next(
        (name for base in type(net).__mro__ for name in SPLIT if base.__module__.startswith(name)),
        None,
    )
    if library is not None:
        module = f"a module of {library}, {type(net).__name__}"
        raise InvalidInput("net", module, "(apply, params), made by: " + "; ".join(SPLIT[library]))
    if isinstance(net, type):
        raise InvalidInput("net", f"the class {net.__name__}", f"an instance of it, {FUNCTION}")
    if not (isinstance(net, Network) or callable(net)):
        raise InvalidInput("net", kind_of(net), FUNCTION)
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if _is_deleted(leaf):
            raise InvalidInput("params", f"the deleted array {leaf_name(path)}", AFTER_DONATION)
    if isinstance(net, Network):
        if not isinstance(params, dict) or not net.layers.keys() <= params.keys():
            raise InvalidInput(
                "params", kind_of(params), "the parameters that net.init(key, input_shape) draws"
            )
        return
    check_collections(net, params)
    leaves = jax.tree.leaves(params)
    if not any(_is_float(leaf) for leaf in leaves) or not all(map(_is_parameter, leaves)):
        _refuse_params(params)


def checked_array(x: object, field: str) -> Rows:
    """Return ``x`` as an array of numbers, without copying arrays.

    Raises:
        InvalidInput: for anything else.
    """
    refuse_masked(x, field)
    try:
        array = x if isinstance(x, Rows) else np.asarray(x)
    except ValueError:
        raise InvalidInput(
            field, f"a {type(x).__name__} of rows of different lengths", "an array of numbers"
        ) from None
    if _is_deleted(array):
        raise InvalidInput(field, "a deleted array", AFTER_DONATION)
    if not (jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool):
        raise InvalidInput(field, f"{kind_of(x)} of type {array.dtype}", "an array of numbers")
    return array


def _is_float(leaf: object) -> bool:
    return hasattr(leaf, "dtype") and bool(jnp.issubdtype(leaf.dtype, jnp.inexact))


def _is_parameter(leaf: object) -> bool:
    if hasattr(leaf, "dtype"):
        is_complex = jnp.issubdtype(leaf.dtype, jnp.complexfloating)
        is_other = isinstance(leaf, np.ma.MaskedArray) or leaf.dtype == object
        return not (is_complex or is_other or _is_narrow(leaf))
    return isinstance(leaf, int)


def _is_narrow(leaf: Any) -> bool:
    """Whether a leaf has floats of 8 bits or fewer, with which JAX does not calculate."""
    return _is_float(leaf) and jnp.finfo(leaf.dtype).bits < 16


def _is_deleted(leaf: object) -> bool:
    if not isinstance(leaf, jax.Array) or isinstance(leaf, jax.core.Tracer):
        return False
    return bool(leaf.is_deleted())


def _refuse_params(params: PyTree) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        place = leaf_name(path)
        refuse_masked(leaf, "params")
        if isinstance(leaf, float | complex):
            remedy = (
                f"jnp.asarray({leaf}) to differentiate it, or a constant inside of the function"
            )
            raise InvalidInput("params", f"the Python number {leaf} at {place}", remedy)
        if _is_narrow(leaf):
            found = f"{leaf.dtype} at {place}"
            raise InvalidInput("params", found, "floats of 16 bits or more, by leaf.astype")
        if not _is_parameter(leaf):
            found = (
                f"complex numbers at {place}"
                if hasattr(leaf, "dtype")
                else f"{kind_of(leaf)} at {place}"
            )
            remedy = (
                "real and imaginary parts apart" if hasattr(leaf, "dtype") else "a tree of arrays"
            )
            raise InvalidInput("params", found, remedy)
    given = f"{len(jax.tree.leaves(params))} arrays without floating-point numbers"
    raise InvalidInput("params", given, "a tree with at least one array of floats")


def _rows(x: Rows, count: int | None = None) -> jax.ShapeDtypeStruct:
    """Return the shape and type of ``count`` rows like those of ``x``; of one row for None."""
    shape = (1, *x.shape) if count is None else (count, *x.shape[1:])
    return jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(x.dtype))


def _evaluated(
    net: Model, params: PyTree, rows: jax.ShapeDtypeStruct
) -> tuple[jax.ShapeDtypeStruct, ClosedJaxpr | None]:
    """Return (shape and type of the outputs, the program of a callable)."""
    if not isinstance(net, Network):
        leaves, structure = jax.tree.flatten(params)
        avals = jax.eval_shape(lambda *each: each, *leaves)
        key = structure, avals, rows.shape, rows.dtype, jnp.result_type(float).name
        kept = net.traces if isinstance(net, Frozen) else {}
        if key not in kept:
            kept[key] = trace(net, structure, avals, rows.shape, rows.dtype)
        closed, outputs = kept[key]
        return outputs, closed
    if not jnp.issubdtype(rows.dtype, jnp.inexact):  # images of bytes become numbers
        rows = jax.ShapeDtypeStruct(rows.shape, jnp.result_type(rows.dtype, float))
    leaves, structure = jax.tree.flatten(params)
    return _network_outputs(net, structure, shapes_of(leaves), rows), None


@lru_cache(maxsize=256)  # tracing a narrow network takes as long as its kernel
def _network_outputs(
    net: Network, structure: PyTreeDef, shapes: Shapes, rows: jax.ShapeDtypeStruct
) -> jax.ShapeDtypeStruct:
    net.layer_input_shapes(rows.shape[1:])
    return jax.eval_shape(net.apply, jax.tree.unflatten(structure, avals_of(shapes)), rows)


def _tried(net: Model, params: PyTree, rows: jax.ShapeDtypeStruct) -> tuple[int, ...] | None:
    """Return the shape of the outputs for these rows, or None."""
    try:
        return tuple(_evaluated(net, params, rows)[0].shape)
    except Exception:  # any error of a model on unsuitable rows
        return None


def _fits(net: Model, params: PyTree, x: Rows) -> bool:
    """Whether outputs for the rows of ``x`` have the shape (n,) or (n, C)."""
    shape = _tried(net, params, _rows(x, len(x)))
    return shape is not None and 0 < len(shape) <= 2 and shape[0] == len(x)


def _outputs(
    net: Model, params: PyTree, x: Rows, field: str
) -> tuple[jax.ShapeDtypeStruct, ClosedJaxpr | None]:
    """Evaluate like :func:`_evaluated`, for the rows of ``x``."""
    try:
        outputs, closed = _evaluated(net, params, _rows(x, len(x)))
    except Exception as error:
        if (shape := _tried(net, params, _rows(x))) is not None and shape[:1] == (1,):
            raise _without_batch(x, field) from None
        reason = reason_of(error)
        if isinstance(error, _UNTRACEABLE):
            allowed = (
                f"operations of jax.numpy, and jax.lax.cond in place of if; JAX reports: {reason}"
            )
            raise InvalidInput("net", "a function that JAX cannot trace", allowed) from error
        if (
            isinstance(error, TypeError | ValueError | KeyError | IndexError | AttributeError)
            and getattr(error, "field", "input_shape") == "input_shape"
        ):
            layout = layout_of(net)
            given = f"shape {x.shape} and type {x.dtype}" if layout is None else f"arrays {layout}"
            allowed = "inputs (n, *input_shape) that the parameters are for"
            raise ModelFails(field, given, allowed, reason) from error
        if not isinstance(error, InvalidInput | MemoryError):
            given = f"a function that raises {type(error).__name__} for inputs {x.shape}"
            allowed = f"one that returns outputs (n, C) for them; it reports: {reason}"
            raise InvalidInput("net", given, allowed) from error
        raise
    if not hasattr(outputs, "shape"):
        raise InvalidInput(
            "net", f"a function that returns {kind_of(outputs)}", "one that returns an array (n, C)"
        )
    return outputs, closed


def _without_batch(x: Rows, field: str) -> InvalidInput:
    return InvalidInput(
        field, f"shape {x.shape} without a batch axis", f"shape (n, …): {field}[None] for one input"
    )


def _wrong_shape(
    net: Model, params: PyTree, x: Rows, field: str, shape: tuple[int, ...]
) -> InvalidInput:
    single = _tried(net, params, _rows(x))
    if shape and single is not None and single[:1] == (1,) and len(single) <= 2:
        return _without_batch(x, field)
    given = f"a function with outputs of shape {shape} for {len(x)} inputs"
    if not shape:
        allowed = "the outputs (n, C) themselves in place of a loss or a mean of them"
    elif shape[0] == len(x):
        allowed = "outputs (n, C), (n,) or (n, T, C), such as outputs.reshape(len(x), -1)"
    else:
        allowed = f"outputs (n, C), (n,) or (n, T, C), one row for each of the {len(x)} inputs"
    return InvalidInput("net", given, allowed)


def _check_type(outputs: jax.ShapeDtypeStruct) -> None:
    if _is_narrow(outputs):
        given = f"a function with outputs of type {outputs.dtype}"
        raise InvalidInput("net", given, "floats of 16 bits or more, by outputs.astype")
    if not jnp.issubdtype(outputs.dtype, jnp.floating):
        parts = (
            ", such as real and imaginary parts beside each other"
            if jnp.issubdtype(outputs.dtype, jnp.complexfloating)
            else ""
        )
        raise InvalidInput(
            "net", f"a function with outputs of type {outputs.dtype}", f"real floats{parts}"
        )
