"""The Python that documents show runs: examples in docstrings, and blocks of code in Markdown.

The ```python blocks of a document are one program from top to bottom. It starts in an empty folder that holds
``flowers.csv`` and, as ``layers.json``, the document's own block of JSON.
"""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiler_flags import QUICK_ENVIRONMENT
from tests.data.uploads.files import flowers

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted(path for path in (ROOT / "ntk_core").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
# Variables that a document's machine has and not every machine.
SETTINGS = {"docs/cluster.md": {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}}


def blocks(document: Path, language: str) -> list[str]:
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def run_in(folder: Path, command: list[str], environment: dict[str, str]) -> str:
    """What a command prints that leaves nothing outside the folder."""
    places = {"PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")}
    environment = {**os.environ, **QUICK_ENVIRONMENT, **places, **environment}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


DOCUMENTS = [path for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))] if blocks(path, "python")]
# What a newcomer tries first is tried every time.
IN_TIERS = [path if path.name == "README.md" else pytest.param(path, marks=pytest.mark.slow) for path in DOCUMENTS]


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_examples_in_docstrings_give_what_they_show(path: Path) -> None:
    module = importlib.import_module(named(path).removesuffix(".py").replace("/", "."))
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("path", IN_TIERS, ids=named)
def test_code_in_documents_runs(path: Path, tmp_path: Path) -> None:
    (tmp_path / "flowers.csv").write_bytes(flowers())
    for text in blocks(path, "json")[:1]:
        (tmp_path / "layers.json").write_text(text, encoding="utf-8")
    program = "\n".join(blocks(path, "python"))
    run_in(tmp_path, [sys.executable, "-W", "error::DeprecationWarning", "-c", program], SETTINGS.get(named(path), {}))


@pytest.mark.slow
def test_the_commands_of_the_readme_compute_and_show_a_result(tmp_path: Path) -> None:
    (commands,) = [block for block in blocks(ROOT / "README.md", "sh") if block.startswith("python -m ntk_core ")]
    own_python_first = {"PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))}
    said = run_in(tmp_path, ["bash", "-ec", commands], own_python_first)
    assert "liu-fig1-left" in said
    assert list((tmp_path / "results").iterdir())


def test_the_documents_that_show_code_are_found() -> None:
    assert "README.md" in map(named, DOCUMENTS)
    assert len(EXAMPLES) >= 20
