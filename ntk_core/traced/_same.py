"""Comparison of two traced programs, equation by equation.

Compiled code is cached by program, not by function: changed globals, closures or attributes give another program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, subjaxprs

# They only rearrange numbers; JAX omits some for a batch of one.
PLUMBING = frozenset({"broadcast_in_dim", "reshape", "squeeze", "expand_dims"})
IGNORED = frozenset({"name", "debug_info"})
RULES = frozenset(
    {"jvp_jaxpr_fun", "jvp_jaxpr_thunk", "fwd_jaxpr_thunk", "bwd", "out_trees"}
)  # custom derivatives
Numbered = dict[
    Var, int | Var | Literal
]  # variables by order of use, or the variable that they copy
_OF_JAX = str(Path(jax.__file__).parent)


@dataclass
class Comparison:
    """Differences between two programs.

    Attributes:
        size: batch size of the first program if the second is for a single row; None for equal shapes.
        rules: whether some functions among their parameters, such as custom derivatives, are different objects.
    """

    size: int | None = None
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
        numbers = count()
        first: Numbered = {}
        second: Numbered = {}
        for left, right in zip(
            (*one.constvars, *one.invars), (*two.constvars, *two.invars), strict=True
        ):
            if not self._shapes(left.aval, right.aval):
                return False
            first[left] = second[right] = next(numbers)
        ones, others = list(self._counting(one, first)), list(self._counting(two, second))
        if len(ones) != len(others):
            return False
        for eqn, other in zip(ones, others, strict=True):
            if not self._equations(eqn, other, first, second):
                return False
            for made, same_as in zip(eqn.outvars, other.outvars, strict=True):
                first[made] = second[same_as] = next(numbers)
        return [_known(first, each) for each in one.outvars] == [
            _known(second, each) for each in two.outvars
        ]

    def _counting(self, jaxpr: Jaxpr, known: Numbered) -> Iterator[JaxprEqn]:
        """Yield relevant equations; results of plumbing are identified with their operands."""
        for eqn in jaxpr.eqns:
            if self.size is not None and eqn.primitive.name in PLUMBING:
                known[eqn.outvars[0]] = eqn.invars[0]
            else:
                yield eqn

    def _equations(self, one: JaxprEqn, two: JaxprEqn, first: Numbered, second: Numbered) -> bool:
        if one.primitive is not two.primitive or len(one.invars) != len(two.invars):
            return False
        if any(
            _known(first, a) != _known(second, b)
            for a, b in zip(one.invars, two.invars, strict=True)
        ):
            return False
        if len(one.outvars) != len(two.outvars) or one.params.keys() != two.params.keys():
            return False
        if not all(
            self._shapes(a.aval, b.aval) for a, b in zip(one.outvars, two.outvars, strict=True)
        ):
            return False
        agree = all(
            self._values(one.params[key], two.params[key])
            for key in one.params.keys() - IGNORED - RULES
        )
        for key in RULES & one.params.keys() - {"out_trees"}:
            self.rules |= not (of_jax(one.params[key]) and of_jax(two.params[key]))
        return agree

    def _shapes(self, one: object, two: object) -> bool:
        if self.size is not None:
            return bool(getattr(one, "dtype", None) == getattr(two, "dtype", None))
        return bool(one == two)

    def _values(self, one: object, two: object) -> bool:
        """Whether two parameters of an equation agree."""
        if one is two:
            return True
        if isinstance(one, ClosedJaxpr) and isinstance(two, ClosedJaxpr):
            return self.alike(one, two)
        if isinstance(one, Jaxpr) and isinstance(two, Jaxpr):
            return self._programs(one, two)
        if isinstance(one, int | np.integer) and isinstance(two, int | np.integer):
            return bool(one == two or (self.size is not None and one == two * self.size))
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


def of_jax(rule: object) -> bool:
    """Whether JAX defines a function's derivative, such as ReLU's, so that it cannot change."""
    found = getattr(getattr(rule, "debug_info", None), "func_filename", None)
    return bool(found) and str(found).startswith(_OF_JAX)


def _known(known: Numbered, atom: Var | Literal) -> object:
    """Return the number of a variable, or the value of a literal."""
    if isinstance(atom, Literal):
        value = np.asarray(atom.val)
        return value.dtype.name, value.shape, value.tobytes()
    found = known[atom]
    return found if isinstance(found, int) else _known(known, found)


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
    left, right = np.asarray(one), np.asarray(two)
    return bool(np.array_equal(np.ascontiguousarray(left).view(np.uint8), np.ascontiguousarray(right).view(np.uint8))
                if left.ndim else left.tobytes() == right.tobytes())  # fmt: skip


def has_rules(jaxpr: Jaxpr) -> bool:
    """Whether a function in this program has a custom derivative not from JAX."""
    own = any(
        not of_jax(eqn.params[key])
        for eqn in jaxpr.eqns
        for key in RULES & eqn.params.keys() - {"out_trees"}
    )
    return own or any(map(has_rules, subjaxprs(jaxpr)))


def same(
    one: ClosedJaxpr, two: ClosedJaxpr, rules: tuple[ClosedJaxpr | None, ClosedJaxpr | None]
) -> bool:
    """Whether both programs compute the same.

    Args:
        rules: programs of their derivatives, compared if custom derivatives are different objects.
    """
    found = Comparison()
    if not found.alike(one, two):
        return False
    left, right = rules
    return not found.rules or (
        left is not None and right is not None and Comparison().alike(left, right)
    )
