"""Comparison of two traced programs, equation by equation.

Compiled code is cached by program, not by function: changed globals, closures or attributes
give another program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var

from ntk_core.traced._copies import PLUMBING, Rows, copied, in_order, same_copies
from ntk_core.traced._custom_rules import RULES, has_rule, rule_of_jax
from ntk_core.traced._row_axes import CALLS, ELEMENTWISE, Proof, RowsAlong
from ntk_core.traced._views import shape_of

IGNORED = frozenset({"name", "debug_info"})
SIZES = frozenset({"shape"})  # of results, whose shapes are compared
PARTS = frozenset({"limit_indices", "slice_sizes"})  # of the first operand
# Operations on arrays without rows, such as ``zeros((len(x), m))``, that treat all entries along
# the batch alike.
SPREAD = ELEMENTWISE | CALLS.keys() | {"scan", "while", "cond", "dynamic_update_slice"}
Numbered = dict[Var, int | JaxprEqn]  # variables by order of use, or the equation that copies them


@dataclass
class ProgramComparison:
    """Differences between two programs.

    Attributes:
        proof: what is known about the first program, for a batch, if the second is for a single
            row; None for equal shapes. The size of the batch may then appear in shapes along the
            axis of the rows, and nowhere else.
        rules: whether some custom derivatives may differ, which their equations do not show.
    """

    proof: Proof | None = None
    rules: bool = False

    def alike(self, one: ClosedJaxpr, two: ClosedJaxpr) -> bool:
        """Whether both programs compute the same; ``rules`` are not compared."""
        if one is two:
            return True
        if len(one.jaxpr.invars) != len(two.jaxpr.invars) or not _equal_arrays(
            one.consts, two.consts
        ):
            return False
        return self._programs(one.jaxpr, two.jaxpr)

    def _programs(self, one: Jaxpr, two: Jaxpr) -> bool:
        if len(one.constvars) != len(two.constvars) or len(one.invars) != len(two.invars):
            return False
        if len(one.outvars) != len(two.outvars):
            return False
        numbers = count()
        first: Numbered = {}
        second: Numbered = {}
        for left, right in zip(
            (*one.constvars, *one.invars), (*two.constvars, *two.invars), strict=True
        ):
            if not self._shapes(left, right):
                return False
            first[left] = second[right] = next(numbers)
        ones = list(self._counting(one, first))
        others = list(self._counting(two, second))
        if len(ones) != len(others):
            return False
        for eqn, other in zip(ones, others, strict=True):
            if not self._equations(eqn, other, first, second):
                return False
            for made, same_as in zip(eqn.outvars, other.outvars, strict=True):
                first[made] = second[same_as] = next(numbers)
        results = list(zip(one.outvars, two.outvars, strict=True))
        if not all(self._shapes(made, other) for made, other in results):
            return False
        return all(self._atoms(made, other, first, second) for made, other in results)

    def _atoms(
        self, one: Var | Literal, two: Var | Literal, first: Numbered, second: Numbered
    ) -> bool:
        """Whether two operands are the same array, and the same copy of it."""
        source, equations = _source(first, one)
        other, others = _source(second, two)
        if _known(first, source) != _known(second, other):
            return False
        if not equations and not others:
            return True
        rows = self._rows_of(source, other)
        if rows is None:
            return False
        single = shape_of(other)
        return same_copies(
            copied(in_order(single, rows), equations), copied(in_order(single), others)
        )

    def _rows_of(self, one: Var | Literal, two: Var | Literal) -> dict[int, Rows] | None:
        """Return the rows of an array of a batch, by axis.

        None if it differs otherwise from that of a single row.
        """
        axes = self._batch_axes(one, two)
        if axes is None:
            return None
        assert self.proof is not None
        known = set() if isinstance(one, Literal) else self.proof.known.get(one, set())
        found = {}
        for axis in axes:
            # Entries without rows are equal along this axis, so rows may be the slowest ones.
            places = {Rows(self.proof.size, 1, shape_of(two)[axis])}
            of_rows = [each for each in known if isinstance(each, RowsAlong)]
            if of_rows:
                places = {Rows(self.proof.size, each.outer, each.inner) for each in of_rows}
            if len(places) > 1:
                return None
            (found[axis],) = places
            if found[axis].outer * found[axis].inner != shape_of(two)[axis]:
                return None
        return found

    def _counting(self, jaxpr: Jaxpr, known: Numbered) -> Iterator[JaxprEqn]:
        """Yield relevant equations; results of plumbing are identified with their operands."""
        for eqn in jaxpr.eqns:
            if self.proof is not None and eqn.primitive.name in PLUMBING:
                known[eqn.outvars[0]] = eqn
            else:
                yield eqn

    def _equations(self, one: JaxprEqn, two: JaxprEqn, first: Numbered, second: Numbered) -> bool:
        if one.primitive is not two.primitive or len(one.invars) != len(two.invars):
            return False
        pairs = zip(one.invars, two.invars, strict=True)
        if not all(self._atoms(a, b, first, second) for a, b in pairs):
            return False
        if len(one.outvars) != len(two.outvars) or one.params.keys() != two.params.keys():
            return False
        if not all(self._shapes(a, b) for a, b in zip(one.outvars, two.outvars, strict=True)):
            return False
        if self.proof is not None and not self._same_for_all_sizes(one, two):
            return False
        left_out = IGNORED | RULES
        if self.proof is not None:
            left_out = left_out | SIZES | PARTS
        agree = all(
            self._values(one.params[key], two.params[key]) for key in one.params.keys() - left_out
        )
        if has_rule(one):
            rule = rule_of_jax(one)
            self.rules |= rule is None or rule is not rule_of_jax(two)
        return agree

    def _shapes(self, one: Var | Literal, two: Var | Literal) -> bool:
        """Whether two arrays have the same type and shape, apart from the size of the batch."""
        if self.proof is None:
            return bool(one.aval == two.aval)
        same_type = getattr(one.aval, "dtype", None) == getattr(two.aval, "dtype", None)
        return same_type and self._batch_axes(one, two) is not None

    def _batch_axes(self, one: Var | Literal, two: Var | Literal) -> set[int] | None:
        """Return the axes along which the shapes differ by the size of the batch.

        None if others differ.
        """
        assert self.proof is not None
        shape = shape_of(one)
        single = shape_of(two)
        if len(shape) != len(single):
            return None
        axes = {axis for axis in range(len(shape)) if shape[axis] != single[axis]}
        if any(shape[axis] != self.proof.size * single[axis] for axis in axes):
            return None
        found = set() if isinstance(one, Literal) else self.proof.known.get(one, set())
        for known in found:
            if isinstance(known, RowsAlong) and axes != {known.axis}:
                return None
            if not isinstance(known, RowsAlong) and not axes <= known.axes:
                return None
        return axes if found or not axes else None

    def _same_for_all_sizes(self, one: JaxprEqn, two: JaxprEqn) -> bool:
        """Whether an equation of a batch does for each row what that of one row does."""
        assert self.proof is not None
        name = one.primitive.name
        for at, (atom, other) in enumerate(zip(one.invars, two.invars, strict=True)):
            axes = self._batch_axes(atom, other)
            if axes is None:
                return False
            has_rows = isinstance(atom, Var) and any(
                isinstance(known, RowsAlong) for known in self.proof.known.get(atom, ())
            )
            if not axes or has_rows or name in SPREAD:
                continue
            if name == "dot_general":
                _, batch = one.params["dimension_numbers"]
                if axes <= set(batch[at]):
                    continue
            if name == "concatenate" and one.params["dimension"] not in axes:
                continue
            return False  # such as a sum over ones((len(x), m))
        for key in PARTS & one.params.keys():
            lengths = zip(shape_of(one.invars[0]), shape_of(two.invars[0]), strict=True)
            pairs = zip(one.params[key], two.params[key], strict=True)
            for pair, whole in zip(pairs, lengths, strict=True):
                if pair[0] != pair[1] and pair != whole:
                    return False
        return True

    def _values(self, one: object, two: object) -> bool:
        """Whether two parameters of an equation agree."""
        if one is two:
            return True
        if isinstance(one, ClosedJaxpr) and isinstance(two, ClosedJaxpr):
            return self.alike(one, two)
        if isinstance(one, Jaxpr) and isinstance(two, Jaxpr):
            return self._programs(one, two)
        if isinstance(one, int | np.integer) and isinstance(two, int | np.integer):
            return bool(one == two)
        if type(one) is not type(two):
            return False
        if isinstance(one, tuple | list) and isinstance(two, tuple | list):
            return len(one) == len(two) and all(map(self._values, one, two))
        if isinstance(one, np.ndarray | jax.Array):
            return _equal_arrays([one], [two])
        try:
            return bool(one == two)
        except (TypeError, ValueError):
            return False


def _source(known: Numbered, atom: Var | Literal) -> tuple[Var | Literal, list[JaxprEqn]]:
    """Return (the array that an operand copies, the equations between them in order)."""
    equations: list[JaxprEqn] = []
    while not isinstance(atom, Literal):
        found = known[atom]
        if isinstance(found, int):
            break
        equations.insert(0, found)
        atom = found.invars[0]
    return atom, equations


def _known(known: Numbered, atom: Var | Literal) -> object:
    """Return the number of a variable that is no copy, or the value of a literal."""
    if isinstance(atom, Literal):
        value = np.asarray(atom.val)
        return value.dtype.name, value.shape, value.tobytes()
    return known[atom]


def _equal_arrays(ones: Sequence[object], others: Sequence[object]) -> bool:
    return len(ones) == len(others) and all(map(_equal, ones, others))


@runtime_checkable
class _Typed(Protocol):
    """Array of JAX or NumPy, or a scalar with a type."""

    @property
    def dtype(self) -> np.dtype: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


def _equal(one: object, two: object) -> bool:
    """Whether two constants have equal bits; tracers and keys must be one object."""
    if one is two and not isinstance(one, np.ndarray):
        return True
    if isinstance(one, jax.core.Tracer) or isinstance(two, jax.core.Tracer):
        return False
    if (
        not isinstance(one, _Typed)
        or not isinstance(two, _Typed)
        or one.dtype != two.dtype
        or one.shape != two.shape
    ):
        return False
    if jax.dtypes.issubdtype(one.dtype, jax.dtypes.extended):
        return False
    left = np.asarray(one)
    right = np.asarray(two)
    if not left.ndim:
        return left.tobytes() == right.tobytes()
    # Bytes of large arrays are compared without copying them.
    left_bytes = np.ascontiguousarray(left).view(np.uint8)
    right_bytes = np.ascontiguousarray(right).view(np.uint8)
    return bool(np.array_equal(left_bytes, right_bytes))


def same(
    one: ClosedJaxpr, two: ClosedJaxpr, rules: tuple[ClosedJaxpr | None, ClosedJaxpr | None]
) -> bool:
    """Whether both programs compute the same.

    Args:
        rules: programs of their derivatives, compared if custom derivatives may differ.
    """
    found = ProgramComparison()
    if not found.alike(one, two):
        return False
    left, right = rules
    return not found.rules or (
        left is not None and right is not None and ProgramComparison().alike(left, right)
    )
