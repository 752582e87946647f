"""Check that the tree is ready for the tag of its version: CONTRIBUTING.md, Releases.

Prints one line for each step that is missing, and exits with 1 if there is any.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

MAX_LINES = 40  # entries of one release in CHANGELOG.md
MAX_LENGTH = 140  # characters of one entry


def section(changes: str, version: str) -> str | None:
    """Return the text of a release in the changelog; None if it has no heading."""
    heading = rf"^## \[{re.escape(version)}\](?: - \d{{4}}-\d\d-\d\d)?$"
    found = re.search(heading + r"\n(.*?)(?=^## \[|\Z)", changes, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else None


def problems_of_entries(text: str) -> Iterator[str]:
    """Yield what is wrong with the entries of one release: too many, too long, or wrapped."""
    lines = [line for line in text.splitlines() if line and not line.startswith("### ")]
    entries = [line for line in lines if line.startswith("- ")]
    if len(entries) > MAX_LINES:
        yield f"CHANGELOG.md: {len(entries)} entries; at most {MAX_LINES}"
    for line in lines:
        if not line.startswith("- "):
            yield f"CHANGELOG.md: not an entry of one line: {line[:60]}"
        elif len(line) > MAX_LENGTH:
            yield f"CHANGELOG.md: longer than {MAX_LENGTH} characters: {line[:60]}"


def problems(root: Path) -> Iterator[str]:
    """Yield the missing steps of a release of the version in ``ntk_core/_version.py``."""
    stated = (root / "ntk_core" / "_version.py").read_text(encoding="utf-8")
    version = re.fullmatch(r'__version__ = "(.+)"\n', stated)
    if version is None:
        yield "ntk_core/_version.py: no version"
        return
    number = version.group(1)

    cited = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    if cited["version"] != number:
        yield f"CITATION.cff: version {cited['version']}, not {number}"

    entries = section((root / "CHANGELOG.md").read_text(encoding="utf-8"), number)
    if entries is None:
        yield f"CHANGELOG.md: no section [{number}]"
    else:
        yield from problems_of_entries(entries)

    runs = root / "tests" / "runs" / "stores" / number / "runs.json"
    if not runs.is_file():
        yield f"tests/runs/stores/{number}: missing; python -m tests.runs.stores.write writes it"
    elif not json.loads(runs.read_text(encoding="utf-8")):
        yield f"tests/runs/stores/{number}/runs.json: no runs"

    if git(root, "status", "--porcelain"):
        yield "git: uncommitted changes"
    if git(root, "tag", "--list", f"v{number}"):
        yield f"git: the tag v{number} exists; choose the next version"


def git(root: Path, *arguments: str) -> str:
    """Return what git prints about the checkout."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    missing = list(problems(Path(__file__).parents[1]))
    print("\n".join(missing) if missing else "ready: make wheel, then tag")
    sys.exit(bool(missing))
