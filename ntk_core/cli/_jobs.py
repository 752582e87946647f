"""``jobs``: what the servers of this store have not finished, and how an operator ends it."""

import argparse
import json
from datetime import datetime
from typing import Any

from ntk_core.cli._printing import printable
from ntk_core.errors import InvalidInput
from ntk_core.runs.store import ListedJob, Store


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("jobs", help="list the jobs that wait or run on a server, and end them")
    parser.add_argument("--end", nargs="+", metavar="DIGEST", default=[], help="end these jobs; their points are kept")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.set_defaults(command=jobs)


def jobs(options: argparse.Namespace) -> None:
    """One line per job; or ask the server to end those that are named, all or none."""
    store = Store()
    found = store.unfinished_jobs()
    for job in [_named(found, prefix) for prefix in options.end]:
        store.end_job(job.digest)
    if not options.end:
        for job in found:
            print(json.dumps(job.as_json()) if options.json else _line(job))


def _named(found: tuple[ListedJob, ...], prefix: str) -> ListedJob:
    fitting = [job for job in found if prefix and job.digest.startswith(prefix.lower())]
    if len(fitting) != 1:
        raise InvalidInput("--end", prefix, "the first digits of one unfinished job's digest, as `jobs` shows it")
    return fitting[0]


def _line(job: ListedJob) -> str:
    since = datetime.fromtimestamp(job.submitted_s).isoformat(" ", "minutes")
    state = "ending" if job.ending else "running" if job.running else "waiting"
    allowed = "any time" if job.allowed_s is None else f"{job.allowed_s:.0f} s"
    name = job.spec.experiment if job.spec else "settings that cannot be read"
    return printable(
        f"{job.digest[:16]}  {state:<8}  {since}  {job.spent_s:>7.0f} s of {allowed:<9}  {job.visitor:<6}  {name}"
    )
