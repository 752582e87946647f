"""Stored runs: list, export, import; free of Streamlit."""

import functools
import io
import time
from collections.abc import Iterable, Sequence
from typing import IO

import streamlit as st

from linearity_lab.dashboard.jobs.profile import error_text, profile
from linearity_lab.runs.store import READING_WORDS, Mark, Store, StoredRun, read_runs, write_runs
from ntk_core.errors import InvalidInput
from ntk_core.numbers import duration, num_runs

STATUS_WORDS = {
    "completed": "complete",
    "cancelled": "stopped",
    "stopped": "stopped by the server",
    "failed": "failed",
    "started": "not finished",
}


@functools.cache
def shared_store() -> Store:
    """The store of this server.

    Raises:
        InvalidInput: when it cannot be used.
    """
    return Store()


def details(run: StoredRun, *, is_active: bool = False) -> str:
    """Describe a run: progress, age, size, digest; ``is_active`` while it is computed."""
    marks = ["private"] * run.private + ["imported"] * run.imported
    if run.spec is None:
        count = f"{run.num_points} points" if run.num_points != 1 else "1 point"
        why = f": {run.reason}" if run.reason else ""
        kept = (
            f"{STATUS_WORDS[run.status]}, {count}, {duration(max(0.0, time.time() - run.used))} ago"
        )
        parts = [f"{READING_WORDS[run.reading]}{why}", kept, run.digest[:8]]
        return " · ".join(parts + marks)
    points = len(run.spec.point_keys())
    status = STATUS_WORDS[run.status]
    if run.status == "started":
        status = "running" if is_active else "interrupted"
    size = (
        f"{run.num_bytes / 1e6:.1f} MB"
        if run.num_bytes >= 1e6
        else f"{max(1, round(run.num_bytes / 1e3))} kB"
    )
    parts = [
        status + ("" if run.num_points >= points else f", {run.num_points} of {points} points"),
        f"{duration(max(0.0, time.time() - run.used))} ago",
        size,
        run.digest[:8],
    ]
    return " · ".join(parts + marks)


def file_of_runs(runs: Iterable[str]) -> bytes:
    """The runs with these digests as one file."""
    file = io.BytesIO()
    write_runs(shared_store(), runs, file)
    return file.getvalue()


def take_file(file: IO[bytes]) -> tuple[Sequence[str], str, list[str]]:
    """Put the runs of a file into the store.

    Return their digests, a sentence about them, and problems.
    """
    try:
        found = read_runs(shared_store(), file)
    except InvalidInput as error:
        return (), "", [f"{error_text(error)}."]
    count = len(found.digests)
    problems = [f"{sentence[0].upper()}{sentence[1:]}." for sentence in found.left_aside[:3]]
    more = len(found.left_aside) - len(problems)
    problems += [f"{more} more lines could not be read."] if more else []
    good = f"{num_runs(count)} imported." if count else ""
    return found.digests, good, problems


def marks() -> dict[str, Mark]:
    """Map digests to the user's marks."""
    if profile().is_shared:
        kept: dict[str, Mark] = st.session_state.setdefault("results.marks", {})
        return kept
    return shared_store().marks()


def write_mark(run: str, name: str, note: str, favorite: bool) -> None:
    """Store a mark on a run.

    Raises:
        InvalidInput: it is too long.
    """
    found = Mark(_printable(name), _printable(note), favorite)
    if not profile().is_shared:
        shared_store().write_mark(run, found)
        return
    kept = marks()
    kept.pop(run, None)
    if found != Mark():
        kept[run] = found


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable() or letter == "\n").strip()
