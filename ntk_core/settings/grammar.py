"""Settings by their dotted names: checked, changed, named one by one where they are wrong."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ntk_core.errors import InvalidInput
from ntk_core.settings.part import SpecPart, chosen_among
from ntk_core.settings.validation import problems

Part = TypeVar("Part", bound=SpecPart)


class InvalidSpec(ValueError):
    """A spec from outside that cannot be used; ``problems`` holds one :class:`InvalidInput` a setting."""

    def __init__(self, problems: tuple[InvalidInput, ...]):
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


def with_settings(spec: Part, settings: dict[str, Any]) -> Part:
    """``spec`` with some settings replaced, given by dotted names: ``{"training.learning_rate": 0.5}``.

    Settings that a changed kind (dataset, architecture, what is swept) does not use are dropped unless they are given.

    Raises:
        InvalidSpec: for an unknown setting or a value that is not allowed.
    """
    data = spec.model_dump(mode="json")
    for name, value in settings.items():
        *path, last = name.split(".")
        part: Any = data
        for step in path:
            part = part.get(step) if isinstance(part, dict) else None
        if not isinstance(part, dict):
            raise InvalidSpec((InvalidInput(name, value, "only the settings " + ", ".join(setting_names(type(spec)))),))
        part[last] = value
    _drop_unused(type(spec), data, settings, "")
    return validated(type(spec), data)


def validated(model: type[Part], data: dict[str, Any]) -> Part:
    """A part of a spec from its data.

    Raises:
        InvalidSpec: with one sentence per setting.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidSpec(problems(model, error)) from None
    except UnicodeEncodeError as error:  # half of a character: JSON may hold it, pydantic does not look at it
        raise InvalidSpec((InvalidInput("spec", error.object, "text of whole Unicode characters"),)) from None


def _drop_unused(part_type: type[SpecPart], data: dict[str, Any], given: dict[str, Any], prefix: str) -> None:
    """Take out of ``data`` what the kind chosen there does not use, unless it is given by its dotted name."""
    for name, kinds in part_type.relevant.items():
        if not chosen_among(data.get(part_type.selector), kinds) and prefix + name not in given:
            data.pop(name, None)
    for name, info in part_type.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, SpecPart) and isinstance(data.get(name), dict):
            _drop_unused(inner, data[name], given, f"{prefix}{name}.")


def setting_names(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Dotted names of all settings of a spec type, in order."""
    names: list[str] = []
    for name, info in model.model_fields.items():
        nested = info.annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel):
            names += setting_names(nested, f"{prefix}{name}.")
        else:
            names.append(prefix + name)
    return names
