"""``delete``: runs out of the store."""

import argparse
from typing import Any

from ntk_core.cli._targets import stored_digest
from ntk_core.runs.store import Store


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("delete", help="delete runs from the store")
    parser.add_argument("targets", nargs="+", metavar="DIGEST", help="the first digits of a run's digest")
    parser.set_defaults(command=delete)


def delete(options: argparse.Namespace) -> None:
    """All of them, or none when one is not known."""
    store = Store()
    for run in [stored_digest(store, target) for target in options.targets]:
        store.delete(run)
