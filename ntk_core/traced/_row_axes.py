"""Description of an array in a batched program: its rows, or its axes without rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from jax.extend.core import Literal, Var

from ntk_core.traced._views import shape_of


class RowsAlong(NamedTuple):
    """An array of rows.

    Entry (o, i, j) of its axis, of size outer · n · inner, comes from row i.
    """

    axis: int
    outer: int = 1
    inner: int = 1


class Alike(NamedTuple):
    """An array independent of rows, with the axes along which its entries are equal."""

    axes: frozenset[int]


Known = RowsAlong | Alike
NOTHING = Alike(frozenset())
_ELEMENTWISE = (
    "abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt",
    "ceil clamp clz complex conj convert_element_type copy copy_p cos cosh digamma div eq erf",
    "erf_inv erfc exp exp2 expm1 floor ge gt imag integer_pow is_finite le lgamma log log1p",
    "logistic lt max min mul ne neg nextafter not or population_count pow real",
    "reduce_precision rem round rsqrt select_n shift_left shift_right_arithmetic",
    "shift_right_logical sign sin sinh sqrt square stop_gradient sub tan tanh xor",
)
ELEMENTWISE = frozenset(" ".join(_ELEMENTWISE).split())
_REDUCTIONS = (
    "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum",
    "reduce_xor",
)
REDUCTIONS = frozenset(" ".join(_REDUCTIONS).split())
# Calls whose rows are followed inside.
CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
}
RUNNING = frozenset({"cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum"})


@dataclass(frozen=True)
class Proof:
    """Known row axes of the arrays of a batched program.

    Attributes:
        size: rows of the batch, at least two.
        known: descriptions of each array; several if its program runs at several places.
    """

    size: int
    known: dict[Var, set[Known]] = field(default_factory=dict)

    def record(self, var: Var, known: Known) -> None:
        self.known.setdefault(var, set()).add(known)


class Unproven(Exception):
    """Operation where the proof fails."""


def alike_along(axis: int) -> Callable[[Var | Literal, Known], bool]:
    """Whether an operand has equal entries along this axis."""

    def check(atom: Var | Literal, known: Known) -> bool:
        shape = shape_of(atom)
        return not shape or (isinstance(known, Alike) and (axis in known.axes or shape[axis] == 1))

    return check
