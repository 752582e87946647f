"""A user's program: strict type checks, and a run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # type checkers read all code behind the public API
PROGRAM = Path(__file__).with_name("user_program.py")
ROOT = PROGRAM.parents[2]


def reported(*command: str, folder: Path) -> str:
    """Run a command that must succeed, and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_program_has_sixty_lines():
    assert 60 <= len(PROGRAM.read_text(encoding="utf-8").splitlines()) <= 80


def test_program_runs(tmp_path):
    assert reported(str(PROGRAM), folder=tmp_path).startswith("widths")


def test_program_passes_mypy_strict(tmp_path):
    """Without this project's mypy settings, as for users."""
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n[mypy-optax.*,scipy.*,lazy_loader.*]\nignore_missing_imports = True\n")
    reported("-m", "mypy", "--config-file", str(config), "--follow-imports=silent", str(PROGRAM), folder=tmp_path)


def test_program_passes_pyright(tmp_path):
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    reported("-m", "pyright", "--pythonpath", sys.executable, str(PROGRAM), folder=ROOT)
