"""What an entry of the glossary is, and the papers that entries cite."""

from __future__ import annotations

from dataclasses import dataclass

LIU, ZHU, HU = "Liu, Zhu & Belkin 2020", "Zhu, Liu & Belkin 2022", "Hu, Xiao, Adlam & Pennington 2020"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One word.

    Attributes:
        name: in the address.
        symbol: LaTeX, empty for none.
        formula: LaTeX of its definition, empty where the sentence is one.
        page: where it is seen.
        source: paper and section.
        other_names: what else people call it, for the search.
    """

    name: str
    title: str
    sentence: str
    page: str
    source: str
    symbol: str = ""
    formula: str = ""
    other_names: str = ""

    def matches(self, text: str) -> bool:
        """Whether every word of ``text`` occurs in what is said here."""
        said = f"{self.name} {self.title} {self.symbol} {self.sentence} {self.source} {self.other_names}".lower()
        return all(word in said for word in text.lower().split())
