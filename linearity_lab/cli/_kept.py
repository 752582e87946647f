"""Commands for presets and stored runs, without computation."""

import importlib
import json as json_format
import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from linearity_lab.citation import bibtex, cite_run
from linearity_lab.cli._complaints import complain
from linearity_lab.cli._targets import RUN, Flag, KeptRun, kept_run, stored_digest, unreadable_run
from linearity_lab.cli.run_directory import WRITABLE, file_errors, write_whole
from linearity_lab.exit_codes import COMPLETED, FAILED
from linearity_lab.files import written_whole
from linearity_lab.runs import KINDS, PRESETS, Result, canonical_json, imported_words, run_summary
from linearity_lab.runs.store import (
    READING_WORDS,
    STATUSES,
    KnownRun,
    Mark,
    Reading,
    Store,
    StoredRun,
    UnfinishedJob,
    read_runs,
    write_runs,
)
from ntk_core.errors import InvalidInput, check_choice
from ntk_core.machine import how_to_install
from ntk_core.markup import printable

# Named, not imported: the core works without the dashboard.
_DASHBOARD = "linearity_lab.dashboard.export_formats"
_SUFFIXES = (
    ".jsonl for any number of runs; for one run .json (result), .csv (numbers), .py (program), "
    ".ipynb (notebook) or .html (figure)"
)


def presets(*, json: Flag = False) -> None:
    """List the presets.

    Args:
        json: Print their specs as JSON.
    """
    if json:
        specs = {
            name: json_format.loads(canonical_json(found.spec)) for name, found in PRESETS.items()
        }
        print(json_format.dumps(specs, indent=1))
        return
    for found in PRESETS.values():
        print(
            f"{found.name}: {found.title}\n  {found.statement}\n  Source: {found.source}\n  "
            f"{found.our_choice}\n"
        )


def list_runs(
    *, experiment: str = "", status: str = "", search: str = "", limit: int = 50, json: Flag = False
) -> None:
    """List the runs in the store, most recently used first.

    Args:
        experiment: Only runs of this experiment.
        status: Only runs of this status.
        search: Words that occur in settings or digest.
        limit: Maximum number of runs.
        json: Print one JSON object per line.
    """
    for option, given, allowed in (
        ("--experiment", experiment, KINDS),
        ("--status", status, STATUSES),
    ):
        if given:
            check_choice(option, given, allowed)
    if not 1 <= limit <= 100_000:
        raise InvalidInput("--limit", limit, "an integer from 1 to 100,000")
    store = Store()
    found = store.runs(experiment=experiment, status=status, text=search, limit=limit)
    for run in found.runs:
        print(_as_json(run) if json else _run_line(run))
    if not json:
        shown = "" if len(found.runs) == found.total else f"{len(found.runs):,} of "
        print(
            f"{shown}{found.total:,} runs, {store.num_bytes() / 1e6:.1f} of "
            f"{store.max_bytes / 1e6:,.0f} MB"
        )


def show(
    target: Annotated[str, Parameter(name=RUN)], /, *, cite: Flag = False, bibtex: Flag = False
) -> None:
    """Print the result of a run.

    Args:
        target: Directory of run --out, or the first digits of a run's digest.
        cite: Print how to cite the run.
        bibtex: Print BibTeX entries of the papers and of the run.
    """
    if cite and bibtex:
        raise InvalidInput("--cite", "--bibtex as well", "one of the two")
    known = unreadable_run(target)
    if known is not None and not (cite or bibtex):
        _show_known(known)
        return
    found = kept_run(target)
    if cite or bibtex:
        result = _ended(found, target)
        print(_bibtex(result).rstrip() if bibtex else cite_run(result))
        return
    print(run_summary(found.spec, found.points))
    unfinished = f"Not finished: {len(found.points)} of {len(found.spec.point_keys())} points."
    if imported := imported_words(found.points):
        unfinished += f" {imported}."
    print("\n" + (_origin(found.result) if found.result else unfinished))


def export(*targets: Annotated[str, Parameter(name=RUN)], all: Flag = False, out: str) -> None:
    """Write runs to a file.

    Args:
        targets: Directory of run --out, or the first digits of a run's digest.
        all: Every run in the store.
        out: The file; its suffix decides: .jsonl for any number of runs; for one run .json
            (result), .csv (numbers), .py (program), .ipynb (notebook) or .html (figure).
    """
    path = Path(out)
    if bool(targets) == all:
        raise InvalidInput(RUN, " ".join(targets), "the runs to export, or --all")
    if path.suffix == ".jsonl":
        _export_runs(path, targets)
        return
    if path.suffix not in (".json", ".csv", ".py", ".ipynb", ".html"):
        raise InvalidInput("--out", out, _SUFFIXES)
    if len(targets) != 1:
        raise InvalidInput("--out", out, "a file .jsonl for several runs")
    known = unreadable_run(targets[0])
    if known is not None and path.suffix in (".json", ".csv"):
        complain(known.sentence)
        text = known.csv() if path.suffix == ".csv" else f"{known.json()}\n"
        write_whole(path, text, "--out")
        return
    found = kept_run(targets[0])
    if path.suffix == ".json":
        text = _ended(found, targets[0]).model_dump_json(indent=1) + "\n"
    elif path.suffix == ".csv":
        text = _ended(found, targets[0]).csv()
    else:
        result = _ended(found, targets[0]) if path.suffix == ".html" else None
        try:
            exports = importlib.import_module(_DASHBOARD)
        except ImportError as error:
            need = (
                f".jsonl, .json or .csv without the dashboard, which {how_to_install('app')} "
                f"adds ({error.name})"
            )
            raise InvalidInput("--out", out, need) from None
        text = exports.export_text(found.spec, result, path.suffix)
    write_whole(path, text, "--out")


def import_runs(file: str, /) -> int:
    """Import runs from a file; damaged runs are reported and skipped.

    Args:
        file: A .jsonl file from export.
    """
    path = Path(file)
    with file_errors("FILE", path):
        if path.exists() and not path.is_file():
            raise InvalidInput("FILE", file, "an ordinary file of runs")
        stream = path.open("rb")
    with stream:
        found = read_runs(Store(), stream, field="FILE")
    complain(*(f"{sentence}." for sentence in found.left_aside[:_MOST_NAMED]))
    print(f"{len(found.digests)} runs imported, {len(found.left_aside)} skipped.")
    return COMPLETED if not found.left_aside else FAILED


def delete(target: Annotated[str, Parameter(name="DIGEST")], /, *further: str) -> None:
    """Delete runs from the store; none if one is unknown.

    Args:
        target: The first digits of a run's digest.
        further: Further digests.
    """
    store = Store()
    for run in [stored_digest(store, each) for each in (target, *further)]:
        store.delete(run)


def backup(file: str, /) -> None:
    """Copy the store to a new file, also while a server or a run writes to it.

    Args:
        file: The copy. LINEARITY_LAB_STORE=FILE opens it.
    """
    path = Path(file)
    if os.path.lexists(path):
        raise InvalidInput("FILE", file, "a new file; nothing is overwritten")
    with file_errors("FILE", path.parent, WRITABLE):
        num_runs = Store().back_up(path)
    print(f"{num_runs:,} runs copied to {path}.")


def jobs(
    *,
    end: Annotated[tuple[str, ...], Parameter(consume_multiple=(1, None), negative=())] = (),
    json: Flag = False,
) -> None:
    """List or end waiting and running jobs of a server.

    Args:
        end: End the jobs with these digests; their points are kept.
        json: Print one JSON object per line.
    """
    store = Store()
    found = store.unfinished_jobs()
    named = [
        [job for job in found if prefix and job.digest.startswith(prefix.lower())] for prefix in end
    ]
    for prefix, fitting in zip(end, named, strict=True):
        if len(fitting) != 1:
            raise InvalidInput(
                "--end",
                prefix,
                "the first digits of one unfinished job's digest, as `jobs` shows it",
            )
    for (job,) in named:
        store.end_job(job.digest)
    if not end:
        for job in found:
            print(_as_json(job) if json else _job_line(job))


_MOST_NAMED = 20  # skipped runs
_bibtex = bibtex  # ``show`` has an option of this name


def _ended(found: KeptRun, target: str) -> Result:
    if found.result is None:
        raise InvalidInput(RUN, target, "a run that has ended; resume it first")
    return found.result


def _origin(result: Result) -> str:
    provenance = result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    imported = f"; {result.imported_words}" if result.num_imported else ""
    return (
        f"{result.status}, {len(result.points)} of {len(result.spec.point_keys())} points, "
        f"{result.runtime_s:.1f} s from {provenance.started_at} "
        f"on {provenance.device} in {provenance.dtype}; {versions}{imported}"
    )


def _show_known(known: KnownRun) -> None:
    """Print what is known of a run whose settings this version cannot read."""
    run = known.run
    mark = Store().marks().get(run.digest, Mark())
    created = datetime.fromtimestamp(run.created).isoformat(" ", "minutes")
    name = f"{mark.name}, " if mark.name else ""
    print(printable(f"{name}{run.experiment}: {run.swept}"))
    print(f"{run.status}, {run.num_points} points, stored {created}")
    print(printable(known.sentence))
    if run.document is not None:
        print("\n" + printable(json_format.dumps(run.document)))
    print("\n" + known.csv().rstrip())


def _export_runs(path: Path, targets: tuple[str, ...]) -> None:
    store = Store()
    total = store.runs(limit=1).total
    runs = [stored_digest(store, target) for target in targets] or [
        run.digest for run in store.runs(limit=total).runs
    ]
    with file_errors("--out", path.parent, WRITABLE), written_whole(path) as file:
        written = write_runs(store, runs, file)
    complain(f"{written} of {len(runs)} runs written to {path}.")


def _run_line(run: StoredRun) -> str:
    used = datetime.fromtimestamp(run.used).isoformat(" ", "minutes")
    points = f"{run.num_points}/{len(run.spec.point_keys())}" if run.spec else str(run.num_points)
    marks = " private" * run.private + " imported" * run.imported
    if run.reading is not Reading.READABLE:
        marks += f" {READING_WORDS[run.reading]}"
    swept = f"{run.experiment}: {run.swept}"
    return printable(
        f"{run.digest[:12]}  {run.status:<9}  {points:>7}  {used}  {run.num_bytes:>11,}  "
        f"{swept}{marks}"
    )


def _as_json(entry: StoredRun | UnfinishedJob) -> str:
    """Return a run or job as a JSON line, without owners and settings of uploaded data."""
    values = {
        name: getattr(entry, name) for name in type(entry).__dataclass_fields__ if name != "owner"
    }
    is_hidden = False
    if isinstance(entry, UnfinishedJob):
        values |= {
            "digest": entry.digest,
            "visitor": entry.visitor,
            "experiment": entry.spec.experiment,
        }
        is_hidden = entry.spec.is_private
    spec = None if entry.spec is None or is_hidden else entry.spec.model_dump(mode="json")
    return json_format.dumps({**values, "spec": spec})


def _job_line(job: UnfinishedJob) -> str:
    since = datetime.fromtimestamp(job.submitted_s).isoformat(" ", "minutes")
    state = "waiting"
    if job.ending:
        state = "ending"
    elif job.running:
        state = "running"
    allowed = "any time" if job.allowed_s is None else f"{job.allowed_s:.0f} s"
    name = job.spec.experiment if job.spec else "settings that cannot be read"
    return printable(
        f"{job.digest[:16]}  {state:<8}  {since}  {job.spent_s:>7.0f} s of {allowed:<9}  "
        f"{job.visitor:<6}  {name}"
    )
