"""Types for users: every public name, and a program under strict checks that also runs."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ntk_core

pytestmark = pytest.mark.slow  # type checkers read all code behind the public API
PROGRAM = Path(__file__).with_name("user_program.py")
ROOT = PROGRAM.parents[2]
NAMES = [name for name in dir(ntk_core) if not name.startswith("_")]


def ended(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with this checkout as the installed library."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_program_runs(tmp_path):
    done = ended(str(PROGRAM), folder=tmp_path)
    assert done.stdout.startswith("widths"), done.stderr


def test_program_and_public_names_pass_mypy_strict(tmp_path):
    """Without this project's mypy settings, as for users; the only error is a name that does not exist."""
    config, names = tmp_path / "mypy.ini", tmp_path / "names.py"
    config.write_text("[mypy]\nstrict = True\n[mypy-optax.*,scipy.*,lazy_loader.*]\nignore_missing_imports = True\n")
    names.write_text("\n".join(["import ntk_core", "ntk_core.nothing", *(f"reveal_type(ntk_core.{n})" for n in NAMES)]))
    checks = ("-m", "mypy", "--config-file", str(config), "--follow-imports=silent", str(PROGRAM), str(names))
    shown = ended(*checks, folder=tmp_path).stdout
    assert re.findall(r"error: (.*)", shown) == ['Module has no attribute "nothing"  [attr-defined]']
    kinds = re.findall(r"note: Revealed type is (.*)$", shown, flags=re.MULTILINE)
    revealed = dict(zip(NAMES, kinds, strict=True))
    assert [name for name, kind in revealed.items() if kind == '"Any"'] == []
    parts = ("net: ntk_core.", "Network", "x1: ", "per_layer: Literal[True]", "Array")
    assert all(part in revealed["empirical_ntk"] for part in parts)


def test_program_passes_pyright():
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    done = ended("-m", "pyright", "--pythonpath", sys.executable, str(PROGRAM), folder=ROOT)
    assert done.returncode == 0, done.stdout
