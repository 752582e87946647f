"""Names of ``import ntk_core`` for type checkers: each with its signature, and no others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ntk_core

pytestmark = pytest.mark.slow  # mypy reads the whole library
ROOT = Path(__file__).resolve().parents[2]
NAMES = [name for name in dir(ntk_core) if not name.startswith("_")]


@pytest.fixture(scope="module")
def shown() -> list[str]:
    """Messages of mypy for a missing name, then for every public name."""
    program = ["import ntk_core", "ntk_core.nothing", *(f"reveal_type(ntk_core.{name})" for name in NAMES)]
    ended = subprocess.run(
        [sys.executable, "-m", "mypy", "-c", "\n".join(program)],  # mypy's cache from make static
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    return re.findall(r"^<string>:\d+: (.*)$", ended.stdout, flags=re.MULTILINE)


def test_a_name_that_does_not_exist_is_an_error(shown):
    assert [line for line in shown if line.startswith("error")] == [
        'error: Module has no attribute "nothing"  [attr-defined]'
    ]


def test_every_public_name_has_a_type(shown):
    revealed = [line.removeprefix("note: Revealed type is ") for line in shown if line.startswith("note")]
    assert len(revealed) == len(NAMES)
    assert [name for name, kind in zip(NAMES, revealed, strict=True) if kind == '"Any"'] == []
    kernel = revealed[NAMES.index("empirical_ntk")]
    assert all(part in kernel for part in ("net: ntk_core.", "Network", "x1: ", "per_layer: Literal[True]", "Array"))
