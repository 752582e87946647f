"""One entry adds an activation, output, …: in a copy of the packages, with no other change.

docs/architecture.md names the places; each test edits exactly these and uses the new name.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiler_flags import QUICK_ENVIRONMENT

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
CHOICES = "ntk_core/networks/choices.py"
FUNCTIONS = "linearity_lab/dashboard/live/functions.js"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of both packages."""
    for name in ("ntk_core", "linearity_lab"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


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
    check = f"import ntk_core; assert ntk_core.__file__.startswith({str(copy)!r})\n"
    done = subprocess.run(
        [sys.executable, "-c", check + program],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]


OUTPUT = """
import math
import re
import linearity_lab
from linearity_lab.charts.style import network_style, registry
from linearity_lab.dashboard.live import source
from linearity_lab.dashboard.live.settings import CHOICES, LiveSettings
from linearity_lab.experiments import KernelChangeSpec, preset
from linearity_lab.settings.grammar import settings

fields = {each.name: each for each in settings(KernelChangeSpec)}
assert fields["outputs"].label("gudermann") == "Gudermannian output"
small = {"widths": (4,), "num_seeds": 1, "outputs": ("gudermann",), "training": {"max_steps": 2}}
result = linearity_lab.compute("liu-fig1-left", dataset={"num_samples": 6}, **small)
assert result.points[0].runs[0].output == "gudermann"
linearity_lab.compute("liu-fig1-left", architecture={"activation": "gudermann"}, **small)

assert "gudermann" in CHOICES["activation"] and "gudermann" in CHOICES["output"]
assert source.words()["choices"]["output"]["gudermann"] == "Gudermannian"
targets = [y for _, y in LiveSettings(output="gudermann", target="zigzag").learned()]
assert max(map(abs, targets)) < math.pi / 2
assert '"gudermann"' in source.module() and "gudermann(z, value, slope)" in source.model_module()
looks = [look for meaning, look in registry().items() if meaning.endswith(" gudermann")]
assert len(set(looks)) == len(looks) > 16
assert network_style("resnet", "gudermann").title == "ResNet, Gudermannian output"
"""


def test_one_entry_and_one_function_add_an_output_with_live(copy: Path) -> None:
    entry = """
    Function(
        "gudermann",
        "Gudermannian",
        "2 arctan(tanh(z / 2))",
        lambda z: 2 * _jax().numpy.arctan(_jax().numpy.tanh(z / 2)),
        values=(-math.pi / 2, math.pi / 2),
        is_output=True,
        live=("activation", "output"),
    ),
)
SAME = Term("""
    edit(copy, CHOICES, "\n)\nSAME = Term(", entry)
    function = """
  gudermann(z, value, slope) {
    for (let i = 0; i < z.length; i++) {
      value[i] = 2 * Math.atan(Math.tanh(z[i] / 2));
      slope[i] = 1 / Math.cosh(z[i]);
    }
  },
  linear(z, value, slope) {"""
    edit(copy, FUNCTIONS, "\n  linear(z, value, slope) {", function)
    run(copy, OUTPUT)


def test_arctan_becomes_an_output_of_live_by_two_fields(copy: Path) -> None:
    before = "        values=(-math.pi / 2, math.pi / 2),\n"
    edit(copy, CHOICES, before, f'{before}        is_output=True,\n        live=("output",),\n')
    program = """
from linearity_lab.dashboard.live.settings import CHOICES, LiveSettings
from ntk_core.networks.choices import OUTPUTS
assert list(OUTPUTS)[-1] == CHOICES["output"][-1] == "arctan"
assert LiveSettings(output="arctan").kernel_query()["outputs"] == "arctan"
"""
    run(copy, program)
