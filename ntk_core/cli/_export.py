"""``export``: runs as files."""

import argparse
from pathlib import Path
from typing import Any

from ntk_core.cli._printing import complain
from ntk_core.cli._targets import kept_run, stored_digest
from ntk_core.errors import InvalidInput
from ntk_core.runs.run_directory import write_whole, written_whole
from ntk_core.runs.store import Store, write_runs

_SUFFIXES = "a file .jsonl for any number of runs, .json for the result of one, .csv for its numbers"


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("export", help="write runs to a file")
    parser.add_argument("targets", nargs="*", metavar="DIR_OR_DIGEST", help="the first digits of a run's digest")
    parser.add_argument("--all", action="store_true", help="every run in the store")
    parser.add_argument("--out", metavar="FILE", required=True, help=_SUFFIXES)
    parser.set_defaults(command=export)


def export(options: argparse.Namespace) -> None:
    """One file; what it is follows from its name."""
    path, targets = Path(options.out), options.targets
    if bool(targets) == options.all:
        raise InvalidInput("DIR_OR_DIGEST", " ".join(targets), "the runs to export, or --all")
    if path.suffix == ".jsonl":
        _export_runs(path, targets)
        return
    if path.suffix not in (".json", ".csv"):
        raise InvalidInput("--out", options.out, _SUFFIXES)
    if len(targets) != 1:
        raise InvalidInput("--out", options.out, "a file .jsonl for several runs")
    result = kept_run(targets[0]).result
    if result is None:
        raise InvalidInput("DIR_OR_DIGEST", targets[0], "a run that has ended; resume it first")
    text = result.csv() if path.suffix == ".csv" else result.model_dump_json(indent=1) + "\n"
    write_whole(path, text, "--out")


def _export_runs(path: Path, targets: list[str]) -> None:
    store = Store()
    total = store.runs(limit=1).total
    runs = [stored_digest(store, target) for target in targets] or [run.digest for run in store.runs(limit=total).runs]
    with written_whole(path, "--out") as file:
        written = write_runs(store, runs, file)
    complain(f"{written} of {len(runs)} runs written to {path}.")
