"""Functions around functions.

Accepted, scaled, packed or restricted models keep the inner one as ``function``.
"""

from __future__ import annotations

from typing import TypeVar

Wrapper = TypeVar("Wrapper")


def unwrapped(apply: object, kind: type[Wrapper]) -> tuple[Wrapper | None, tuple[type, ...]]:
    """Return (the inner object of this kind, the kinds around it)."""
    kinds: tuple[type, ...] = ()
    while apply is not None and not isinstance(apply, kind):
        kinds = (*kinds, type(apply))
        apply = getattr(apply, "function", None)
    return apply, kinds


def inner(apply: object, kind: type[Wrapper]) -> Wrapper | None:
    """Return the object of this kind inside of a wrapped function, or None."""
    return unwrapped(apply, kind)[0]
