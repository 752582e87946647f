"""Arguments of commands: presets, spec files, settings and stored runs."""

import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from linearity_lab.cli.run_directory import RunDirectory, read_limited
from linearity_lab.installation import command_name
from linearity_lab.runs import EXPERIMENTS, PRESETS, PointValue, Result, Spec, parse_spec
from linearity_lab.runs.store import READING_WORDS, KnownRun, Reading, Store
from linearity_lab.settings.grammar import settings, value_of
from ntk_core.errors import InvalidInput

Flag = Annotated[bool, Parameter(negative=())]
MIN_DIGITS = 4
SPEC = "PRESET_OR_SPEC.json"
RUN = "DIR_OR_DIGEST"


@dataclass(frozen=True)
class KeptRun:
    """A run in a directory, or in the store."""

    spec: Spec
    points: tuple[PointValue, ...]
    result: Result | None
    directory: RunDirectory | None = None


def spec_named(target: str, paper: bool) -> Spec:
    """Return the spec that this text names.

    It is a preset, an experiment with its default settings, or a file. Anything else is refused.
    """
    if target in PRESETS:
        return PRESETS[target].paper_spec if paper else PRESETS[target].spec
    if target in EXPERIMENTS and not os.path.lexists(target):
        if paper:
            raise InvalidInput("--paper", target, "this option only with a preset")
        return parse_spec({"experiment": target})
    path = Path(target)
    if not (path.suffix or len(path.parts) != 1 or os.path.lexists(path)):
        raise _unknown(target)
    data = read_limited(path, SPEC)
    if paper:
        raise InvalidInput("--paper", target, "this option only with a preset")
    return parse_spec(data)


def _unknown(target: str) -> InvalidInput:
    """Name the nearest presets and experiments, or all experiments if none is near."""
    names = [*PRESETS, *EXPERIMENTS]
    near = get_close_matches(target, names, n=3, cutoff=0.6)
    known = f"{', '.join(near)}; " if near else f"an experiment, {', '.join(EXPERIMENTS)}; "
    return InvalidInput(SPEC, target, f"{known}`{command_name()} presets` lists all presets")


def assignment(text: str, spec: Spec) -> tuple[str, object]:
    """Parse ``name=value`` for a spec; refuse other text."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise InvalidInput("--set", text, "NAME=VALUE, such as widths=30,100,1000")
    known = {setting.name: setting for setting in settings(type(spec))}
    return name, value_of(known[name], value) if name in known else value


def kept_run(target: str) -> KeptRun:
    """Return the run that this text names.

    It is in a directory of ``run --out``, or the only stored run with this digest prefix.
    """
    if _is_digest(target) and not os.path.lexists(target):
        store = Store()
        run = stored_digest(store, target)
        spec = store.spec(run)
        if spec is None:
            raise InvalidInput(RUN, target, _readable_run(store, run))
        result = store.result(run)
        found = store.points_of(run)
        points = (
            result.points
            if result
            else tuple(found[key] for key in spec.point_keys() if key in found)
        )
        return KeptRun(spec, points, result)
    directory = RunDirectory(Path(target), RUN)
    result = directory.result()
    return KeptRun(result.spec, result.points, result, directory)


def unreadable_run(target: str) -> KnownRun | None:
    """Return what is known of a run whose settings cannot be read.

    It is None for any other target.
    """
    if not _is_digest(target) or os.path.lexists(target):
        return None
    store = Store()
    return store.known_run(stored_digest(store, target))


def _readable_run(store: Store, run: str) -> str:
    """Say which runs are allowed where the settings of this one cannot be read."""
    known = store.known_run(run)
    words = READING_WORDS[known.run.reading] if known else READING_WORDS[Reading.DAMAGED]
    return (
        f"a run whose settings this version reads; this one is {words}; `show` prints its numbers"
    )


def stored_digest(store: Store, prefix: str) -> str:
    """Return the digest of the only stored run with this prefix."""
    found = store.find(prefix.lower()) if _is_digest(prefix) else ()
    if not found:
        raise InvalidInput(
            RUN,
            prefix,
            f"the first {MIN_DIGITS} or more digits of a run's digest, as `list` shows it",
        )
    if len(found) > 1:
        raise InvalidInput(
            RUN, prefix, "more digits; it begins " + ", ".join(run[:12] for run in found)
        )
    return found[0]


def _is_digest(text: str) -> bool:
    return MIN_DIGITS <= len(text) <= 64 and all(
        letter in "0123456789abcdefABCDEF" for letter in text
    )
