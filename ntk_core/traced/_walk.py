"""The one loop over the equations of a program.

What a reader knows of operands becomes what it knows of results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
from jax.extend.core import DropVar, Jaxpr, JaxprEqn, Literal, Var
from jaxtyping import PyTree

Known = TypeVar("Known")
Value = Any  # an array of JAX or NumPy; None for a dropped result


def walk(
    jaxpr: Jaxpr,
    consts: Sequence[Known],
    inputs: Sequence[Known],
    of_literal: Callable[[Literal], Known],
    equation: Callable[[int, JaxprEqn, list[Known]], Sequence[Known]],
) -> list[Known]:
    """Follow values, or what is known of them, through a program in order.

    Return those of its outputs.

    Args:
        consts, inputs: of the program's constants and inputs.
        of_literal: of a number that stands in an equation.
        equation: (place, equation, operands) ↦ results, one for each output of the equation. It
            enters inner programs (calls, scans) itself.
    """
    known: dict[Var, Known] = dict(zip(jaxpr.constvars, consts, strict=True))
    known.update(zip(jaxpr.invars, inputs, strict=True))

    def read(atom: Var | Literal) -> Known:
        return of_literal(atom) if isinstance(atom, Literal) else known[atom]

    for place, eqn in enumerate(jaxpr.eqns):
        operands = [read(atom) for atom in eqn.invars]
        results = equation(place, eqn, operands)
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def value_of(literal: Literal) -> Value:
    """Return the number of a literal, for walks that evaluate."""
    return literal.val


def evaluated_alone(jaxpr: Jaxpr, eqn: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
    """Evaluate one equation of a program; None for results that are dropped."""
    values = {}
    for atom, value in zip(eqn.invars, operands, strict=True):
        if not isinstance(atom, Literal):
            values[atom] = value
    kept = [var for var in eqn.outvars if not isinstance(var, DropVar)]
    alone = jaxpr.replace(constvars=[], invars=list(values), outvars=kept, eqns=[eqn])
    found = iter(jax.core.eval_jaxpr(alone, (), *values.values()))
    return [None if isinstance(var, DropVar) else next(found) for var in eqn.outvars]


@dataclass(frozen=True)
class Rewritten(ABC):
    """A function whose program is evaluated by other operations.

    Equal for equal functions, as compiled programs need.
    """

    function: Callable[..., PyTree]

    def __call__(self, *inputs: PyTree) -> PyTree:
        closed, outputs = jax.make_jaxpr(self.function, return_shape=True)(*inputs)
        found = self.evaluated(closed.jaxpr, closed.consts, *jax.tree.leaves(inputs))
        return jax.tree.unflatten(jax.tree.structure(outputs), found)

    @staticmethod
    @abstractmethod
    def evaluated(jaxpr: Jaxpr, consts: Sequence[Value], *inputs: Value) -> list[Value]:
        """Return the outputs of a program by the other operations."""
