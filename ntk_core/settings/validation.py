"""From pydantic's complaints to one sentence per setting: its name, what was given, what is allowed."""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ntk_core.errors import InvalidInput


def problems(model: type[BaseModel], error: ValidationError) -> tuple[InvalidInput, ...]:
    """One :class:`InvalidInput` a setting, named by its dotted path in ``model`` (``architecture.depth``)."""
    found: dict[str, InvalidInput] = {}
    for detail in error.errors(include_url=False):
        path, info = _field_at(model, detail["loc"])
        raised = detail.get("ctx", {}).get("error")
        if isinstance(raised, InvalidInput):
            prefix = ".".join(str(part) for part in detail["loc"])
            name = ".".join(part for part in (prefix, raised.field) if part)
            found.setdefault(name, InvalidInput(name, raised.given, raised.allowed))
        elif detail["type"] == "extra_forbidden":
            name = ".".join(str(part) for part in detail["loc"])
            parent = _model_at(model, detail["loc"][:-1])
            found.setdefault(
                name, InvalidInput(name, detail["input"], "only the settings " + ", ".join(parent.model_fields))
            )
        else:
            allowed = allowed_values(info) if info is not None else "an object of settings"
            found.setdefault(path, InvalidInput(path or "spec", detail["input"], allowed))
    return tuple(found.values())


def allowed_values(info: FieldInfo) -> str:
    """What a setting accepts, in words: ``an integer from 1 to 16``."""
    return _describe(info.annotation, info.metadata)


def bounds(info: FieldInfo) -> tuple[float | None, float | None]:
    """(lowest, highest) of a number or of the numbers in a list, None where there is no bound."""
    lowest, highest = _limits(_flatten(info.metadata))
    if lowest is None and highest is None:
        for argument in typing.get_args(info.annotation):
            if typing.get_origin(argument) is Annotated:
                return _limits(_flatten(argument.__metadata__))
    return lowest, highest


def _flatten(metadata: typing.Iterable[Any]) -> list[Any]:
    return [inner for item in metadata for inner in (item.metadata if isinstance(item, FieldInfo) else [item])]


def _limits(metadata: list[Any]) -> tuple[Any, Any]:
    lowest = highest = None
    for item in metadata:
        lowest = getattr(item, "ge", getattr(item, "gt", None)) if lowest is None else lowest
        highest = getattr(item, "le", getattr(item, "lt", None)) if highest is None else highest
    return lowest, highest


def _describe(annotation: Any, metadata: typing.Iterable[Any]) -> str:
    flat = _flatten(metadata)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _describe(arguments[0], annotation.__metadata__)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments)) if len(arguments) > 1 else str(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return " or ".join("nothing" if a is type(None) else _describe(a, flat) for a in arguments)
    if origin is tuple:
        low, high = _lengths(flat)
        count = f"{low} to {high} values" if high is not None else "values"
        return f"{count}, each {_describe(arguments[0], [])}"
    if annotation is bool:
        return "true or false"
    if annotation in (int, float):
        noun = "an integer" if annotation is int else "a number"
        low, high = _limits(flat)
        above = any(getattr(item, "gt", None) is not None for item in flat)
        if low is None or high is None:
            return noun
        return f"{noun} above {low:,} up to {high:,}" if above else f"{noun} from {low:,} to {high:,}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "an object with the settings " + ", ".join(annotation.model_fields)
    return "text"


def _lengths(metadata: list[Any]) -> tuple[int, int | None]:
    low, high = 0, None
    for item in metadata:
        low = getattr(item, "min_length", None) or low
        high = getattr(item, "max_length", None) or high
    return low, high


def _model_at(model: type[BaseModel], path: tuple[int | str, ...]) -> type[BaseModel]:
    for part in path:
        info = model.model_fields.get(str(part))
        if info is None or not (isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel)):
            break
        model = info.annotation
    return model


def _field_at(model: type[BaseModel], location: tuple[int | str, ...]) -> tuple[str, FieldInfo | None]:
    """The dotted name of the deepest setting on the way to ``location``, and its field."""
    names: list[str] = []
    info: FieldInfo | None = None
    for part in location:
        found = model.model_fields.get(str(part))
        if found is None:
            break
        names.append(str(part))
        info = found
        if not (isinstance(found.annotation, type) and issubclass(found.annotation, BaseModel)):
            break
        model = found.annotation
    return ".".join(names), info
