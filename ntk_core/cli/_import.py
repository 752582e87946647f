"""``import``: runs from a file of ``export``."""

import argparse
from pathlib import Path
from typing import Any

from ntk_core.cli._exit_codes import COMPLETED, FAILED
from ntk_core.cli._printing import complain
from ntk_core.errors import InvalidInput
from ntk_core.runs.run_directory import unreadable
from ntk_core.runs.store import Store, read_runs


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("import", help="put the runs of a file into the store")
    parser.add_argument("file", metavar="FILE", help="a file .jsonl, as export writes it")
    parser.set_defaults(command=import_runs)


def import_runs(options: argparse.Namespace) -> int:
    """Every good run; the others are named and left aside."""
    path = Path(options.file)
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput("FILE", options.file, "an ordinary file of runs")
        file = path.open("rb")
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise unreadable("FILE", path, error) from None
    with file:
        found = read_runs(Store(), file, field="FILE")
    complain(*(f"{sentence}." for sentence in found.left_aside))
    print(f"{len(found.digests)} runs imported, {found.num_left_aside} left aside.")
    return COMPLETED if not found.num_left_aside else FAILED
