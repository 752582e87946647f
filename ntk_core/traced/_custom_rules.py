"""Whether a derivative rule in a program is one of JAX's own.

ReLU has such a rule; any other may be any function.

A rule is a Python function that JAX calls when it differentiates a program; the program itself does
not show it. Rules of JAX are known to fit their function and not to change. Any other rule is
compared by what it computes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType

import jax
from jax.extend.core import Jaxpr, JaxprEqn, subjaxprs

# Parameters of equations that are functions or hold them.
RULES = frozenset({"jvp_jaxpr_fun", "jvp_jaxpr_thunk", "fwd_jaxpr_thunk", "bwd", "out_trees"})
# JAX puts a few functions around a rule for each transformation, such as jit, vmap and
# checkpoint; our choice.
LARGEST_SEARCH = 64
_OF_JAX = Path(jax.__file__).parent
Rule = Callable[..., object]


def has_rules(jaxpr: Jaxpr) -> bool:
    """Whether a function in this program has its own derivative rule.

    A rule that is proven to be JAX's own does not count.
    """
    if any(has_rule(eqn) and rule_of_jax(eqn) is None for eqn in jaxpr.eqns):
        return True
    return any(map(has_rules, subjaxprs(jaxpr)))


def has_rule(eqn: JaxprEqn) -> bool:
    """Whether an equation calls a function that has its own derivative rule."""
    return not RULES.isdisjoint(eqn.params)


def rule_of_jax(eqn: JaxprEqn) -> Rule | None:
    """Return the rule of a function that JAX defines, None if it may be another one.

    The file of a rule does not show who chose it: ``defjvps``, ``custom_gradient`` and
    ``partial(jax.jvp, g)`` put functions of JAX around any rule, and ``functools.wraps`` copies the
    name of another function. A rule is JAX's if

    - a module of JAX contains a ``custom_jvp`` of the name and file of the called function,
    - the equation leads to the very rule of that object, and
    - this rule, which can be redefined, consists of functions of JAX.

    Functions with ``nondiff_argnums`` are left out: rules may read values there that the program
    does not contain, as ``jax.lax.custom_root`` reads the equation to solve. So is each
    ``custom_vjp``: JAX has none without such values.
    """
    known = _defined_by_jax(eqn)
    if known is None or known.nondiff_argnums or known.jvp is None:
        return None
    if not _consists_of_jax(known.jvp, known):
        return None
    return known.jvp if _leads_to(eqn.params["jvp_jaxpr_fun"], known.jvp) else None


def _defined_by_jax(eqn: JaxprEqn) -> jax.custom_jvp | None:
    """Return the object in a module of JAX of which the equation seems to be a call."""
    if "jvp_jaxpr_fun" not in eqn.params:
        return None
    origin = eqn.params["call_jaxpr"].jaxpr.debug_info
    file = getattr(origin, "func_filename", None)
    if file is None or not _is_of_jax(file):
        return None
    for module in _modules_of(file):
        found = vars(module).get(origin.func_name)
        if isinstance(found, jax.custom_jvp):
            return found
    return None


@cache  # a function's module is complete when the function is called
def _modules_of(file: str) -> tuple[ModuleType, ...]:
    found = []
    for name, module in tuple(sys.modules.items()):
        if name.startswith("jax.") and getattr(module, "__file__", None) == file:
            found.append(module)
    return tuple(found)


@cache
def _is_of_jax(file: str) -> bool:
    """Whether a file belongs to JAX; ``jaxopt/rules.py`` beside it does not."""
    return Path(file).is_relative_to(_OF_JAX)


def _consists_of_jax(part: object, known: jax.custom_jvp) -> bool:
    """Whether a rule and the rules inside it, as by ``defjvps``, are plain functions of JAX."""
    if part is known or part is None:
        return True
    if isinstance(part, tuple):
        return all(_consists_of_jax(each, known) for each in part)
    if not isinstance(part, FunctionType) or not _is_of_jax(part.__code__.co_filename):
        return False
    return all(_consists_of_jax(each, known) for each in _contents(part))


def _leads_to(start: object, rule: Rule) -> bool:
    """Whether an equation's parameter calls this rule.

    It does so through functions of JAX, and no other function.
    """
    waiting = [start]
    seen: set[int] = set()
    is_found = False
    while waiting:
        part = waiting.pop()
        if part is rule:
            is_found = True
            continue
        if id(part) in seen:
            continue
        seen.add(id(part))
        if len(seen) > LARGEST_SEARCH:
            return False
        wrapped = _wrapped(part)
        if wrapped is not None:
            waiting.append(wrapped)
        elif isinstance(part, FunctionType) and _is_of_jax(part.__code__.co_filename):
            inside = _contents(part)
            waiting.extend(each for each in inside if callable(each) or _wrapped(each) is not None)
        else:
            return False
    return is_found


def _wrapped(part: object) -> object | None:
    """Return the function that JAX has wrapped together with transformations, or None."""
    return getattr(part, "f", None) if hasattr(part, "transforms") else None


def _contents(function: FunctionType) -> list[object]:
    """Return the values that a function keeps in its closure."""
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # a name that has no value yet
            continue
    return found
