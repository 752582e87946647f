"""Named choices, such as an activation, a loss or an architecture.

Each has a name, a title and a formula.
"""

from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class Term:
    """One choice: its name in specs, a title, and a formula or one-line explanation."""

    name: str
    title: str
    formula: str


AnyTerm = TypeVar("AnyTerm", bound=Term)


def table(*terms: AnyTerm) -> dict[str, AnyTerm]:
    """Map names to terms."""
    return {term.name: term for term in terms}
