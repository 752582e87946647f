"""The results that are shown before anything is run: what they are, where they lie, and how they are computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ntk_core.errors import InvalidInput
from ntk_core.pairs import PAIRS, PARTS
from ntk_core.runs import PRESETS, Spec, digest, run
from ntk_core.runs.events import Ended, Event
from ntk_core.runs.run_directory import RunDirectory, write_whole

GALLERY = Path(__file__).resolve().parents[1] / "gallery"


def pair_name(pair: str, part: str) -> str:
    """The name in the gallery of one network of a pair."""
    return f"pairs/{pair}-{part}"


def gallery_specs() -> dict[str, Spec]:
    """Name in the gallery → what is computed for it: every preset, and both networks of every pair."""
    pairs = {pair_name(name, part): pair.spec.spec(part) for name, pair in PAIRS.items() for part in PARTS}
    return {**{name: preset.spec for name, preset in PRESETS.items()}, **pairs}


def gallery_spec(name: str, field: str = "NAME") -> Spec:
    """What is computed for this entry.

    Raises:
        InvalidInput: for an unknown name.
    """
    specs = gallery_specs()
    if name not in specs:
        raise InvalidInput(field, name, "one of " + ", ".join(specs))
    return specs[name]


def rebuild(name: str, should_stop: Callable[[], bool], folder: Path = GALLERY) -> Iterator[Event]:
    """Compute one entry and write it; interrupted, the next call resumes it.

    Raises:
        InvalidInput: for an unknown name, or a folder that cannot be written.
    """
    spec = gallery_spec(name)
    # By its digest: what another version of the spec left behind must not stand in the way.
    points = RunDirectory(folder / ".runs" / f"{name}-{digest(spec)[:16]}", "gallery").begin(spec)
    for event in run(spec, points=points, should_stop=should_stop):
        if isinstance(event, Ended) and event.result is not None and event.status == "completed":
            write_whole(folder / f"{name}.json", event.result.model_dump_json() + "\n", "gallery")
        yield event
