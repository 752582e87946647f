"""The Python that documents show runs: examples in docstrings, and blocks of code in Markdown.

The ```python blocks of a document are one program from top to bottom, which starts in an empty folder. Short ones
share a process.
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

import ntk_core
from tests.compiler_flags import QUICK_ENVIRONMENT

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted(path for path in (ROOT / "ntk_core").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
# Variables that a document's machine has and not every machine.
SETTINGS = {"docs/cluster.md": {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}}
# They start JAX and need nothing of their own but a folder for data.
SHARING = ("notebooks", "own-data-and-models", "scale", "tour")


def blocks(document: Path, language: str) -> list[str]:
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def installed_command(folder: Path) -> Path:
    """Return a folder with the command ``linearity-lab``, as an installation of this checkout has it."""
    command = folder / "bin" / "linearity-lab"
    command.parent.mkdir(exist_ok=True)
    program = "import sys; from ntk_core.cli import program; sys.exit(program())"
    command.write_text(f"#!{sys.executable}\n{program}\n", encoding="utf-8")
    command.chmod(0o755)
    return command.parent


def run_in(folder: Path, command: list[str], environment: dict[str, str]) -> str:
    """What a command prints that leaves nothing outside the folder."""
    places = {"PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")}
    environment = {**os.environ, **QUICK_ENVIRONMENT, **places, **environment}
    environment["PATH"] = os.pathsep.join((str(installed_command(folder)), environment["PATH"]))
    environment.pop("LINEARITY_LAB_STORE", None)  # as a newcomer's: the one of the data directory
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


SHOWN = [path for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))] if blocks(path, "python")]
DOCUMENTS = [path for path in SHOWN if path.parent.name != "api"]  # make docs runs those of the library
TOGETHER = [path for path in DOCUMENTS if path.parent.name == "tutorials" or path.stem in SHARING]
# What a newcomer tries first is tried every time.
IN_TIERS = [
    path if path.name == "README.md" else pytest.param(path, marks=pytest.mark.slow)
    for path in DOCUMENTS
    if path not in TOGETHER
]


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_examples_in_docstrings_give_what_they_show(path: Path) -> None:
    module = importlib.import_module(named(path).removesuffix(".py").replace("/", "."))
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("path", IN_TIERS, ids=named)
def test_code_in_documents_runs(path: Path, tmp_path: Path) -> None:
    program = "\n".join(blocks(path, "python"))
    run_in(tmp_path, [sys.executable, "-W", "error::DeprecationWarning", "-c", program], SETTINGS.get(named(path), {}))


ONE_AFTER_ANOTHER = """
import os, runpy
for name in {names}:
    print(name)
    os.environ["XDG_DATA_HOME"] = os.path.abspath(name + ".data")
    runpy.run_path(name, run_name="__main__")
"""


@pytest.mark.slow
def test_code_of_tutorials_and_longer_documents_runs(tmp_path: Path) -> None:
    """Each is a program with names and results of its own, in one process; the cluster's starts others that read it."""
    assert len(TOGETHER) >= 8
    names = [f"{'-'.join(path.relative_to(ROOT).with_suffix('').parts)}.py" for path in TOGETHER]
    for name, path in zip(names, TOGETHER, strict=True):
        (tmp_path / name).write_text("\n".join(blocks(path, "python")), encoding="utf-8")
    program = ONE_AFTER_ANOTHER.format(names=names)
    shown = run_in(tmp_path, [sys.executable, "-W", "error::DeprecationWarning", "-c", program], {})
    assert [line for line in shown.splitlines() if line in names] == names


def test_every_public_name_has_an_example() -> None:
    """In its docstring, or in the code of the page that describes it."""
    missing = []
    for path in (ROOT / "docs" / "api").glob("*.md"):
        text, code = path.read_text(encoding="utf-8"), "\n".join(blocks(path, "python"))
        for name in re.findall(r"^\.\. auto\w+:: ntk_core\.(\w+)$", text, flags=re.MULTILINE):
            found = ">>> " in (getattr(ntk_core, name).__doc__ or "") or re.search(rf"ntk_core\.{name}\b", code)
            missing += [] if found else [name]
    assert missing == []


@pytest.mark.slow
def test_the_commands_of_the_tour_compute_and_show_a_result(tmp_path: Path) -> None:
    (commands,) = [block for block in blocks(ROOT / "docs/tour.md", "sh") if block.startswith("linearity-lab presets")]
    assert commands in blocks(ROOT / "docs/start.md", "sh")
    shown = run_in(tmp_path, ["bash", "-ec", commands], {})
    assert "liu-fig1-left" in shown
    assert list((tmp_path / "results").iterdir())


def test_the_documents_that_show_code_are_found() -> None:
    assert "README.md" in map(named, DOCUMENTS)
    assert len(EXAMPLES) >= 20
