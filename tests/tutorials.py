"""The files that a tutorial shows, so that tests add them to a copy of the product as a reader would."""

from __future__ import annotations

import re
from pathlib import Path

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"


def files_of(tutorial: str) -> dict[str, str]:
    """Path → text of every block of code whose caption is a path."""
    text = (TUTORIALS / tutorial).read_text(encoding="utf-8")
    found = re.findall(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert found, tutorial
    return dict(found)
