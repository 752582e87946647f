"""``show``: what a run gave, as text."""

import argparse
from typing import Any

from ntk_core.cli._targets import kept_run
from ntk_core.errors import InvalidInput
from ntk_core.runs import Result, summary
from ntk_core.runs.citation import bibtex, cite_run


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("show", help="print the result of a run")
    parser.add_argument("target", metavar="DIR_OR_DIGEST", help="directory of run --out, or a run's first digits")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--cite", action="store_true", help="print how to cite the run")
    which.add_argument("--bibtex", action="store_true", help="print BibTeX entries of the papers and of the run")
    parser.set_defaults(command=show)


def show(options: argparse.Namespace) -> None:
    """The table and the origin, or the citation."""
    found = kept_run(options.target)
    if options.cite or options.bibtex:
        if found.result is None:
            raise InvalidInput("DIR_OR_DIGEST", options.target, "a run that has ended, to be cited; resume it first")
        print(bibtex(found.result).rstrip() if options.bibtex else cite_run(found.result))
        return
    print(summary(found.spec, found.points))
    unfinished = f"Not finished: {len(found.points)} of {len(found.spec.point_keys())} points."
    print("\n" + (_origin(found.result) if found.result else unfinished))


def _origin(result: Result) -> str:
    provenance = result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    return (
        f"{result.status}, {len(result.points)} of {len(result.spec.point_keys())} points, "
        f"{result.runtime_s:.1f} s from {provenance.started_at} "
        f"on {provenance.device} in {provenance.dtype}; {versions}"
    )
