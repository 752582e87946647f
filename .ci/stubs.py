"""Write ``linearity_lab/experiments/__init__.pyi`` from the experiments and their presets:
``make stubs``.

The package imports its names on first use, so a type checker and the lazy import need a list of
them. It is derived from ``EXPERIMENTS``, from each experiment's classes, and from the names in
each ``presets.toml``.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(ROOT))

from linearity_lab.runs import EXPERIMENTS, packages_outside  # noqa: E402

PACKAGE = "linearity_lab.experiments"
STUB = ROOT / "linearity_lab/experiments/__init__.pyi"
SHARED = ROOT / "linearity_lab/experiments/_specs.py"
HEAD = '''\
"""Public names. Written by ``make stubs``: do not edit."""

import typing

import linearity_lab.runs as runs
'''
# Type checkers read the overloads below; the lazy import reads these lines.
FUNCTIONS = """
if not typing.TYPE_CHECKING:
    from ._compute import compute as compute
    from ._compute import preset as preset
"""
CONSTANTS = """
EXPERIMENTS: tuple[str, ...]
KEPT: tuple[str, ...]
__all__: list[str]

_Result = typing.TypeVar("_Result", bound=ResultValue)
_Settings = typing.Mapping[str, object]
"""
COMPUTE = """
@typing.overload
def compute(
    spec: {asked}, *, points: runs.PointStore | None = None, **settings: object
) -> {given}: ...
"""
PRESET = """
@typing.overload
def preset(name: {name}) -> Preset[{given}]: ...
"""


def shared_names() -> Iterator[str]:
    """Yield the names that ``_specs.py`` imports: settings and functions of all experiments."""
    for statement in ast.parse(SHARED.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            yield from (alias.name for alias in statement.names)


def stub() -> str:
    """Return the text of the stub, formatted."""
    imports = [f"from ._specs import {name} as {name}" for name in sorted(shared_names())]
    presets = []
    computes = []
    for name, experiment in EXPERIMENTS.items():
        if name in packages_outside():
            continue
        classes: list[type] = [experiment.spec, experiment.result, *experiment.parts]
        for each in classes:
            module = each.__module__.removeprefix(PACKAGE)
            imports.append(f"from {module} import {each.__name__} as {each.__name__}")
        names = ", ".join(f'"{preset.name}"' for preset in experiment.presets)
        if names:
            literal = f"typing.Literal[{names}]"
            presets.append(PRESET.format(name=literal, given=experiment.spec.__name__))
            computes.append(COMPUTE.format(asked=literal, given=experiment.result.__name__))
    # Specs and presets name their result themselves; other names and mappings give the base class.
    presets.append(PRESET.format(name="str", given="ExperimentSpec"))
    typed = "runs.SpecOf[_Result] | Preset[runs.SpecOf[_Result]]"
    computes.append(COMPUTE.format(asked=typed, given="_Result"))
    others = "ExperimentSpec | Preset[ExperimentSpec] | _Settings | str"
    computes.append(COMPUTE.format(asked=others, given="ResultValue"))
    text = "\n".join([HEAD, *imports, FUNCTIONS, CONSTANTS, *presets, *computes])
    for command in (["check", "--fix", "--select", "I"], ["format"]):
        formatted = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "-q", "--stdin-filename", str(STUB), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        text = formatted.stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
