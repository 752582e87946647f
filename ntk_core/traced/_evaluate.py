"""Running a traced program with something done at each use of a parameter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import DropVar, Jaxpr, JaxprEqn, Literal

from ntk_core.traced._uses import Site, Use, inner_program

Touch = Callable[[Use, Array, Array, Any], Array]  # (use, a, z, what belongs to the use) ↦ what goes on in place of z


@dataclass(frozen=True, eq=False)
class Step:
    """A stretch of equations without a use; a use; a call that holds some; or a scan that does."""

    jaxpr: Jaxpr  # of these equations alone
    use: Use | None = None
    eqn: JaxprEqn | None = None
    inner: "Plan | None" = None


@dataclass(frozen=True, eq=False)
class Plan:
    """A program cut at its uses."""

    jaxpr: Jaxpr
    consts: Sequence[Any]
    steps: tuple[Step, ...]
    uses: tuple[Use, ...]


def plan(jaxpr: Jaxpr, consts: Sequence[Any], uses: Mapping[Site, Use], place: Site = ()) -> Plan:
    """Cut a program at ``uses``; calls without one are left whole."""
    steps: list[Step] = []
    stretch: list[JaxprEqn] = []

    def end() -> None:
        if stretch:
            steps.append(Step(_program_of(jaxpr, stretch)))
            stretch.clear()

    for index, eqn in enumerate(jaxpr.eqns):
        here = (*place, index)
        if here in uses:
            end()
            steps.append(Step(_program_of(jaxpr, [eqn]), use=uses[here], eqn=eqn))
        elif any(site[: len(here)] == here for site in uses):
            end()
            inner = inner_program(eqn)
            assert inner is not None
            steps.append(Step(_program_of(jaxpr, [eqn]), eqn=eqn, inner=plan(*inner, uses, here)))
        else:
            stretch.append(eqn)
    end()
    within = tuple(use for site, use in uses.items() if site[: len(place)] == place)
    return Plan(jaxpr, consts, tuple(steps), within)


def _program_of(jaxpr: Jaxpr, eqns: Sequence[JaxprEqn]) -> Jaxpr:
    """Some equations as a program of what they read."""
    made = [var for eqn in eqns for var in eqn.outvars if not isinstance(var, DropVar)]
    own = set(made)
    read = dict.fromkeys(
        atom for eqn in eqns for atom in eqn.invars if not isinstance(atom, Literal) and atom not in own
    )
    return jaxpr.replace(constvars=[], invars=list(read), outvars=made, eqns=list(eqns))


def evaluate(
    plan: Plan,
    inputs: Sequence[Any],
    touch: Touch,
    belongings: Mapping[str, Any],
    threaded: Callable[[Use, int], bool],
    level: int = 0,
) -> tuple[list[Any], dict[str, Array]]:
    """(outputs, the input a of each use, with an axis in front for each scan around).

    Args:
        touch: what is done at each use that something belongs to.
        belongings: by name of the use; with an axis in front for each scan around along which they are ``threaded``.
        threaded: (use, how many scans lie outside) ↦ whether each step of that scan has its own.
    """
    env: dict[Any, Any] = dict(zip(plan.jaxpr.constvars, plan.consts, strict=True))
    env.update(zip(plan.jaxpr.invars, inputs, strict=True))
    seen: dict[str, Array] = {}

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for step in plan.steps:
        made: Sequence[Any] = step.jaxpr.outvars
        if step.inner is not None:
            assert step.eqn is not None
            made, values = step.eqn.outvars, [read(atom) for atom in step.eqn.invars]
            if step.eqn.primitive.name == "scan":
                results, inside = _scan(step.eqn, step.inner, values, touch, belongings, threaded, level)
            else:
                results, inside = evaluate(step.inner, values, touch, belongings, threaded, level)
            seen.update(inside)
        else:
            results = jax.core.eval_jaxpr(step.jaxpr, (), *(env[var] for var in step.jaxpr.invars))
        if step.use is not None:
            assert step.eqn is not None
            a = jnp.asarray(read(step.eqn.invars[1 - step.use.operand]))
            a = a if jnp.issubdtype(a.dtype, jnp.inexact) else a.astype(results[0].dtype)  # the index of a look-up
            seen[step.use.name] = a
            if step.use.name in belongings:
                results = [touch(step.use, a, results[0], belongings[step.use.name])]
        env.update(zip(made, results, strict=True))
    return [read(atom) for atom in plan.jaxpr.outvars], seen


def _scan(
    eqn: JaxprEqn,
    inner: Plan,
    values: list[Any],
    touch: Touch,
    belongings: Mapping[str, Any],
    threaded: Any,
    level: int,
) -> tuple[list[Any], dict[str, Array]]:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    consts, carry, xs = values[:num_consts], values[num_consts:][:num_carry], values[num_consts + num_carry :]
    here = {use.name: use for use in inner.uses if use.name in belongings}
    stepwise = {name: belongings[name] for name, use in here.items() if threaded(use, level)}

    def body(carry: tuple[Any, ...], both: Any) -> tuple[tuple[Any, ...], Any]:
        xs, own = both
        outputs, seen = evaluate(inner, [*consts, *carry, *xs], touch, {**belongings, **own}, threaded, level + 1)
        return tuple(outputs[:num_carry]), (outputs[num_carry:], seen)

    carried, (ys, seen) = lax.scan(
        body,
        tuple(carry),
        (xs, stepwise),
        length=eqn.params["length"],
        reverse=eqn.params["reverse"],
        unroll=eqn.params["unroll"],
    )
    return [*carried, *ys], seen
