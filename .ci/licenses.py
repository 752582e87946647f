"""Licenses of all packages of the dashboard, and whether each may be redistributed.

python .ci/licenses.py            a table of the installed packages
exit code 1: a license is missing or not allowed
"""

from __future__ import annotations

import importlib.metadata as metadata
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
# Permissive ones, and two (MPL, LGPL) whose terms apply to the package alone. In terms of SPDX
# and of classifiers.
ALLOWED = re.compile(
    r"MIT(-CMU|-0)?|MIT License|(0BSD|BSD)(-\d-Clause)?|BSD License|\d-Clause BSD License"
    r"|ISC( License.*)?|Apache([- ]2\.0|[- ]License.*)?|Apache Software License"
    r"|PSF(-2\.0)?|Python Software Foundation License"
    r"|CMU License \(MIT-CMU\)?|Zlib|CC0-1\.0|Unlicense|The Unlicense.*|HPND"
    r"|MPL-2\.0|Mozilla Public License 2\.0.*|LGPL-3\.0-only|GNU Lesser General Public License v3.*"
    r"|GNU Library or Lesser General Public License \(LGPL\)?",
    re.IGNORECASE,
)


def installed(names: Iterator[str]) -> dict[str, metadata.Distribution]:
    """Return these packages and their installed dependencies by canonical name."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [Requirement(name) for name in names]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        extras = frozenset(wanted.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        for line in found[name].requires or []:
            inner = Requirement(line)
            if inner.marker is None or any(
                inner.marker.evaluate({"extra": extra}) for extra in (extras or {""})
            ):
                waiting.append(inner)
    return found


def stated(file: str) -> Iterator[str]:
    """Yield the requirements of a file of this project and of its included files."""
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            yield from stated(text.removeprefix("-r "))
        elif text:
            yield text


def license_of(package: metadata.Distribution) -> str:
    """Return the license that a package states.

    It is the SPDX expression, classifiers, or first line of the license field; empty for none.
    """
    about = package.metadata
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in about.get_all("Classifier") or []
        if "License ::" in text
    ]
    if any(text != "OSI Approved" for text in classifiers):
        return " AND ".join(text for text in classifiers if text != "OSI Approved")
    return str(about.get("License") or "").strip().partition("\n")[0]


def is_allowed(expression: str) -> bool:
    """Whether all licenses of an expression are allowed, or one of each choice."""
    choices = re.split(r"\s+OR\s+", expression.strip("() "))
    return any(
        all(ALLOWED.fullmatch(name.strip("() ")) for name in re.split(r"\s+AND\s+", choice))
        for choice in choices
    )


def main() -> int:
    """Print the table; return 1 if a license is not allowed."""
    bad = 0
    for name, package in sorted(installed(stated("requirements.txt")).items()):
        expression = license_of(package)
        allowed = is_allowed(expression)
        bad += not allowed
        remark = "" if allowed else "   <- not allowed"
        print(f"{name:28} {package.version:14} {expression or 'none'}{remark}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
