"""Choice of the parameters that are differentiated, and of the route.

What do ``trainable=`` and ``route=`` name?

Every public function that differentiates parameters takes ``trainable``. The chosen parameters are
those of the kernel, the Hessian or the training; all others are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput, kind_of
from ntk_core.networks.architectures import Network
from ntk_core.traced._entrance import check_model
from ntk_core.traced._names import leaf_name, leaf_names
from ntk_core.traced._program import Model
from ntk_core.traced._trace import RestrictedFunction

# A tree of booleans, names with wildcards, or a predicate on names; None for all parameters.
Trainable: TypeAlias = PyTree | str | Sequence[str] | Callable[[str], object] | None
# By layers where there are any, or by plain derivatives alone.
Route: TypeAlias = Literal["auto", "plain"]
KINDS = 'names such as "head.*", a predicate on names, or a tree of booleans like params'
NAMES_SHOWN = 8  # our choice


def restricted(net: Model, params: PyTree, trainable: Trainable, route: Route = "auto") -> Model:
    """Return a model whose chosen parameters alone are differentiated; ``net`` itself for None.

    A network becomes a function of its parameters: its frozen layers and masks remain constants.
    The plain route ignores layers.

    Raises:
        InvalidInput: for names that match nothing, with the nearest one, another tree, or no
            parameter at all; for another route.
    """
    if not isinstance(route, str) or route not in get_args(Route):
        raise InvalidInput("route", repr(route), " or ".join(map(repr, get_args(Route))))
    is_plain = route == "plain"
    if trainable is None and not is_plain:
        return net
    check_model(net, params)
    names = leaf_names([path for path, _ in jax.tree_util.tree_leaves_with_path(params)])
    movable = _movable(net, params)
    chosen = movable
    if trainable is not None:
        chosen = _chosen(trainable, params, names, movable)
    moves = tuple(wanted and moving for wanted, moving in zip(chosen, movable, strict=True))
    if not any(moves):
        given = f"a choice of none of {len(names)} parameters"
        raise InvalidInput("trainable", given, f"one or more of {_listed(names, movable)}")
    return RestrictedFunction(net.apply if isinstance(net, Network) else net, moves, is_plain)


def _movable(net: Model, params: PyTree) -> list[bool]:
    """Whether each leaf could be differentiated: floats, and of a network those that it trains."""
    if isinstance(net, Network):
        trained, _ = net.partition(params)
        kept = {leaf_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(trained)}
        return [leaf_name(path) in kept for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    return [
        hasattr(leaf, "dtype") and bool(jnp.issubdtype(leaf.dtype, jnp.inexact))
        for leaf in jax.tree.leaves(params)
    ]


def _chosen(
    trainable: Trainable, params: PyTree, names: list[str], movable: list[bool]
) -> list[bool]:
    if isinstance(trainable, str):
        return _matched([trainable], names, movable)
    leaves = jax.tree.leaves(trainable)
    is_group = isinstance(trainable, list | tuple | set | frozenset)
    patterns = sorted(trainable) if isinstance(trainable, set | frozenset) else leaves
    if is_group and patterns and all(isinstance(each, str) for each in patterns):
        return _matched(patterns, names, movable)
    if all(isinstance(leaf, bool | np.bool_) for leaf in leaves) and leaves:
        return _flags(trainable, params)
    if callable(trainable):
        return [_asked(trainable, name) for name in names]
    raise InvalidInput("trainable", kind_of(trainable), KINDS)


def _matched(patterns: Sequence[str], names: list[str], movable: list[bool]) -> list[bool]:
    """Whether each name matches a pattern, or is inside of a part of the tree that does."""
    found = [False] * len(names)
    for pattern in patterns:
        own = [fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*") for name in names]
        if not any(own):
            parts = {
                name.rsplit(".", cut)[0] for name in names for cut in range(name.count(".") + 1)
            }
            nearest = next(iter(get_close_matches(pattern, sorted(parts), 1, cutoff=0.3)), None)
            close = f"{nearest}, the nearest name, or another of " if nearest else "one of "
            raise InvalidInput(
                "trainable",
                f"{pattern!r}, which matches no parameter,",
                close + _listed(names, movable),
                nearest,
            )
        matches = [name for name, is_own in zip(names, own, strict=True) if is_own]
        usable = any(moves for moves, is_own in zip(movable, own, strict=True) if is_own)
        if not usable:
            given = f"{pattern!r}, which matches only the constant {matches[0]},"
            raise InvalidInput("trainable", given, f"one or more of {_listed(names, movable)}")
        found = [before or now for before, now in zip(found, own, strict=True)]
    return found


def _flags(trainable: PyTree, params: PyTree) -> list[bool]:
    """Return a boolean for each leaf; one boolean may stand for a part of the tree.

    Raises:
        InvalidInput: for a tree of another structure.
    """
    try:
        filled = jax.tree.map(
            lambda flag, part: jax.tree.map(lambda _: bool(flag), part), trainable, params
        )
    except (ValueError, TypeError, KeyError):
        given = f"a tree {jax.tree.structure(trainable)}"
        raise InvalidInput(
            "trainable", given, f"booleans in a tree like {jax.tree.structure(params)}"
        ) from None
    return list(jax.tree.leaves(filled))


def _asked(predicate: Callable[[str], object], name: str) -> bool:
    answer = predicate(name)
    if not isinstance(answer, bool | np.bool_):
        given = f"a function that returns {kind_of(answer)} for {name}"
        raise InvalidInput("trainable", given, "one that returns True or False")
    return bool(answer)


def _listed(names: list[str], movable: list[bool]) -> str:
    """List the parameters that can be chosen, the first ones if there are many."""
    known = [name for name, moves in zip(names, movable, strict=True) if moves]
    shown = ", ".join(known[:NAMES_SHOWN])
    more = len(known) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
