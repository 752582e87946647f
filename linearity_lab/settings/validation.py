"""Pydantic's errors as one sentence per setting: its name, its value, the allowed values."""

import typing
from collections.abc import Mapping
from typing import Annotated, Any, TypeGuard

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from linearity_lab.settings.part import CountsNeurons, SpecPart, Vocabulary
from ntk_core.allowed import allowed_values, field_lengths, flatten, limits
from ntk_core.errors import InvalidInput, UnknownSetting
from ntk_core.terms import Term


def problems(model: type[SpecPart], error: ValidationError) -> tuple[InvalidInput, ...]:
    """Return one :class:`InvalidInput` per setting.

    Its dotted path names it (``architecture.depth``).
    """
    found: dict[str, InvalidInput] = {}
    for detail in error.errors(include_url=False):
        path, info, group = _field_at(model, detail["loc"])
        # Pydantic does not count invalid groups of a list, so a list with one is also "too short".
        has_problem_inside = any(name.startswith(f"{path}.") for name in found)
        if detail["type"] == "too_short" and has_problem_inside:
            continue
        problem = _problem(detail, path, info, group)
        found.setdefault(problem.field, problem)
    return tuple(found.values())


def _problem(
    detail: Mapping[str, Any], path: str, info: FieldInfo | None, group: type[SpecPart]
) -> InvalidInput:
    """Describe one of pydantic's errors.

    ``path``, ``info`` and ``group`` are those of its setting.
    """
    place = ".".join(map(str, detail["loc"]))
    raised = detail.get("ctx", {}).get("error")
    if isinstance(raised, InvalidInput):  # by a validator of ours
        name = ".".join(part for part in (place, raised.field) if part)
        return InvalidInput(name, raised.given, raised.allowed, raised.nearest)
    if detail["type"] == "extra_forbidden":
        parent = place.rpartition(".")[0]
        prefix = f"{parent}." if parent else ""
        known = [f"{prefix}{field}" for field in group.model_fields]
        return UnknownSetting.among(place, detail["input"], known)
    allowed = allowed_values(info) if info is not None else "an object of settings"
    return InvalidInput(path or "spec", detail["input"], allowed)


def part_type(info: FieldInfo) -> type[SpecPart] | None:
    """Return the type of the group, or groups, of settings in a field.

    None for a single setting.
    """
    held = info.annotation
    if typing.get_origin(held) is tuple:
        held = typing.get_args(held)[0]
    return held if _is_part(held) else None


def holds_several(info: FieldInfo) -> bool:
    """Whether a field is a list of groups of settings."""
    return part_type(info) is not None and typing.get_origin(info.annotation) is tuple


def bounds(info: FieldInfo) -> tuple[float | None, float | None]:
    """Return (lowest, highest) of a number or of the numbers in a list; None without a bound."""
    own = limits(flatten(info.metadata))
    return own if own != (None, None) else limits(_of_entries(info))


def counts_neurons(info: FieldInfo) -> bool:
    """Whether a field has a width or a list of widths."""
    return any(isinstance(mark, CountsNeurons) for mark in [*info.metadata, *_of_entries(info)])


def terms_of(info: FieldInfo) -> Mapping[str, Term]:
    """Map names to terms for the choices of a field or list; empty without terms."""
    marks = [*info.metadata, *_of_entries(info)]
    return next((mark.terms for mark in marks if isinstance(mark, Vocabulary)), {})


def lengths(info: FieldInfo) -> tuple[int, int | None]:
    """Return (fewest, most) entries of a list; None without a bound."""
    return field_lengths(flatten(info.metadata))


def _is_part(annotation: object) -> TypeGuard[type[SpecPart]]:
    return isinstance(annotation, type) and issubclass(annotation, SpecPart)


def _of_entries(info: FieldInfo) -> list[object]:
    """Metadata of the entries of a list."""
    arguments = typing.get_args(info.annotation)
    for each in arguments:
        if typing.get_origin(each) is Annotated:
            return flatten(each.__metadata__)
    return []


def _field_at(
    model: type[SpecPart], location: tuple[int | str, ...]
) -> tuple[str, FieldInfo | None, type[SpecPart]]:
    """Return the deepest setting toward ``location``.

    The result has its dotted name, its field, and its group.
    """
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
