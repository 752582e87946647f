"""The results that are shown before anything is run: one file per preset, and how they are computed again."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

from ntk_core.environment import TOP
from ntk_core.runs._run import run
from ntk_core.runs._table import PRESETS, packages_outside, preset
from ntk_core.runs.events import Ended, Event
from ntk_core.runs.run_directory import write_whole
from ntk_core.runs.store import Store

GALLERY = TOP / "gallery"


def gallery_beside(name: str) -> Path | None:
    """Return ``gallery/`` beside the spec of a preset from another distribution; None for any other name."""
    spec = PRESETS[name].spec if name in PRESETS else None
    if spec is None or spec.experiment not in packages_outside():
        return None
    return Path(inspect.getfile(type(spec))).with_name("gallery")


def rebuild(name: str, should_stop: Callable[[], bool], folder: Path = GALLERY) -> Iterator[Event]:
    """Compute the result of a preset and write it; interrupted, the next call resumes it."""
    spec = preset(name, "NAME").spec
    store = Store(folder / ".runs" / "gallery.sqlite")
    for event in run(spec, points=store.points(spec), should_stop=should_stop):
        if isinstance(event, Ended) and event.result is not None and event.status == "completed":
            write_whole(folder / f"{name}.json", event.result.model_dump_json() + "\n", "gallery")
        yield event
