"""Allowed values of a pydantic field in words, for error messages."""

import types
import typing
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def allowed_values(info: FieldInfo) -> str:
    """Describe the accepted values of a setting: ``an integer from 1 to 16``."""
    return _describe(info.annotation, info.metadata)


def flatten(metadata: typing.Iterable[object]) -> list[object]:
    """Marks of a field, also those inside annotated fields."""
    found: list[object] = []
    for item in metadata:
        found += item.metadata if isinstance(item, FieldInfo) else [item]
    return found


def limits(metadata: list[object]) -> tuple[float | None, float | None]:
    """(lowest, highest) of a number; None without a bound."""
    lowest = highest = None
    for item in metadata:
        lowest = getattr(item, "ge", getattr(item, "gt", None)) if lowest is None else lowest
        highest = getattr(item, "le", getattr(item, "lt", None)) if highest is None else highest
    return lowest, highest


def field_lengths(metadata: list[object]) -> tuple[int, int | None]:
    """(fewest, most) entries of a list; None without a bound."""
    low = 0
    high = None
    for item in metadata:
        low = getattr(item, "min_length", None) or low
        high = getattr(item, "max_length", None) or high
    return low, high


def _describe(annotation: Any, metadata: typing.Iterable[object]) -> str:
    flat = flatten(metadata)
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Annotated:
        return _describe(arguments[0], [*annotation.__metadata__, *flat])
    if origin is Literal:
        return (
            "one of " + ", ".join(map(str, arguments)) if len(arguments) > 1 else str(arguments[0])
        )
    if origin in (typing.Union, types.UnionType):
        return " or ".join("nothing" if a is type(None) else _describe(a, flat) for a in arguments)
    if origin is tuple:
        low, high = field_lengths(flat)
        several = f"{low} to {high} " if high is not None else ""
        if _is_group(arguments[0]):
            return f"{several}groups of settings"
        return f"{several}values, each {_describe(arguments[0], [])}"
    if annotation is bool:
        return "true or false"
    if annotation in (int, float):
        noun = "an integer" if annotation is int else "a number"
        least, most = limits(flat)
        above = any(getattr(item, "gt", None) is not None for item in flat)
        if least is None or most is None:
            return noun
        below = "below " if any(getattr(item, "lt", None) is not None for item in flat) else ""
        return (
            f"{noun} above {least:,} up to {most:,}"
            if above
            else f"{noun} from {least:,} to {below}{most:,}"
        )
    if _is_group(annotation):
        return "an object with the settings " + ", ".join(annotation.model_fields)
    return "text"


def _is_group(annotation: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
