"""Evaluation of traced programs with an action at each use of a parameter."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.extend.core import Jaxpr, JaxprEqn
from jaxtyping import PyTree

from ntk_core.traced._positions import row_numbers
from ntk_core.traced._uses import Site, Use, inner_program
from ntk_core.traced._walk import Value, evaluated_alone, value_of, walk

Touch = Callable[[Use, Array, Array, PyTree], Array]
Threaded = Callable[[Use, int], bool]


class Changes(NamedTuple):
    """Actions at uses.

    Attributes:
        uses: of the whole program, by place.
        taps: the same, by the place where z is complete.
        touch: (use, a, z, belongings of the use) ↦ replacement of z.
        belongings: by name of the touched use; with a leading axis for each enclosing scan along
            which they are ``threaded``.
        threaded: (use, number of outer scans) ↦ whether each step of that scan has its own.
    """

    uses: Mapping[Site, Use]
    taps: Mapping[Site, Use]
    touch: Touch
    belongings: Mapping[str, PyTree]
    threaded: Threaded


def evaluate(
    jaxpr: Jaxpr,
    consts: Sequence[Value],
    inputs: Sequence[Value],
    changes: Changes,
    place: Site = (),
    level: int = 0,
) -> tuple[list[Value], dict[str, Array]]:
    """Return (outputs, input a of each use) of the program at ``place``.

    Inputs have a leading axis per enclosing scan.
    """
    seen: dict[str, Array] = {}

    def equation(index: int, eqn: JaxprEqn, operands: list[Value]) -> list[Value]:
        here = (*place, index)
        use = changes.uses.get(here)
        if use is None and _has_uses(changes, here):
            run = _scan if eqn.primitive.name == "scan" else _call
            results, inside = run(eqn, operands, changes, here, level)
            seen.update(inside)
        else:
            results = evaluated_alone(jaxpr, eqn, operands)
        if use is not None:
            a = jnp.asarray(operands[1 - use.operand])
            if use.kind == "look-up":
                seen[use.name] = row_numbers(use, a)
            else:
                seen[use.name] = a.astype(jnp.result_type(a, results[0]))
        tapped = changes.taps.get(here)
        if tapped is not None and tapped.name in changes.belongings:
            belongings = changes.belongings[tapped.name]
            results = [changes.touch(tapped, seen[tapped.name], results[0], belongings)]
        return results

    outputs = walk(jaxpr, consts, inputs, value_of, equation)
    return outputs, seen


def _has_uses(changes: Changes, place: Site) -> bool:
    """Whether the equation at a place contains uses in an inner program."""
    return any(site[: len(place)] == place for site in changes.uses)


def _call(
    eqn: JaxprEqn, values: list[Value], changes: Changes, here: Site, level: int
) -> tuple[list[Value], dict[str, Array]]:
    inner = inner_program(eqn)
    assert inner is not None
    return evaluate(*inner, values, changes, here, level)


def _scan(
    eqn: JaxprEqn, values: list[Value], changes: Changes, here: Site, level: int
) -> tuple[list[Value], dict[str, Array]]:
    num_consts = eqn.params["num_consts"]
    num_carry = eqn.params["num_carry"]
    consts = values[:num_consts]
    carry = values[num_consts:][:num_carry]
    xs = values[num_consts + num_carry :]
    # Belongings with an axis of this scan's steps; each step takes its own.
    stepwise = {}
    for site, use in changes.uses.items():
        is_inside = site[: len(here)] == here
        if is_inside and use.name in changes.belongings and changes.threaded(use, level):
            stepwise[use.name] = changes.belongings[use.name]

    def body(carry: tuple[Value, ...], both: PyTree) -> tuple[tuple[Value, ...], PyTree]:
        xs, own = both
        there = changes._replace(belongings={**changes.belongings, **own})
        outputs, seen = _call(eqn, [*consts, *carry, *xs], there, here, level + 1)
        return tuple(outputs[:num_carry]), (outputs[num_carry:], seen)

    how = {name: eqn.params[name] for name in ("length", "reverse", "unroll")}
    carried, (ys, seen) = lax.scan(body, tuple(carry), (xs, stepwise), **how)
    return [*carried, *ys], seen
