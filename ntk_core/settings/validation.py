"""Pydantic's errors as one sentence per setting: its name, its value, the allowed values."""

import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from ntk_core.errors import InvalidInput, UnknownSetting
from ntk_core.settings.part import CountsNeurons, SpecPart, Term, Vocabulary


def problems(model: type[SpecPart], error: ValidationError) -> tuple[InvalidInput, ...]:
    """Return one :class:`InvalidInput` per setting, named by its dotted path (``architecture.depth``)."""
    found: dict[str, InvalidInput] = {}
    for detail in error.errors(include_url=False):
        place = ".".join(map(str, detail["loc"]))
        path, info, group = _field_at(model, detail["loc"])
        raised = detail.get("ctx", {}).get("error")
        if isinstance(raised, InvalidInput):
            name = ".".join(part for part in (place, raised.field) if part)
            problem = InvalidInput(name, raised.given, raised.allowed, raised.nearest)
        elif detail["type"] == "extra_forbidden":
            parent = place.rpartition(".")[0]
            known = [f"{parent}.{field}" if parent else field for field in group.model_fields]
            problem = UnknownSetting.among(place, detail["input"], known)
        else:
            allowed = allowed_values(info) if info is not None else "an object of settings"
            problem = InvalidInput(path or "spec", detail["input"], allowed)
        inside = any(name.startswith(f"{path}.") for name in found)
        if not (detail["type"] == "too_short" and inside):  # pydantic does not count invalid groups
            found.setdefault(problem.field, problem)
    return tuple(found.values())


def part_type(info: FieldInfo) -> type[SpecPart] | None:
    """Return the type of the group, or groups, of settings in a field; None for a single setting."""
    held = info.annotation
    if typing.get_origin(held) is tuple:
        held = typing.get_args(held)[0]
    return held if _is_part(held) else None


def holds_several(info: FieldInfo) -> bool:
    """Whether a field is a list of groups of settings."""
    return part_type(info) is not None and typing.get_origin(info.annotation) is tuple


def allowed_values(info: FieldInfo) -> str:
    """Describe the accepted values of a setting: ``an integer from 1 to 16``."""
    return _describe(info.annotation, info.metadata)


def bounds(info: FieldInfo) -> tuple[float | None, float | None]:
    """Return (lowest, highest) of a number or of the numbers in a list; None without a bound."""
    own = _limits(_flatten(info.metadata))
    return own if own != (None, None) else _limits(_of_entries(info))


def counts_neurons(info: FieldInfo) -> bool:
    """Whether a field has a width or a list of widths."""
    return any(isinstance(mark, CountsNeurons) for mark in [*info.metadata, *_of_entries(info)])


def terms_of(info: FieldInfo) -> Mapping[str, Term]:
    """Map names to terms for the choices of a field or list; empty without terms."""
    marks = [*info.metadata, *_of_entries(info)]
    return next((mark.terms for mark in marks if isinstance(mark, Vocabulary)), {})


def lengths(info: FieldInfo) -> tuple[int, int | None]:
    """Return (fewest, most) entries of a list; None without a bound."""
    return _lengths(_flatten(info.metadata))


def _is_part(annotation: object) -> TypeGuard[type[SpecPart]]:
    return isinstance(annotation, type) and issubclass(annotation, SpecPart)


def _of_entries(info: FieldInfo) -> list[object]:
    """Metadata of the entries of a list."""
    arguments = typing.get_args(info.annotation)
    return next(
        (_flatten(each.__metadata__) for each in arguments if typing.get_origin(each) is Annotated),
        [],
    )


def _flatten(metadata: typing.Iterable[object]) -> list[object]:
    return [
        inner
        for item in metadata
        for inner in (item.metadata if isinstance(item, FieldInfo) else [item])
    ]


def _limits(metadata: list[object]) -> tuple[float | None, float | None]:
    lowest = highest = None
    for item in metadata:
        lowest = getattr(item, "ge", getattr(item, "gt", None)) if lowest is None else lowest
        highest = getattr(item, "le", getattr(item, "lt", None)) if highest is None else highest
    return lowest, highest


def _describe(annotation: Any, metadata: typing.Iterable[object]) -> str:
    flat = _flatten(metadata)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _describe(arguments[0], [*annotation.__metadata__, *flat])
    if origin is Literal:
        return (
            "one of " + ", ".join(map(str, arguments)) if len(arguments) > 1 else str(arguments[0])
        )
    if origin in (typing.Union, types.UnionType):
        return " or ".join("nothing" if a is type(None) else _describe(a, flat) for a in arguments)
    if origin is tuple:
        low, high = _lengths(flat)
        several = f"{low} to {high} " if high is not None else ""
        if _is_part(arguments[0]):
            return f"{several}groups of settings"
        return f"{several}values, each {_describe(arguments[0], [])}"
    if annotation is bool:
        return "true or false"
    if annotation in (int, float):
        noun = "an integer" if annotation is int else "a number"
        least, most = _limits(flat)
        above = any(getattr(item, "gt", None) is not None for item in flat)
        if least is None or most is None:
            return noun
        below = "below " if any(getattr(item, "lt", None) is not None for item in flat) else ""
        return (
            f"{noun} above {least:,} up to {most:,}"
            if above
            else f"{noun} from {least:,} to {below}{most:,}"
        )
    if _is_part(annotation):
        return "an object with the settings " + ", ".join(annotation.model_fields)
    return "text"


def _lengths(metadata: list[object]) -> tuple[int, int | None]:
    low, high = 0, None
    for item in metadata:
        low = getattr(item, "min_length", None) or low
        high = getattr(item, "max_length", None) or high
    return low, high


def _field_at(
    model: type[SpecPart], location: tuple[int | str, ...]
) -> tuple[str, FieldInfo | None, type[SpecPart]]:
    """Return the dotted name of the deepest setting toward ``location``, its field, and its group."""
    names: list[str] = []
    info: FieldInfo | None = None
    for step in location:
        if isinstance(step, int) and info is not None and holds_several(info):
            names.append(str(step))
            continue
        found = model.model_fields.get(str(step))
        if found is None:
            break
        names.append(str(step))
        info = found
        inner = part_type(found)
        if inner is None:
            break
        model = inner
    return ".".join(names), info, model
