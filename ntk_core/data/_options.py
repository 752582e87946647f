"""Options of a data set: kind, bounds, default and help, for forms and for the checks alike."""

from __future__ import annotations

import math
import numbers
import operator
from dataclasses import dataclass
from typing import Literal

from ntk_core.data.uploads import DIGEST, HOW_TO_BRING
from ntk_core.errors import InvalidInput

OptionKind = Literal["integer", "number", "flag", "choice", "classes", "digest"]


@dataclass(frozen=True)
class Option:
    """One setting of ``load_dataset``.

    Attributes:
        name: the keyword.
        kind: ``"integer"``, ``"number"``, ``"flag"``, ``"choice"`` (one of ``choices``) or ``"classes"`` (at least two
            of ``choices``, by name or index; ``None`` means all), ``"digest"`` (64 hexadecimal digits).
        default: the value when it is not given.
        help: one sentence for a person.
        minimum, maximum: inclusive bounds of integers and numbers.
        choices: what a choice or the classes are taken from.
    """

    name: str
    kind: OptionKind
    default: object
    help: str
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str | int, ...] = ()

    def check(self, value: object) -> object:
        """The value in canonical form (Python int, float, bool, str, or a tuple of class names).

        Raises:
            InvalidInput: the value is of the wrong type or outside the bounds.
        """
        if self.kind == "classes":
            return self._check_classes(value)
        if self.kind == "digest" and isinstance(value, str) and DIGEST.match(value):
            return value
        if self.kind == "choice":
            for choice in self.choices:
                if type(choice) is type(value) and choice == value:
                    return choice
        elif self.kind == "flag":
            if isinstance(value, bool):
                return value
        elif self.kind in ("integer", "number") and not isinstance(value, bool):
            number = _integer(value) if self.kind == "integer" else _number(value)
            if number is not None and self.minimum <= number <= self.maximum:
                return number
        raise InvalidInput(self.name, "nothing" if value is None else value, self.allowed)

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if self.kind == "flag":
            return "true or false"
        if self.kind == "digest":
            return HOW_TO_BRING
        if self.kind == "choice":
            return " or ".join(str(choice) for choice in self.choices)
        if self.kind == "classes":
            return f"at least 2 different classes of {', '.join(map(str, self.choices))}, by name or index"
        noun = "an integer" if self.kind == "integer" else "a number"
        return f"{noun} from {self.minimum:,} to {self.maximum:,}"

    def _check_classes(self, value: object) -> tuple[str, ...]:
        names = tuple(str(choice) for choice in self.choices)
        if value is None:
            return names
        if not isinstance(value, (tuple, list)):
            raise InvalidInput(self.name, value, self.allowed)
        chosen = []
        for entry in value:
            index = None if isinstance(entry, bool) else _integer(entry)
            if isinstance(entry, str) and entry in names:
                chosen.append(entry)
            elif index is not None and 0 <= index < len(names):
                chosen.append(names[index])
            else:
                raise InvalidInput(self.name, entry, self.allowed)
        if len(chosen) < 2 or len(set(chosen)) < len(chosen):
            raise InvalidInput(self.name, value, self.allowed)
        return tuple(chosen)


def _integer(value: object) -> int | None:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _number(value: object) -> float | None:
    if not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond float64
        return None
