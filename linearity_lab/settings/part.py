"""Base class of all setting groups: frozen; rejects unknown and irrelevant fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

import pydantic
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    field_validator,
    model_serializer,
    model_validator,
)

from ntk_core.errors import InvalidInput
from ntk_core.markup import shown_parts
from ntk_core.terms import Term


def _count(given: object) -> object:
    """Accept ``"1e4"`` for a number of neurons; leave anything else to pydantic."""
    try:
        number = float(given) if isinstance(given, str) else None
    except ValueError:
        return given
    return int(number) if number is not None and number.is_integer() else given


Once = AfterValidator(lambda names: tuple(dict.fromkeys(names)))  # removes duplicates of a list
Ascending = AfterValidator(lambda numbers: tuple(sorted(set(numbers))))
Values = dict[str, Any]  # setting values by dotted name


class Constant:
    """Marks fields that no one sets, such as the version of an experiment."""


class CountsNeurons:
    """Marks fields with widths, or other swept values."""


Width = Annotated[int, BeforeValidator(_count), Field(ge=1, le=10_000_000), CountsNeurons()]


class SpecPart(pydantic.BaseModel):
    """Frozen group of settings, each described by the docstring below it.

    Unknown settings are refused.

    ``relevant`` maps a setting to the choices of ``selector`` that use it. With other choices it is
    refused when given and omitted from the JSON, so equal work has equal digests.
    """

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )
    selector: ClassVar[str] = ""
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Make each description one line of help, however many lines it has in the source."""
        super().__pydantic_init_subclass__(**options)
        for info in cls.model_fields.values():
            if info.description is not None:
                info.description = " ".join(info.description.split())

    @field_validator("*", mode="after")
    @classmethod
    def _without_sign_of_zero(cls, value: object) -> object:
        """Replace -0.0 by 0.0, so that equal settings have equal digests."""
        return 0.0 if isinstance(value, float) and value == 0 else value

    @model_validator(mode="after")
    def _only_relevant(self) -> Self:
        for name, kinds in self.relevant.items():
            if name in self.model_fields_set and not self.uses(name):
                raise InvalidInput(
                    name,
                    getattr(self, name),
                    f"this setting only with {self.selector} {' or '.join(kinds)}",
                )
        return self

    @model_serializer(mode="wrap")
    def _serialize(self, handler: pydantic.SerializerFunctionWrapHandler) -> dict[str, object]:
        return {name: value for name, value in handler(self).items() if self.uses(name)}

    @classmethod
    def field(cls, name: str, default: object, description: str = "") -> Any:
        """Reuse a field in another spec: same bounds and title, another default and description."""
        info = cls.model_fields[name]
        made: Any = Field(
            default,
            title=info.title,
            description=description or info.description,
            json_schema_extra=info.json_schema_extra,
        )
        made.metadata = list(info.metadata)
        return made

    def uses(self, name: str) -> bool:
        """Whether the chosen kind, or one of several, uses this setting."""
        return name not in self.relevant or chosen_among(
            getattr(self, self.selector), self.relevant[name]
        )

    def _repr_html_(self) -> str:
        return "".join(shown_parts(self, with_figure=False))


def reduced(part: SpecPart) -> dict[str, Any]:
    """Return the JSON of a group of settings, without those at their defaults.

    A field with a single allowed value, such as the name of an experiment, distinguishes types and
    remains, and so does the version. The same holds for the parts of compositions and drawn graphs.
    """
    return _reduced(part, part.model_dump(mode="json"))


def _reduced(part: pydantic.BaseModel, dumped: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, data in dumped.items():
        value = getattr(part, name)
        info = type(part).model_fields[name]
        is_fixed = get_origin(info.annotation) is Literal and len(get_args(info.annotation)) == 1
        default = info.get_default(call_default_factory=True)
        # The text tells 1 from 1.0 and True, and 0.0 from -0.0, which are equal.
        is_default = repr(value) == repr(default)
        if is_default and not is_fixed and name != "schema_version":
            continue
        found[name] = _reduced_value(value, data)
    return found


def _reduced_value(value: object, data: Any) -> Any:
    if isinstance(value, pydantic.BaseModel) and isinstance(data, dict):
        return _reduced(value, data)
    if isinstance(value, tuple) and isinstance(data, list):
        return [_reduced_value(each, one) for each, one in zip(value, data, strict=True)]
    return data


def chosen_among(chosen: object, kinds: tuple[str, ...]) -> bool:
    """Whether a choice, or one of several choices, is among ``kinds``."""
    return (
        any(each in kinds for each in chosen)
        if isinstance(chosen, tuple | list)
        else chosen in kinds
    )


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Marks a setting whose choices are terms: name → term."""

    terms: Mapping[str, Term]


def one_of(terms: Mapping[str, Term]) -> Any:
    """Return the type of a setting that takes the name of one of these terms."""
    return Annotated[Literal[tuple(terms)], Vocabulary(terms)]
