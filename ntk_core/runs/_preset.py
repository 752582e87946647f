"""A figure of a paper as a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from ntk_core.settings.part import SpecPart

Part_co = TypeVar("Part_co", bound=SpecPart, covariant=True)


@dataclass(frozen=True)
class Preset(Generic[Part_co]):
    """A named spec with its claim.

    Attributes:
        title: a few words for a menu.
        claim: what the figure must show, for people.
        source: paper and figure or section.
        our_choice: the settings that the source does not state.
        spec: sized for two cores.
        paper_spec: the paper's sizes, for a GPU or a patient CPU.
    """

    name: str
    title: str
    claim: str
    source: str
    our_choice: str
    spec: Part_co
    paper_spec: Part_co
