"""``run``: compute a preset or a spec."""

import argparse
from pathlib import Path
from typing import Any

from ntk_core.cli._following import add_json_option, compute, wants_json
from ntk_core.cli._targets import assignment, spec_named
from ntk_core.errors import InvalidInput
from ntk_core.runs.run_directory import RunDirectory
from ntk_core.settings.grammar import with_settings


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("run", help="compute a preset or a spec", allow_abbrev=False)
    parser.add_argument("target", metavar="PRESET_OR_SPEC.json", help="name of a preset, or path of a spec in JSON")
    parser.add_argument(
        "--set", dest="settings", action="extend", nargs="+", default=[], metavar="NAME=VALUE",
        help="change settings: widths=30,100,1000 training.learning_rate=0.5",
    )  # fmt: skip
    parser.add_argument("--paper", action="store_true", help="use the paper's sizes")
    parser.add_argument(
        "--out", metavar="DIR",
        help="write spec.json, result.json, points.csv and points/ there, and resume from them; by default the run is "
        "kept in the store, as the pages keep theirs",
    )  # fmt: skip
    add_json_option(parser)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Compute it, resuming what was finished before."""
    spec = spec_named(options.target, options.paper)
    if options.settings:
        spec = with_settings(spec, dict(assignment(text, spec) for text in options.settings))
    if options.out is not None and not options.out.strip():  # it would be the working directory
        raise InvalidInput("--out", options.out, "the name of a directory")
    directory = RunDirectory(Path(options.out)) if options.out is not None else None
    return compute(spec, directory, wants_json(options))
