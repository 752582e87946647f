"""Experiments of other distributions: refused ones are named, and the lab's own keep working."""

from __future__ import annotations

import pytest

from linearity_lab.experiments import KEPT
from linearity_lab.installation import OUTSIDE
from linearity_lab.runs import EXPERIMENTS, KINDS, packages_outside

LAZY = "from linearity_lab.experiments.lazy.point import EXPERIMENT"


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("broken", "import no_such_module_of_ours", "No module named 'no_such_module_of_ours'"),
        ("empty", "", "no attribute 'EXPERIMENT'"),
        ("lazy", LAZY, "a name that no other experiment has"),
        ("own_model", LAZY, "a name that no other experiment has"),
        ("other", LAZY, "experiment and kind: lazy"),
    ],
)
def test_refused_experiments_are_left_out_by_name(tmp_path, monkeypatch, name, code, reason):
    before, package = dict(EXPERIMENTS), f"lab_{name}_outside"
    files = {
        f"{package}-1.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n",
        f"{package}-1.dist-info/entry_points.txt": f"[{OUTSIDE}]\n{name} = {package}\n",
        f"{package}/__init__.py": "",
        f"{package}/point.py": code,
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        packages_outside.cache_clear()
        with pytest.warns(UserWarning, match=f"{name} of {package} is left out: .*{reason}"):
            assert packages_outside() == {}
    packages_outside.cache_clear()
    assert dict(EXPERIMENTS) == before
    assert len(KINDS) == len(before) + len(KEPT)
