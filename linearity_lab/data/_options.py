"""Options of ``datasets.toml``, for ``load_dataset`` and specs."""

import math
import numbers
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, SupportsIndex

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from linearity_lab.data._dataset import TABLE
from linearity_lab.data.uploads import DIGEST, HOW_TO_BRING
from ntk_core.allowed import allowed_values
from ntk_core.errors import InvalidInput

Options = Mapping[str, Any]  # name → value, checked
OptionKind = Literal["integer", "number", "flag", "choice", "classes", "digest", "numbers"]
MAX_SEED = 2**32 - 1
MAX_POINTS = 30


@dataclass(frozen=True)
class Option:
    """One setting of ``load_dataset``.

    Attributes:
        name: the keyword.
        kind: ``"integer"``, ``"number"``, ``"flag"``, ``"choice"`` (one of ``choices``),
            ``"classes"`` (at least two of ``choices``, by name or index; ``None`` means all),
            ``"digest"`` (64 hexadecimal digits) or ``"numbers"`` (up to 30 of them).
        default: default value.
        title: short title with the symbol.
        help: one sentence.
        minimum, maximum: inclusive bounds of integers and of each number.
        choices: allowed values of a choice, or the classes.

    >>> from linearity_lab.data import OPTIONS
    >>> OPTIONS["num_samples"].kind, OPTIONS["num_samples"].minimum
    ('integer', 1)
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
        """Return the option as a field of a spec, with ``changes`` to pydantic's arguments."""
        bounds = (
            {"ge": self.minimum, "le": self.maximum} if self.kind in ("integer", "number") else {}
        )
        return Field(
            **{
                "default": self.default,
                "title": self.title,
                "description": self.help,
                **bounds,
                **changes,
            }
        )

    def check(self, value: object) -> object:
        """Return the canonical value: a Python int, float, bool, str, or a tuple of class names."""
        try:
            return self._adapter.validate_python(value)
        except (ValidationError, OverflowError):  # OverflowError: an integer beyond float64
            raise InvalidInput(
                self.name, "nothing" if value is None else value, self.allowed
            ) from None

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if self.kind == "digest":
            return HOW_TO_BRING
        if self.kind == "classes":
            return (
                f"at least 2 different classes of {', '.join(map(str, self.choices))}, by name "
                "or index"
            )
        return allowed_values(FieldInfo.from_annotation(self._annotation))

    @cached_property
    def _annotation(self) -> Any:
        bounds = Field(ge=self.minimum, le=self.maximum)
        match self.kind:
            case "integer":
                return Annotated[int, BeforeValidator(_integer), bounds]
            case "number":
                return Annotated[float, BeforeValidator(_number), bounds]
            case "numbers":
                number = Annotated[float, BeforeValidator(_number), bounds]
                return Annotated[tuple[number, ...], Field(min_length=1, max_length=MAX_POINTS)]
            case "choice":
                return Literal[self.choices]
            case "classes":
                return Annotated[Any, BeforeValidator(self._classes)]
            case "digest":
                return Annotated[str, Field(pattern=DIGEST.pattern.replace(r"\Z", "$"))]
        return bool

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._annotation, config=ConfigDict(strict=self.kind == "flag"))

    def _classes(self, value: object) -> tuple[str, ...]:
        names = tuple(map(str, self.choices))
        if value is None:
            return names
        chosen = []
        for given in value if isinstance(value, (tuple, list)) else [value]:
            index = -1 if isinstance(given, str) else _integer(given)
            chosen.append(names[index] if 0 <= index < len(names) else given)
        if any(each not in names for each in chosen) or len(set(chosen)) < max(2, len(chosen)):
            raise ValueError
        return tuple(map(str, chosen))


def _integer(value: object) -> int:
    """Convert integers of any type except bool."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise ValueError
    return operator.index(value)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError
    return float(value)


OPTIONS = {
    name: Option(name, **{"default": None, **entry}) for name, entry in TABLE["options"].items()
}
