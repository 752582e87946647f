"""Specs from outside: parsed, changed, written as canonical JSON, named by a digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ntk_core.errors import InvalidInput
from ntk_core.runs._spec import Spec
from ntk_core.runs._table import EXPERIMENTS
from ntk_core.settings.part import SpecPart, chosen_among
from ntk_core.settings.validation import problems

MAX_JSON_BYTES = 1_000_000

Part = TypeVar("Part", bound=SpecPart)


class InvalidSpec(ValueError):
    """A spec from outside that cannot be used; ``problems`` holds one :class:`InvalidInput` a setting."""

    def __init__(self, problems: tuple[InvalidInput, ...]):
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))


def parse_spec(data: Any) -> Spec:
    """A spec from JSON text or from a mapping as JSON gives it.

    Raises:
        InvalidSpec: with one sentence a setting: its dotted name, what was given, what is allowed.
    """
    if isinstance(data, str | bytes):
        if len(data) > MAX_JSON_BYTES:
            raise InvalidSpec((InvalidInput("spec", f"{len(data):,} bytes", f"at most {MAX_JSON_BYTES:,} bytes"),))
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            raise InvalidSpec(
                (InvalidInput("spec", _excerpt(data), "a JSON object with the settings of an experiment"),)
            ) from None
    if not isinstance(data, dict):
        raise InvalidSpec((InvalidInput("spec", data, "a JSON object with the settings of an experiment"),))
    experiment = data.get("experiment", "kernel_change")
    if not (isinstance(experiment, str) and experiment in EXPERIMENTS):
        raise InvalidSpec((InvalidInput("experiment", experiment, "one of " + ", ".join(EXPERIMENTS)),))
    return _validated(EXPERIMENTS[experiment].spec, data)


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
    return _validated(type(spec), data)


def _validated(model: type[Part], data: dict[str, Any]) -> Part:
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


def canonical_json(spec: Spec) -> str:
    """The one JSON text of a spec: sorted names, no spaces, nothing that its kind does not use."""
    return json.dumps(spec.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def digest(spec: Spec) -> str:
    """SHA-256 of the canonical JSON, as 64 hexadecimal digits: the identity of a job and of its result."""
    return hashlib.sha256(canonical_json(spec).encode()).hexdigest()


def _excerpt(text: str | bytes) -> str:
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return shown if len(shown) <= 40 else shown[:40] + "…"
