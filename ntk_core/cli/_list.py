"""``list``: the runs in the store."""

import argparse
import json
from datetime import datetime
from typing import Any

from ntk_core.cli._printing import printable
from ntk_core.errors import InvalidInput
from ntk_core.runs import KINDS
from ntk_core.runs.store import STATUSES, Store, StoredRun


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("list", help="list the runs in the store, most recently used first")
    parser.add_argument("--experiment", choices=tuple(KINDS), default="")
    parser.add_argument("--status", choices=STATUSES, default="")
    parser.add_argument("--search", metavar="WORDS", default="", help="words that occur in settings or digest")
    parser.add_argument("--limit", metavar="N", default="50", help="at most this many (default 50)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.set_defaults(command=list_runs)


def list_runs(options: argparse.Namespace) -> None:
    """One line per run."""
    if not (options.limit.isascii() and options.limit.isdigit() and 1 <= int(options.limit[:9]) <= 100_000):
        raise InvalidInput("--limit", options.limit, "an integer from 1 to 100,000")
    store = Store()
    found = store.runs(
        experiment=options.experiment, status=options.status, text=options.search, limit=int(options.limit)
    )
    for run in found.runs:
        print(_json(run) if options.json else _line(run))
    if not options.json:
        shown = "" if len(found.runs) == found.total else f"{len(found.runs):,} of "
        print(f"{shown}{found.total:,} runs, {store.num_bytes() / 1e6:.1f} of {store.max_bytes / 1e6:,.0f} MB")


def _line(run: StoredRun) -> str:
    used = datetime.fromtimestamp(run.used).isoformat(" ", "minutes")
    points = f"{run.num_points}/{len(run.spec.point_keys())}" if run.spec else str(run.num_points)
    marks = " private" * run.private + " imported" * run.imported
    swept = f"{run.experiment}: {run.swept}"
    return printable(f"{run.digest[:12]}  {run.status:<9}  {points:>7}  {used}  {run.num_bytes:>11,}  {swept}{marks}")


def _json(run: StoredRun) -> str:
    values = {name: getattr(run, name) for name in StoredRun.__dataclass_fields__ if name != "spec"}
    return json.dumps({**values, "spec": run.spec and run.spec.model_dump(mode="json")})
