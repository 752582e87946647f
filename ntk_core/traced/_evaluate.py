"""Evaluation of traced programs with an action at each use of a parameter."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import DropVar, Jaxpr, JaxprEqn, Literal, Var
from jaxtyping import PyTree

from ntk_core.traced._positions import row_numbers
from ntk_core.traced._uses import Site, Use, inner_program

Touch = Callable[[Use, Array, Array, PyTree], Array]
Threaded = Callable[[Use, int], bool]


class Changes(NamedTuple):
    """Actions at uses.

    Attributes:
        uses: of the whole program, by place.
        taps: the same, by the place where z is complete.
        touch: (use, a, z, belongings of the use) ↦ replacement of z.
        belongings: by name of the touched use; with a leading axis for each enclosing scan along which they are
            ``threaded``.
        threaded: (use, number of outer scans) ↦ whether each step of that scan has its own.
    """

    uses: Mapping[Site, Use]
    taps: Mapping[Site, Use]
    touch: Touch
    belongings: Mapping[str, PyTree]
    threaded: Threaded


def evaluate(
    jaxpr: Jaxpr,
    consts: Sequence[Array],
    inputs: Sequence[Array],
    changes: Changes,
    place: Site = (),
    level: int = 0,
) -> tuple[list[Array], dict[str, Array]]:
    """Return (outputs, input a of each use, with a leading axis per enclosing scan) of the program at ``place``."""
    env: dict[Var, Array] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, inputs, strict=True))
    seen: dict[str, Array] = {}

    def read(atom: Var | Literal) -> Array:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for index, eqn in enumerate(jaxpr.eqns):
        here, use = (*place, index), changes.uses.get((*place, index))
        made = eqn.outvars
        if use is None and any(site[: len(here)] == here for site in changes.uses):
            values = [read(atom) for atom in eqn.invars]
            run = _scan if eqn.primitive.name == "scan" else _call
            results, inside = run(eqn, values, changes, here, level)
            seen.update(inside)
        else:
            made = [var for var in eqn.outvars if not isinstance(var, DropVar)]
            names = list(
                dict.fromkeys(atom for atom in eqn.invars if not isinstance(atom, Literal))
            )
            alone = jaxpr.replace(constvars=[], invars=names, outvars=made, eqns=[eqn])
            results = jax.core.eval_jaxpr(alone, (), *map(read, names))
        if use is not None:
            a = jnp.asarray(read(eqn.invars[1 - use.operand]))
            a = (
                row_numbers(use, a)
                if use.kind == "look-up"
                else a.astype(jnp.result_type(a, results[0]))
            )
            seen[use.name] = a
        tapped = changes.taps.get(here)
        if tapped is not None and tapped.name in changes.belongings:
            z = changes.touch(
                tapped, seen[tapped.name], results[0], changes.belongings[tapped.name]
            )
            results = [z]
        env.update(zip(made, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars], seen


def _call(
    eqn: JaxprEqn, values: list[Array], changes: Changes, here: Site, level: int
) -> tuple[list[Array], dict[str, Array]]:
    inner = inner_program(eqn)
    assert inner is not None
    return evaluate(*inner, values, changes, here, level)


def _scan(
    eqn: JaxprEqn, values: list[Array], changes: Changes, here: Site, level: int
) -> tuple[list[Array], dict[str, Array]]:
    num_consts, num_carry = eqn.params["num_consts"], eqn.params["num_carry"]
    consts, carry, xs = (
        values[:num_consts],
        values[num_consts:][:num_carry],
        values[num_consts + num_carry :],
    )
    within = [use for site, use in changes.uses.items() if site[: len(here)] == here]
    own = [
        use.name
        for use in within
        if use.name in changes.belongings and changes.threaded(use, level)
    ]
    stepwise = {name: changes.belongings[name] for name in own}

    def body(carry: tuple[Array, ...], both: PyTree) -> tuple[tuple[Array, ...], PyTree]:
        xs, own = both
        there = changes._replace(belongings={**changes.belongings, **own})
        outputs, seen = _call(eqn, [*consts, *carry, *xs], there, here, level + 1)
        return tuple(outputs[:num_carry]), (outputs[num_carry:], seen)

    how = {name: eqn.params[name] for name in ("length", "reverse", "unroll")}
    carried, (ys, seen) = lax.scan(body, tuple(carry), (xs, stepwise), **how)
    return [*carried, *ys], seen
