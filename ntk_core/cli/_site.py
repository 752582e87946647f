"""``site``: the lab as static files."""

import argparse
import importlib
from pathlib import Path
from typing import Any

from ntk_core.cli._printing import complain
from ntk_core.errors import InvalidInput
from ntk_core.runs.run_directory import write_whole

_DASHBOARD = "linearity_lab.site"  # named, not imported: the core stands without it


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("site", help="write the lecture, Live and every figure as static files")
    parser.add_argument("--out", metavar="DIR", required=True, help="a new or empty folder, or one with such a site")
    parser.set_defaults(command=site)


def site(options: argparse.Namespace) -> None:
    """The files; those of an earlier site are replaced."""
    folder = Path(options.out)
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / "site.js").is_file())):
        raise InvalidInput("--out", options.out, "a new or empty folder, or one with an earlier site")
    try:
        made = importlib.import_module(_DASHBOARD)
    except ImportError as error:
        raise InvalidInput("site", error.name or "", "an installation with the dashboard: linearity-lab[app]") from None

    written: set[Path] = set()

    def write(path: Path, text: str) -> None:
        write_whole(path, text, "--out")
        written.add(path)

    for said in made.write_site(folder, write):
        complain(f"Written: {said}.")
    for earlier in {*folder.glob("data/*.js"), *folder.glob("figures/*.html")} - written:
        earlier.unlink()
