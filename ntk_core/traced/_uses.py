"""Uses of parameters in a program.

Products, convolutions and look-ups that are linear in one of them.

One pass over all equations, including calls and scans, tracks a :class:`ParamView` for each array
made of one parameter.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from jax.lax import GatherScatterMode

from ntk_core.traced._views import (
    Axes,
    EquationParams,
    ParamView,
    aval_of,
    moved_on,
    num_entries,
    shape_of,
    times_number,
    whole,
)
from ntk_core.traced._walk import walk

Site = tuple[int, ...]  # place of an equation: its number after those of enclosing calls and scans
# Inlined calls; calls with custom derivatives are kept whole.
INLINED = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
}
MOST_ROWS = 2**24  # of a table: row numbers are exact in float32
ADDED = frozenset({"add", "sub", "add_any"})
MULTIPLIED = frozenset({"mul", "div"})

Avals = Sequence[ShapedArray | jax.ShapeDtypeStruct]


@dataclass(frozen=True)
class Use:
    """One equation that is linear in one parameter.

    z = ⟨W, a⟩, at many positions, in independent blocks.

    Attributes:
        name: unique within the program.
        site: the place of the equation.
        tap: place where z is complete: the equation, or a later product with a constant.
        view: the parameter as read by the equation.
        operand: index of that operand.
        lengths: of enclosing scans, outermost first.
        kind: ``product``, ``convolution`` or ``look-up``.
        blocks, rows, columns: axes of the parameter that number independent products, that are
            contracted with the input a, and that remain in z; axes of size 1 are omitted.
        groups: feature groups of a convolution.
        params: of the equation.
        shapes: of a, of the viewed parameter, and of z.
        dtype: of z.

    >>> from ntk_core.traced import traced
    >>> program = traced(lambda w, x: jnp.tanh(x @ w), jnp.ones((3, 2)), jnp.ones((5, 3)))
    >>> (use,) = program.uses.values()
    >>> use.kind, use.operand
    ('product', 1)
    """

    name: str
    site: Site
    tap: Site
    view: ParamView
    operand: int
    lengths: tuple[int, ...]
    kind: str
    blocks: Axes
    rows: Axes
    columns: Axes
    groups: int
    params: EquationParams = field(hash=False, compare=False)
    shapes: tuple[tuple[int, ...], ...]
    dtype: np.dtype

    @property
    def stacked(self) -> Axes:
        """Axes of the parameter that scans iterate over."""
        return tuple(axis for axis in self.view.levels if axis is not None)


@dataclass(frozen=True)
class Image:
    """z of one use, times a constant.

    Attributes:
        alone: whether no other equation reads z, or a product on the way from z to this array. Only
            such an array determines the cotangent of z: with a second reader, ∂f/∂z is more than
            what arrives through this array.
    """

    site: Site
    scale: float = 1.0
    alone: bool = True


class Mask(NamedTuple):
    """Mask of a parameter's movable entries."""

    leaf: int


class Addition(NamedTuple):
    """A parameter times ``scale`` is added to z of one use."""

    site: Site
    scale: float


# Description of an array; a number for constants.
Known = ParamView | Image | Mask | np.ndarray | float | None


@dataclass
class Found:
    """All uses, and reasons why parameters are no layers.

    Attributes:
        added: for such parameters, in the order of their other uses, additions to z.
        largest: entries of the largest array that depends on the inputs.
    """

    uses: dict[Site, Use] = field(default_factory=dict)
    escapes: dict[int, set[str]] = field(default_factory=dict)
    added: dict[int, list[Addition | None]] = field(default_factory=dict)
    largest: int = 0


def find_uses(closed: ClosedJaxpr, leaves: Iterable[int], masks: Mapping[int, int]) -> Found:
    """Find the uses of a program's inputs ``leaves``.

    ``masks`` are inputs that mask some of them.
    """
    found = Found()
    known: list[Known] = [
        whole(at, shape_of(var)) if at in leaves else None for at, var in enumerate(closed.invars)
    ]
    for leaf, mask in masks.items():
        known[mask] = Mask(leaf)
    outputs = _walk(closed.jaxpr, closed.consts, known, (), (), found)
    for each in outputs:
        _escape(found, each, "output")
    return found


def inner_program(eqn: JaxprEqn) -> tuple[Jaxpr, Sequence[Array]] | None:
    """Return (program, constants) of an inlined call or a scan, else None."""
    key = "jaxpr" if eqn.primitive.name == "scan" else INLINED.get(eqn.primitive.name)
    inner = None if key is None else eqn.params[key]
    return (inner.jaxpr, inner.consts) if isinstance(inner, ClosedJaxpr) else inner and (inner, ())


def _walk(
    jaxpr: Jaxpr,
    consts: Sequence[Array],
    inputs: Sequence[Known],
    place: Site,
    lengths: tuple[int, ...],
    found: Found,
) -> list[Known]:
    """Return descriptions of the outputs: a ParamView, a constant, or None."""
    read_times: Counter[Var | Literal] = Counter()
    for eqn in jaxpr.eqns:
        read_times.update(atom for atom in eqn.invars if not isinstance(atom, Literal))
    read_times.update(atom for atom in jaxpr.outvars if not isinstance(atom, Literal))

    def equation(index: int, eqn: JaxprEqn, operands: list[Known]) -> Sequence[Known]:
        site = (*place, index)
        image = times_number(eqn.primitive.name, operands, Image)
        if image is not None:
            results: Sequence[Known] = [_behind(found, image, site) if image.alone else image]
        else:
            results = _equation(eqn, operands, site, lengths, found)
        fitting = []
        for var, result in zip(eqn.outvars, results, strict=True):
            if isinstance(result, Image) and read_times[var] != 1:
                result = replace(result, alone=False)
            fitting.append(_fitting(result, shape_of(var)))
            if result is None or isinstance(result, Image):
                found.largest = max(found.largest, math.prod(shape_of(var)))
        return fitting

    numbers = [_number(const) for const in consts]
    return walk(jaxpr, numbers, inputs, lambda literal: _number(literal.val), equation)


def _equation(
    eqn: JaxprEqn, operands: list[Known], site: Site, lengths: tuple[int, ...], found: Found
) -> Sequence[Known]:
    nothing = [None] * len(eqn.outvars)
    views = [each for each in operands if isinstance(each, ParamView)]
    if all(isinstance(var, DropVar) for var in eqn.outvars):
        return nothing
    name = eqn.primitive.name
    inner = inner_program(eqn)
    if not views and inner is None:
        return _constant(eqn, operands) or nothing
    if (
        name == "custom_jvp_call"
        and len(views) == 1
        and operands[1:] == [Mask(views[0].leaf)]
        and _is_first(eqn)
    ):
        return views
    if name == "scan" and inner is not None:
        num_consts = eqn.params["num_consts"]
        num_carry = eqn.params["num_carry"]
        for each in operands[num_consts : num_consts + num_carry]:
            _escape(found, each, "carry of scan")
        seen = [
            each.inside_scan(at >= num_consts + num_carry) if isinstance(each, ParamView) else None
            for at, each in enumerate(operands)
        ]
        seen[num_consts : num_consts + num_carry] = [None] * num_carry
        for each in _walk(*inner, seen, site, (*lengths, eqn.params["length"]), found):
            _escape(found, each, "output of scan")
        return nothing
    if inner is not None:  # images stay inside, where their reads are counted
        inside = _walk(*inner, _without_images(operands), site, lengths, found)
        return _without_images(inside)
    moved = moved_on(name, eqn.params, operands, shape_of(eqn.invars[0]))
    if moved is not None:
        return moved
    use = _use(eqn, operands, site, lengths) if len(views) == 1 else None
    if use is not None:
        found.uses[site] = use
        return [Image(site)]
    image = next((each for each in operands if isinstance(each, Image)), None)
    added = None
    one_view = len(views) == 1 and views[0].axes is not None
    if name in ADDED and one_view and image is not None and image.alone:
        added = Addition(image.site, views[0].scale / image.scale)
    for view in views:
        _escape(found, view, name if len(views) == 1 else f"{name} of parameters", added)
    return nothing


def _without_images(known: Sequence[Known]) -> list[Known]:
    return [None if isinstance(each, Image) else each for each in known]


def _behind(found: Found, image: Image, site: Site) -> Image:
    """Attribute a constant to the parameter if z is read only by this product."""
    use = found.uses[image.site]
    found.uses[image.site] = replace(
        use, tap=site, view=replace(use.view, scale=use.view.scale * image.scale)
    )
    return Image(image.site)


def _escape(found: Found, view: Known, reason: str, added: Addition | None = None) -> None:
    if isinstance(view, ParamView):
        found.escapes.setdefault(view.leaf, set()).add(reason)
        found.added.setdefault(view.leaf, []).append(added)


def _is_first(eqn: JaxprEqn) -> bool:
    """Whether a call returns its first operand unchanged."""
    inner = eqn.params["call_jaxpr"].jaxpr
    return not inner.eqns and inner.outvars == inner.invars[:1]


def _number(value: Any) -> np.ndarray | float | None:
    """Return a number known before the program runs, or None."""
    if isinstance(value, jax.core.Tracer) or not hasattr(value, "size") or value.size != 1:
        return value if isinstance(value, bool | int | float) else None
    return np.asarray(value).reshape(()) if _is_numeric(value.dtype) else None


def _is_numeric(dtype: np.dtype) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.number) or jnp.issubdtype(dtype, jnp.bool_))


def _constant(eqn: JaxprEqn, operands: list[Known]) -> list[Known] | None:
    """Evaluate numbers from numbers, such as the square root of a width."""
    unknown = any(each is None or isinstance(each, Image | Mask) for each in operands)
    if not operands or unknown or inner_program(eqn) or eqn.effects:
        return None
    if eqn.primitive.name in ("broadcast_in_dim", "copy"):
        return operands[:1]
    if any(
        math.prod(shape_of(var)) != 1 or not _is_numeric(aval_of(var).dtype) for var in eqn.outvars
    ):
        return None
    if any(isinstance(each, ClosedJaxpr | Jaxpr) for each in eqn.params.values()):
        return None
    values = [
        np.full(shape_of(atom), each, aval_of(atom).dtype)
        for atom, each in zip(eqn.invars, operands, strict=True)
    ]
    with jax.ensure_compile_time_eval():
        results = eqn.primitive.bind(*values, **eqn.params)
    results = results if eqn.primitive.multiple_results else [results]
    return [_number(each) for each in results]


def _fitting(result: Known, shape: tuple[int, ...]) -> Known:
    if isinstance(result, ParamView) and result.axes is not None:
        sizes = tuple(num_entries(axes) for axes in result.axes)
        return result if sizes == tuple(shape) else result.loose()
    return result


def _use(eqn: JaxprEqn, operands: list[Known], site: Site, lengths: tuple[int, ...]) -> Use | None:
    """Interpret the equation as a use of its one parameter operand."""
    operand, view = next(
        (at, each) for at, each in enumerate(operands) if isinstance(each, ParamView)
    )
    read = _READERS.get(eqn.primitive.name)
    if view.axes is None or read is None or len(eqn.invars) != 2:
        return None
    if any(
        jnp.issubdtype(aval_of(each).dtype, jnp.complexfloating)
        for each in (*eqn.invars, *eqn.outvars)
    ):
        return None
    parts = read(eqn, view, operand)
    if parts is None:
        return None
    shapes = tuple(
        shape_of(each) for each in (eqn.invars[1 - operand], eqn.invars[operand], eqn.outvars[0])
    )
    name = "use" + ".".join(map(str, site))
    return Use(
        name,
        site,
        site,
        view,
        operand,
        lengths,
        *parts,
        dict(eqn.params),
        shapes,
        aval_of(eqn.outvars[0]).dtype,
    )


Parts = tuple[str, Axes, Axes, Axes, int]


def _product(eqn: JaxprEqn, view: ParamView, operand: int) -> Parts | None:
    contracting, batch = (each[operand] for each in eqn.params["dimension_numbers"])
    free = [
        at for at in range(len(shape_of(eqn.invars[operand]))) if at not in (*contracting, *batch)
    ]
    return "product", view.ordered(batch), view.ordered(contracting), view.ordered(free), 1


def _convolution(eqn: JaxprEqn, view: ParamView, operand: int) -> Parts | None:
    if operand != 1 or eqn.params["batch_group_count"] != 1:
        return None
    out_features, in_features, *sizes = eqn.params["dimension_numbers"].rhs_spec
    groups = eqn.params["feature_group_count"]
    return (
        "convolution",
        (),
        view.ordered((in_features, *sizes)),
        view.ordered((out_features,)),
        groups,
    )


def _look_up(eqn: JaxprEqn, view: ParamView, operand: int) -> Parts | None:
    """Rows of a table: one index each, whole rows."""
    if eqn.params["mode"] == GatherScatterMode.ONE_HOT or shape_of(eqn.invars[0])[0] > MOST_ROWS:
        return None
    numbers = eqn.params["dimension_numbers"]
    shape = shape_of(eqn.invars[0])
    sizes = eqn.params["slice_sizes"]
    rows_alone = (
        numbers.collapsed_slice_dims == numbers.start_index_map == (0,)
        and not numbers.operand_batching_dims
    )
    rank = len(shape_of(eqn.outvars[0]))
    last = tuple(range(rank - len(shape) + 1, rank))
    if (
        operand
        or not rows_alone
        or tuple(sizes) != (1, *shape[1:])
        or tuple(numbers.offset_dims) != last
    ):
        return None
    return "look-up", (), view.ordered((0,)), view.ordered(range(1, len(shape))), 1


_READERS: dict[str, Callable[[JaxprEqn, ParamView, int], Parts | None]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    "gather": _look_up,
}
