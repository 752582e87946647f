"""``presets``: the papers' figures that can be run."""

import argparse
import json
from typing import Any

from ntk_core.runs import PRESETS, canonical_json


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("presets", help="list the papers' figures that can be run")
    parser.add_argument("--json", action="store_true", help="print their specs as JSON")
    parser.set_defaults(command=presets)


def presets(options: argparse.Namespace) -> None:
    """Name, claim and source of each; or their specs."""
    if options.json:
        print(json.dumps({name: json.loads(canonical_json(found.spec)) for name, found in PRESETS.items()}, indent=1))
        return
    for found in PRESETS.values():
        print(f"{found.name}: {found.title}\n  {found.claim}\n  Source: {found.source}\n  {found.our_choice}\n")
