"""Names to choose from and their texts on pages; free of JAX, so that forms load quickly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar


@dataclass(frozen=True)
class Term:
    """One choice: the name used in specs, a title for people, a formula or one-line explanation."""

    name: str
    title: str
    formula: str


AnyTerm = TypeVar("AnyTerm", bound=Term)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Marks the type of a setting whose choices are terms: name → term."""

    terms: Mapping[str, Term]


def table(*terms: AnyTerm) -> dict[str, AnyTerm]:
    """Name → term."""
    return {term.name: term for term in terms}


def one_of(terms: Mapping[str, Term]) -> Any:
    """The type of a setting that takes the name of one of these terms."""
    return Annotated[Literal[tuple(terms)], Vocabulary(terms)]
