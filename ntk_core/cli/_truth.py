"""``truth``: write what is claimed beside what the gallery measures."""

import argparse
from pathlib import Path
from typing import Any

from ntk_core.environment import IS_CHECKOUT
from ntk_core.runs.run_directory import write_whole
from ntk_core.runs.truth import TRUTH, rendered


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("truth", help="write docs/truth.md: every claim, what is measured, and the verdict")
    kept = {"default": str(TRUTH)} if IS_CHECKOUT else {"required": True}
    parser.add_argument("--out", metavar="FILE", help="where (in a checkout: docs/truth.md)", **kept)
    parser.set_defaults(command=truth)


def truth(options: argparse.Namespace) -> None:
    """The page, from the gallery as it is."""
    write_whole(Path(options.out), rendered(), "--out")
