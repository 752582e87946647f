"""Experiments of other distributions: refused ones are named, and the lab's own keep working."""

from __future__ import annotations

from pathlib import Path

import pytest

from ntk_core.environment import OUTSIDE
from ntk_core.experiments import KEPT
from ntk_core.runs import EXPERIMENTS, KINDS, packages_outside

NOT_NAMED_SO = """
from ntk_core.experiments.lazy import EXPERIMENT
"""


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install an entry point and its package for one test."""

    def install(name: str, package: str, code: str) -> None:
        metadata = tmp_path / f"{package}-1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (metadata / "entry_points.txt").write_text(f"[{OUTSIDE}]\n{name} = {package}\n")
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(code)
        monkeypatch.syspath_prepend(tmp_path)
        packages_outside.cache_clear()

    yield install
    monkeypatch.undo()
    packages_outside.cache_clear()


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("broken", "import no_such_module_of_ours", "No module named 'no_such_module_of_ours'"),
        ("empty", "", "no attribute 'EXPERIMENT'"),
        ("lazy", NOT_NAMED_SO, "a name that no other experiment has"),
        ("own_model", NOT_NAMED_SO, "a name that no other experiment has"),
        ("other", NOT_NAMED_SO, "experiment and kind: lazy"),
    ],
)
def test_refused_experiments_are_left_out_by_name(distribution, name, code, reason):
    before = dict(EXPERIMENTS)
    distribution(name, f"lab_{name}_outside", code)
    with pytest.warns(UserWarning, match=f"{name} of lab_{name}_outside is left out: .*{reason}"):
        assert packages_outside() == {}
    assert dict(EXPERIMENTS) == before
    assert len(KINDS) == len(before) + len(KEPT)
