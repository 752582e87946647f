"""A paper figure as a spec."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from ntk_core.settings.grammar import validated
from ntk_core.settings.part import SpecPart

Part_co = TypeVar("Part_co", bound=SpecPart, covariant=True)
Part = TypeVar("Part", bound=SpecPart)


@dataclass(frozen=True)
class Preset(Generic[Part_co]):
    """Named figure of a paper, with claim and spec.

    Named figure of a paper, with claim and spec.

    Paper figure → a named spec with its claim.

    Attributes:
        title: a few words for a menu.
        claim: what the figure must show, for people.
        source: paper and figure or section.
        our_choice: the settings that the source does not state.
        spec: sized for two cores.
        paper_spec: the paper's sizes, for a GPU or a patient CPU.
        caveats: what the measurements of the claim do not confirm, from ``claims.toml``.

    Source: our choice; each names that of its figure, and docs/truth.md holds claims against what was measured.
    """

    name: str
    title: str
    claim: str
    source: str
    our_choice: str
    spec: Part_co
    paper_spec: Part_co
    caveats: tuple[str, ...] = ()

    @property
    def statement(self) -> str:
        """The claim followed by its caveats."""
        caveats = "; ".join(self.caveats)
        return f"{self.claim} Measured here: {caveats}." if caveats else self.claim


def presets_beside(file: str, kind: type[Part]) -> tuple[Preset[Part], ...]:
    """The presets in ``presets.toml`` beside a file, one table each, in their order.

    ``[NAME.spec]`` states what differs from the defaults of ``kind``, ``[NAME.paper]`` what the paper's sizes change in
    that; ``our_choice`` above all tables is that of presets which state none.

    Raises:
        InvalidSpec: for a setting that the spec does not have, or a value that it cannot take.
        TypeError: where words are missing, or have another name.
    """
    tables: dict[str, Any] = tomllib.loads(Path(file).with_name("presets.toml").read_text(encoding="utf-8"))
    caveats = _caveats(Path(file).with_name("claims.toml"))
    common = {name: tables.pop(name) for name in ("our_choice",) if name in tables}
    found = []
    for name, table in tables.items():
        spec = validated(kind, table.pop("spec", {}))
        paper = validated(kind, _merged(spec.model_dump(mode="json"), table.pop("paper", {})))
        found.append(Preset(name, **(common | table), spec=spec, paper_spec=paper, caveats=caveats.get(name, ())))
    return tuple(found)


def _caveats(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the caveats of the claims that presets make themselves, by preset."""
    found: dict[str, tuple[str, ...]] = {}
    tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for table in tables.values():
        if "said" not in table and "caveat" in table:
            found[table["preset"]] = (*found.get(table["preset"], ()), table["caveat"])
    return found


def _merged(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``data`` with some values replaced, inside of groups too."""
    inner = {
        name: _merged(data[name], value) if isinstance(value, dict) and isinstance(data.get(name), dict) else value
        for name, value in changes.items()
    }
    return {**data, **inner}
