"""Python in documents runs: examples in docstrings, and blocks of code in Markdown.

The ```python blocks of a document are one program from top to bottom, which starts in an empty
folder. Most share a process.
"""

import doctest
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs.readable_types import readable
from tests.compiler_flags import QUICK_ENVIRONMENT
from tests.documents import ROOT, SETTINGS, documents, program

NEEDS_TORCH = ROOT / "ntk_core/torch/_module.py"  # tests/libraries runs its example
WITH_EXAMPLES = frozenset(
    path
    for package in ("ntk_core", "linearity_lab")
    for path in (ROOT / package).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
# Examples that train, or compile a Hessian or a ball, take seconds; README's runs every time.
LONG = frozenset(
    ROOT / name
    for name in (
        "linearity_lab/runs/_result.py",
        "linearity_lab/runs/_run.py",
        "ntk_core/curvature/_matrices.py",
        "ntk_core/dynamics/_training.py",
        "ntk_core/hessians/_ball.py",
        "ntk_core/hessians/_ball_eigenvalue.py",
        "ntk_core/hessians/_blocks.py",
        "ntk_core/hessians/_closed_forms.py",
        "ntk_core/hessians/_norm.py",
        "ntk_core/hessians/_path.py",
        "ntk_core/hessians/_vector_output.py",
        "ntk_core/kernels/_between.py",
        "ntk_core/kernels/_infinite_of_function.py",
        "ntk_core/linearity/_two_checkpoints.py",
        "ntk_core/linearity/_width_sweep.py",
        "ntk_core/networks/architectures/_assembly.py",
        "ntk_core/networks/architectures/_derived.py",
        "ntk_core/networks/architectures/_layered.py",
        "ntk_core/networks/architectures/_transformer.py",
        "ntk_core/traced/_program.py",
    )
)
EXAMPLES = [
    pytest.param(path, marks=pytest.mark.slow if path in LONG else [])
    for path in sorted(WITH_EXAMPLES - {NEEDS_TORCH})
]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def run_in(folder: Path, code: str) -> str:
    """Run a program that leaves no files outside the folder, and return its output."""
    places = {
        "PYTHONPATH": str(ROOT),
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    environment = {**os.environ, **QUICK_ENVIRONMENT, **places}
    environment.pop("LINEARITY_LAB_STORE", None)  # as for newcomers, in the data directory
    command = [sys.executable, "-W", "error::DeprecationWarning", "-c", code]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


README = ROOT / "README.md"
# make docs runs those of the library, the wheel check also those that need settings of their own.
TOGETHER = [
    path
    for path in documents()
    if program(path)
    and path.parent.name != "api"
    and path != README
    and named(path) not in SETTINGS
]


def test_long_examples_exist():
    assert WITH_EXAMPLES >= LONG


@pytest.mark.long_after(93)
@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_examples_in_docstrings_give_what_they_show(path: Path) -> None:
    module = importlib.import_module(named(path).removesuffix(".py").replace("/", "."))
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


def test_code_of_the_readme_runs(tmp_path: Path) -> None:
    """A newcomer's first commands are run every time."""
    run_in(tmp_path, program(README))


ONE_AFTER_ANOTHER = """
import os, runpy
for name in {names}:
    print(name)
    os.environ["XDG_DATA_HOME"] = os.path.abspath(name + ".data")
    runpy.run_path(name, run_name="__main__")
"""


@pytest.mark.long
def test_code_of_other_documents_runs(tmp_path: Path) -> None:
    """Each is a separate program in one process; the cluster's starts others that read it."""
    assert len(TOGETHER) >= 8
    names = [f"{'-'.join(path.relative_to(ROOT).with_suffix('').parts)}.py" for path in TOGETHER]
    for name, path in zip(names, TOGETHER, strict=True):
        (tmp_path / name).write_text(program(path), encoding="utf-8")
    together = ONE_AFTER_ANOTHER.format(names=names)
    shown = run_in(tmp_path, together)
    assert [line for line in shown.splitlines() if line in names] == names


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("Shaped[Array, 'n1 ...'] | Shaped[ndarray, 'n1 ...'] | None", "array (n1, …) | None"),
        (
            "_Buffer | _SupportsArray[dtype[Any]] | _NestedSequence[complex | str] | complex",
            "array-like",
        ),
        (
            "Literal['auto'] | Annotated[float, FieldInfo(metadata=[Gt(gt=0)])]",
            "Literal['auto'] | float",
        ),
    ],
)
def test_types_of_the_reference_are_readable(annotation: str, expected: str) -> None:
    assert readable(annotation) == expected
