"""Types in signatures as readers write them: ``array (n, C)``, ``array-like``."""

from __future__ import annotations

import re
from collections.abc import Iterator

# jaxtyping prints Float[Array, 'n C']; numpy's ArrayLike and jax's are long unions.
_SHAPED = re.compile(
    r"\w+\[(?:Any|Array|ndarray|_Buffer|_SupportsArray|_NestedSequence|bytes|str), '([^']*)'\]"
)
_CONVERTED = re.compile(r"number|_\w+(?:\[.*\])?|\w+\[_\w+, '.*'\]")
_SCALARS = {"Array", "ndarray", "bool", "number", "int", "float", "complex", "bytes", "str"}


def readable(annotation: str) -> str:
    """Return an annotation with shapes in words.

    Everything that becomes an array has one name.
    """
    given = list(_split(annotation, " | "))
    members = [_member(each) for each in given]
    if any(_CONVERTED.fullmatch(each) for each in given):
        shape = next(
            (each.removeprefix("array") for each in members if each.startswith("array")), ""
        )
        others = [
            member
            for each, member in zip(given, members, strict=True)
            if not (each in _SCALARS or member.startswith("array") or _CONVERTED.fullmatch(each))
        ]
        members = [f"array-like{shape}", *others]
    return " | ".join(dict.fromkeys(members))


def plain_defaults(signature: str) -> str:
    """Replace defaults such as ``<class 'map'>`` by names, which Sphinx can parse."""
    return re.sub(
        r"<class '(?:\w+\.)*(\w+)'>",
        r"\1",
        re.sub(r"<function [^ ]*<lambda>[^>=]*>", "...", signature),
    )


def _member(text: str) -> str:
    if text.startswith("Key["):
        return "key"
    if found := _SHAPED.fullmatch(text):
        axes = ", ".join("…" if axis == "..." else axis for axis in found[1].split())
        if not axes:
            return "scalar"
        return "array" if axes == "…" else f"array ({axes})"
    name, bracket, inner = text.removeprefix("~typing.").partition("[")
    if not bracket or not text.endswith("]") or name == "Literal":
        return text
    if name == "ndarray":
        return "array"
    parts = [readable(each) for each in _split(inner[:-1], ", ")]
    return parts[0] if name == "Annotated" else f"{name}[{', '.join(parts)}]"


def _split(text: str, separator: str) -> Iterator[str]:
    """Yield the parts between separators outside brackets."""
    depth = start = 0
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if depth == 0 and text.startswith(separator, place):
            yield text[start:place]
            start = place + len(separator)
    yield text[start:]
