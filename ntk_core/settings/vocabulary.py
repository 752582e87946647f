"""The names that people choose from, with what a page says about each; free of JAX, so that forms stay light."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class Term:
    """One choice: the name used in specs, a title for people, a formula or one-line explanation."""

    name: str
    title: str
    formula: str


AnyTerm = TypeVar("AnyTerm", bound=Term)
VOCABULARIES: list[Mapping[str, Term]] = []  # every table, in the order of their making


def table(*terms: AnyTerm) -> dict[str, AnyTerm]:
    """Name → term, known to forms and URLs from now on."""
    made = {term.name: term for term in terms}
    VOCABULARIES.append(made)
    return made
