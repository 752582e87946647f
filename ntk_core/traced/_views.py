"""Linear view of one parameter before its use: a rearranged part times a constant.

Every rule is linear and keeps each number of the part once, so inner products of gradients do not
depend on the order. Other operations give a *loose* view, which records only its parameter.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Literal, Var

Atom = tuple[int, int, int]  # (axis of the parameter, stride, size)
Axes = tuple[Atom, ...]
EquationParams = dict[str, Any]  # by JAX's names
Shape = Sequence[int]
Scaled = TypeVar("Scaled")
LARGEST_SCALE = 2.0**20  # of the constant of a view, and of its reciprocal; our choice


def aval_of(atom: Var | Literal) -> ShapedArray:
    """Shape and type of an array in a program."""
    aval: Any = atom.aval  # abstract, by JAX's types
    return aval


def shape_of(atom: Var | Literal) -> tuple[int, ...]:
    return tuple(aval_of(atom).shape)


@dataclass(frozen=True)
class ParamView:
    """An array computed from one parameter.

    Attributes:
        leaf: number of the parameter.
        box: (start, stop) along each axis of the parameter.
        axes: for each axis of the array, the (partial) axes of the parameter that it runs over,
            slowest first, without axes of size 1. None for a loose view.
        scale: constant factor.
        levels: for each enclosing scan, outermost first, the axis of the parameter that it iterates
            over; None if it reads the same numbers at every step.
    """

    leaf: int
    box: tuple[tuple[int, int], ...]
    axes: tuple[Axes, ...] | None
    scale: float = 1.0
    levels: tuple[Atom | None, ...] = ()

    def loose(self) -> "ParamView":
        return replace(self, axes=None)

    def ordered(self, positions: Sequence[int]) -> Axes:
        """Return the parameter's axes along these axes of the array.

        They are in order, with adjacent parts merged.
        """
        assert self.axes is not None
        found: list[Atom] = []
        for position in positions:
            for axis, stride, size in self.axes[position]:
                if found and found[-1][:2] == (axis, stride * size):
                    found[-1] = (axis, stride, size * found[-1][2])
                else:
                    found.append((axis, stride, size))
        return tuple(found)

    def inside_scan(self, stacked: bool) -> "ParamView":
        """Return the view in one step of a scan: unchanged, or one entry along its first axis."""
        if not stacked:
            return replace(self, levels=(*self.levels, None))
        if self.axes is None or len(self.axes[0]) > 1:
            return replace(self.loose(), levels=(*self.levels, None))
        first = next(iter(self.axes[0]), None)
        return replace(self, axes=self.axes[1:], levels=(*self.levels, first))


def num_entries(axes: Axes) -> int:
    """Return the number of entries along some axes of a parameter."""
    return math.prod(size for _, _, size in axes)


def whole(leaf: int, shape: Sequence[int]) -> ParamView:
    """Return the view of a whole parameter."""
    axes = tuple(((axis, 1, size),) if size != 1 else () for axis, size in enumerate(shape))
    return ParamView(leaf, tuple((0, size) for size in shape), axes)


def _rearranged(view: ParamView, axes: Sequence[Axes] | None) -> list[ParamView]:
    return [view.loose() if axes is None else replace(view, axes=tuple(axes))]


def _reshape(view: ParamView, params: EquationParams, shape: Shape) -> list[ParamView]:
    if view.axes is None or params.get("dimensions") is not None:
        return [view.loose()]
    rest = list(view.ordered(range(len(view.axes))))
    axes = []
    for size in params["new_sizes"]:
        taken: list[Atom] = []
        while num_entries(tuple(taken)) < size and rest:
            left = size // num_entries(tuple(taken))
            axis, stride, length = rest.pop(0)
            if length > left and length % left == 0:  # the axis is split
                rest.insert(0, (axis, stride, length // left))
                stride = stride * (length // left)
                length = left
            taken.append((axis, stride, length))
        if num_entries(tuple(taken)) != size:
            return [view.loose()]
        axes.append(tuple(taken))
    return _rearranged(view, axes)


def _transpose(view: ParamView, params: EquationParams, shape: Shape) -> list[ParamView]:
    return _rearranged(view, view.axes and [view.axes[old] for old in params["permutation"]])


def _squeeze(view: ParamView, params: EquationParams, shape: Shape) -> list[ParamView]:
    gone = params["dimensions"]
    return _rearranged(
        view, view.axes and [each for at, each in enumerate(view.axes) if at not in gone]
    )


def _broadcast(view: ParamView, params: EquationParams, shape: Shape) -> list[ParamView]:
    if view.axes is None:
        return [view]
    axes: list[Axes] = [()] * len(params["shape"])
    for old, new in enumerate(params["broadcast_dimensions"]):
        axes[new] = view.axes[old]
    repeats = any(
        num_entries(each) != size for each, size in zip(axes, params["shape"], strict=True)
    )
    return _rearranged(view, None if repeats else axes)


def _cut(
    view: ParamView, starts: Sequence[int], stops: Sequence[int], shape: Sequence[int]
) -> ParamView:
    """Return entries ``starts`` to ``stops`` of an array of this shape."""
    if view.axes is None:
        return view
    box = list(view.box)
    axes = list(view.axes)
    for at, (start, stop, size) in enumerate(zip(starts, stops, shape, strict=True)):
        if (start, stop) == (0, size):
            continue
        if start == stop:
            return view.loose()
        ((axis, stride, length), *more) = axes[at]
        low, high = box[axis]
        if more or (stride, length) != (1, high - low):
            return view.loose()
        box[axis] = (low + start, low + stop)
        axes[at] = () if stop - start == 1 else ((axis, 1, stop - start),)
    return replace(view, box=tuple(box), axes=tuple(axes))


def _slice(view: ParamView, params: EquationParams, shape: Shape) -> list[ParamView]:
    strides = params["strides"]
    if strides is not None and any(stride != 1 for stride in strides):
        return [view.loose()]
    return [_cut(view, params["start_indices"], params["limit_indices"], shape)]


def _split(view: ParamView, params: EquationParams, shape: Shape) -> list[ParamView]:
    axis = params["axis"]
    found = []
    start = 0
    for size in params["sizes"]:
        starts = [0] * len(shape)
        stops = list(shape)
        starts[axis] = start
        stops[axis] = start + size
        found.append(_cut(view, starts, stops, shape))
        start += size
    return found


def _unstack(view: ParamView, params: EquationParams, shape: Shape) -> list[ParamView]:
    axis = params["axis"]
    ones = {"axis": axis, "sizes": (1,) * shape[axis]}
    found = []
    for part in _split(view, ones, shape):
        found += _squeeze(part, {"dimensions": (axis,)}, shape)
    return found


def _convert(view: ParamView, params: EquationParams, shape: Shape) -> list[ParamView]:
    return [view if jnp.issubdtype(params["new_dtype"], jnp.floating) else view.loose()]


def _dynamic_slice(
    view: ParamView, starts: Sequence[float], sizes: Shape, shape: Shape
) -> list[ParamView]:
    low = [
        min(max(int(start), 0), size - length)
        for start, size, length in zip(starts, shape, sizes, strict=True)
    ]
    return [_cut(view, low, [a + b for a, b in zip(low, sizes, strict=True)], shape)]


_RULES: dict[str, Callable[[ParamView, EquationParams, Shape], list[ParamView]]] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "broadcast_in_dim": _broadcast,
    "convert_element_type": _convert,
    "slice": _slice,
    "split": _split,
    "unstack": _unstack,
    "neg": lambda view, params, shape: [replace(view, scale=-view.scale)],
    **dict.fromkeys(("copy", "copy_p", "sharding_constraint"), lambda view, params, shape: [view]),
}


def moved_on(
    name: str, params: EquationParams, inputs: Sequence[object], shape: Shape
) -> list[ParamView] | None:
    """Return the views after the primitive ``name``, or None without a rule.

    Args:
        inputs: description of each operand: a ParamView, a constant, or None.
        shape: of the first operand.
    """
    first, *others = inputs
    scaled = times_number(name, inputs, ParamView)
    if scaled is not None:
        return [scaled]
    if not isinstance(first, ParamView):
        return None
    if not others and name in _RULES:
        return _RULES[name](first, params, shape)
    if name == "dynamic_slice":
        known = [each for each in map(_real, others) if each is not None]
        is_known = len(known) == len(others)
        return (
            _dynamic_slice(first, known, params["slice_sizes"], shape)
            if is_known
            else [first.loose()]
        )
    return None


def times_number(name: str, inputs: Sequence[object], kind: type[Scaled]) -> Scaled | None:
    """Scale one operand of this kind by a product or quotient with a number; else None."""
    if name not in ("mul", "div") or len(inputs) != 2:
        return None
    first, other = inputs[::-1] if name == "mul" and isinstance(inputs[1], kind) else inputs
    number = _real(other)
    scaled: Any = first
    if not isinstance(first, kind) or not number or not math.isfinite(number):
        return None
    scale = scaled.scale * (number if name == "mul" else 1 / number)
    # Kernels contain scale² beside squares of cotangents, which must not vanish or overflow.
    if not 1 / LARGEST_SCALE <= abs(scale) <= LARGEST_SCALE:
        return None
    return replace(scaled, scale=scale)


def _real(value: object) -> float | None:
    """Return a known real number, or None."""
    if not isinstance(value, int | float | np.ndarray | np.number) or np.iscomplexobj(value):
        return None
    return float(value)
