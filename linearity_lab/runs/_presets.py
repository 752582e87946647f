"""Presets: named specs of figures, read from the ``presets.toml`` beside their experiment."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from linearity_lab.settings.grammar import validated
from linearity_lab.settings.part import SpecPart

Spec_co = TypeVar("Spec_co", covariant=True)
Part = TypeVar("Part", bound=SpecPart)


@dataclass(frozen=True)
class Preset(Generic[Spec_co]):
    """Named spec of a paper's figure with its claim: name → spec.

    Attributes:
        title: a few words for a menu.
        claim: the figure's expected outcome, in a sentence.
        source: paper and figure or section.
        our_choice: the settings that the source does not specify.
        spec: sized for two cores.
        paper_spec: the paper's sizes, for a GPU or a long run on a CPU.
        caveats: parts of the claim that measurements do not confirm, from ``claims.toml``.
        on_page: whether the menu of the experiment's page has it.
        panel: name of the figure that the source shows, which opens first; by default
            the first of the page.
        is_own: whether the claim is our own; the source then names measurements here.

    Source: our choice; each preset names its figure, and docs/truth.md compares claims with
    measurements.

    >>> from linearity_lab.experiments import preset
    >>> found = preset("liu-fig1-left")
    >>> max(found.paper_spec.widths) >= max(found.spec.widths)
    True
    """

    name: str
    title: str
    claim: str
    source: str
    our_choice: str
    spec: Spec_co
    paper_spec: Spec_co
    caveats: tuple[str, ...] = ()
    on_page: bool = True
    panel: str = ""
    is_own: bool = False

    @property
    def statement(self) -> str:
        """The claim followed by its caveats."""
        caveats = "; ".join(self.caveats)
        return f"{self.claim} On fresh seeds: {caveats}." if caveats else self.claim


def presets_beside(file: str, kind: type[Part]) -> tuple[Preset[Part], ...]:
    """Return the presets in ``presets.toml`` beside a file, one per table, in order.

    ``[NAME.spec]`` contains the settings that differ from the defaults of ``kind``, and
    ``[NAME.paper]`` the changes for the paper's sizes. ``our_choice`` above all tables is the
    default for presets without their own.

    Raises:
        InvalidSpec: for an unknown setting or a value that is not allowed.
        TypeError: if texts are missing or have unknown names.
    """
    path = Path(file)
    tables: dict[str, Any] = tomllib.loads(
        path.with_name("presets.toml").read_text(encoding="utf-8")
    )
    measured = read_measured(path.parents[1] / "measured.toml")
    caveats = _caveats(path.with_name("claims.toml"), measured)
    common = {}
    if "our_choice" in tables:
        common["our_choice"] = tables.pop("our_choice")
    found = []
    for name, table in tables.items():
        spec_changes = table.pop("spec", {})
        paper_changes = table.pop("paper", {})
        spec = validated(kind, spec_changes)
        paper_spec = validated(kind, _merged(spec.model_dump(mode="json"), paper_changes))
        texts = {**common, **table}
        preset = Preset(
            name, **texts, spec=spec, paper_spec=paper_spec, caveats=caveats.get(name, ())
        )
        found.append(preset)
    return tuple(found)


def read_measured(path: Path) -> dict[str, str]:
    """Return the fresh measurements that caveats quote, by claim.

    Empty without the file of `make claims`.
    """
    if not path.exists():
        return {}
    return tomllib.loads(path.read_text(encoding="utf-8"))


def with_measured(caveat: str, measured: str | None) -> str:
    """Return a caveat with its fresh measurement in place of ``{measured}``."""
    return caveat.replace("{measured}", measured or "not measured yet")


def _caveats(path: Path, measured: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the caveats of the presets' own claims, by preset."""
    if not path.exists():
        return {}
    claims: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    found: dict[str, tuple[str, ...]] = {}
    for name, claim in claims.items():
        is_of_document = "document" in claim
        if is_of_document or "caveat" not in claim:
            continue
        preset = claim["preset"]
        caveat = with_measured(claim["caveat"], measured.get(name))
        found[preset] = (*found.get(preset, ()), caveat)
    return found


def _merged(data: Mapping[str, Any], changes: Mapping[str, object]) -> dict[str, object]:
    """Return ``data`` with some values replaced, also inside groups."""
    merged = dict(data)
    for name, value in changes.items():
        before = data.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            merged[name] = _merged(before, value)
        else:
            merged[name] = value
    return merged
