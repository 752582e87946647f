"""``resume``: go on with a run that was stopped or killed."""

import argparse
from typing import Any

from ntk_core.cli._following import add_json_option, compute, wants_json
from ntk_core.cli._targets import kept_run


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("resume", help="continue a run from its finished points")
    parser.add_argument("target", metavar="DIR_OR_DIGEST", help="directory of run --out, or a run's first digits")
    add_json_option(parser)
    parser.set_defaults(command=resume)


def resume(options: argparse.Namespace) -> int:
    """Compute the points that are missing; a run that is complete computes nothing."""
    found = kept_run(options.target)
    return compute(found.spec, found.directory, wants_json(options))
