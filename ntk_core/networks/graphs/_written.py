"""Shared code of both written forms of a network: bounded JSON text in, one-sentence errors, compact text out."""

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ntk_core.errors import InvalidInput
from ntk_core.markup import JSON


class Written(BaseModel):
    """Abstract: a checked, frozen value, whose settings can be given by position as well.

    Raises:
        InvalidInput: names the setting, what was given and what is allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, *given: Any, **named: Any):
        values = {**dict(zip(type(self).model_fields, given, strict=False)), **named}
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise self.problem(error, values) from None

    @classmethod
    def problem(cls, error: ValidationError, given: JSON) -> InvalidInput:
        """The first complaint in words."""
        raise NotImplementedError

    def data(self) -> JSON:
        """The value as JSON gives it: settings at their defaults are left out."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def __str__(self) -> str:
        """Compact JSON text, from which it can be read again."""
        return json.dumps(self.data(), separators=(",", ":"), ensure_ascii=False)


def read_object(data: object, field: str, most: int, allowed: str) -> JSON:
    """The JSON object that a text of up to ``most`` characters holds, or ``data`` itself where it is one.

    Raises:
        InvalidInput: for anything else, naming ``field``.
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


def inner_problem(error: ValidationError) -> InvalidInput | None:
    """Return the error of the lab's own check if it is the first complaint."""
    raised = error.errors(include_url=False)[0].get("ctx", {}).get("error")
    return raised if isinstance(raised, InvalidInput) else None
