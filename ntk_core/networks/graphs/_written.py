"""Networks as JSON: bounded input, one-sentence errors, compact output."""

import json
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ntk_core.errors import InvalidInput
from ntk_core.markup import JSON

Parsed = TypeVar("Parsed")


class Written(BaseModel):
    """Abstract: a validated, frozen value; settings can also be given by position.

    Raises:
        InvalidInput: names the setting, the given and the allowed values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, *given: object, **named: object):
        values = {**dict(zip(type(self).model_fields, given, strict=False)), **named}
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise self.problem(error, values) from None

    @classmethod
    def problem(cls, error: ValidationError, given: JSON) -> InvalidInput:
        """Describe the first error."""
        raise NotImplementedError

    def data(self) -> JSON:
        """Return JSON data without settings at their defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def __str__(self) -> str:
        """Return compact JSON text that can be parsed again."""
        return json.dumps(self.data(), separators=(",", ":"), ensure_ascii=False)


def read_object(data: object, field: str, most: int, allowed: str) -> JSON:
    """Parse a JSON object from a text of at most ``most`` characters.

    ``data`` that is an object is returned as it is.
    """
    if isinstance(data, str | bytes):
        if len(data) > most:
            noun = "bytes" if isinstance(data, bytes) else "characters"
            raise InvalidInput(field, f"{len(data):,} {noun}", f"at most {most:,}")
        try:
            data = json.loads(data)
        except json.JSONDecodeError as error:
            given = f"text that is no JSON in line {error.lineno}, column {error.colno}"
            raise InvalidInput(field, given, allowed) from None
        except (ValueError, RecursionError):
            raise InvalidInput(field, "text that is no JSON", allowed) from None
    if not isinstance(data, dict):
        raise InvalidInput(field, "nothing" if data is None else data, allowed)
    return data


def named_inside(parse: Callable[[object], Parsed]) -> Callable[[object], Parsed]:
    """Return ``parse`` for a setting: errors name the setting, then the field inside its value."""

    def parsed(data: object) -> Parsed:
        try:
            return parse(data)
        except InvalidInput as error:
            raise InvalidInput("", f"{error.field}: {error.given}", error.allowed) from None

    return parsed


def inner_problem(error: ValidationError) -> InvalidInput | None:
    """Return the lab's own error if it is the first."""
    raised = error.errors(include_url=False)[0].get("ctx", {}).get("error")
    return raised if isinstance(raised, InvalidInput) else None
