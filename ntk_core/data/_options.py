"""The options of ``datasets.toml``, for the checks of ``load_dataset`` and for the settings of a spec."""

import math
import numbers
import operator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from ntk_core.data._dataset import TABLE
from ntk_core.data.uploads import DIGEST, HOW_TO_BRING
from ntk_core.errors import InvalidInput

OptionKind = Literal["integer", "number", "flag", "choice", "classes", "digest", "numbers"]
MAX_SEED = 2**32 - 1
MAX_POINTS = 30


@dataclass(frozen=True)
class Option:
    """One setting of ``load_dataset``.

    Attributes:
        name: the keyword.
        kind: ``"integer"``, ``"number"``, ``"flag"``, ``"choice"`` (one of ``choices``), ``"classes"`` (at least two
            of ``choices``, by name or index; ``None`` means all), ``"digest"`` (64 hexadecimal digits) or
            ``"numbers"`` (up to 30 of them).
        default: the value when it is not given.
        title: a few words with the symbol.
        help: one sentence for a person.
        minimum, maximum: inclusive bounds of integers and of each number.
        choices: what a choice or the classes are taken from.
    """

    name: str
    kind: OptionKind
    default: object
    title: str
    help: str
    minimum: float = -math.inf
    maximum: float = math.inf
    choices: tuple[str | int, ...] = ()

    def field(self, **changes: Any) -> Any:
        """The option as a field of a spec, whose annotation states the type; with ``changes`` to pydantic's field."""
        bounds = {"ge": self.minimum, "le": self.maximum} if self.kind in ("integer", "number") else {}
        return Field(**{"default": self.default, "title": self.title, "description": self.help, **bounds, **changes})

    def check(self, value: object) -> object:
        """The value in canonical form (Python int, float, bool, str, or a tuple of class names)."""
        if self.kind == "classes":
            return self._check_classes(value)
        if self.kind == "numbers" and isinstance(value, (tuple, list)) and 1 <= len(value) <= MAX_POINTS:
            numbers_given = [None if isinstance(each, bool) else _number(each) for each in value]
            if all(each is not None and self.minimum <= each <= self.maximum for each in numbers_given):
                return tuple(numbers_given)
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
        if self.kind == "numbers":
            return f"1 to {MAX_POINTS} numbers from {self.minimum:,} to {self.maximum:,}"
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


OPTIONS = {name: Option(name, **{"default": None, **entry}) for name, entry in TABLE["options"].items()}
