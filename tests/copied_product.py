"""A copy of the product: tests edit it at the places of docs/architecture.md,
and run programs in it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.compiler_flags import QUICK_ENVIRONMENT

ROOT = Path(__file__).parents[1]
PACKAGES = ("ntk_core", "linearity_lab")


def copy_product(target: Path, folders: Iterable[str] = PACKAGES) -> Path:
    """Copy these folders of the repository into an empty one, and return it."""
    ignored = shutil.ignore_patterns("__pycache__", ".runs")
    for name in folders:
        shutil.copytree(ROOT / name, target / name, ignore=ignored)
    return target


def edit(copy: Path, file: str, before: str, after: str) -> None:
    """Replace a text that the file contains once."""
    text = (copy / file).read_text(encoding="utf-8")
    assert text.count(before) == 1
    (copy / file).write_text(text.replace(before, after), encoding="utf-8")


def run(copy: Path, program: str) -> None:
    """Run a program that imports the copy, and no other version of the packages."""
    environment = {
        **os.environ,
        **QUICK_ENVIRONMENT,
        "PYTHONPATH": str(copy),
        "XDG_DATA_HOME": str(copy / "data"),
        "LINEARITY_LAB_STORE": f"sqlite:///{copy}/runs.db",
    }
    check = ""
    for package in PACKAGES:
        check += f"import {package}; assert {package}.__file__.startswith({str(copy)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", check + program],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-6000:]
