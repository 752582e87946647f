"""The check before a release, and hooks before a commit."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from tests.documents import ROOT


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A committed tree with all that a release of 0.9.0 needs."""
    (tmp_path / "ntk_core").mkdir()
    (tmp_path / "ntk_core" / "_version.py").write_text('__version__ = "0.9.0"\n')
    (tmp_path / "CITATION.cff").write_text("version: 0.9.0\n")
    entries = "".join(f"- Entry {number}.\n" for number in range(40))
    (tmp_path / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## [Unreleased]\n\n## [0.9.0] - 2026-12-01\n\n### Added\n\n{entries}\n"
        "## [0.8.0] - 2026-01-01\n\nA paragraph.\n"
    )
    stores = tmp_path / "tests" / "runs" / "stores" / "0.9.0"
    stores.mkdir(parents=True)
    (stores / "runs.json").write_text('{"runs": 1}')
    commit(tmp_path)
    return tmp_path


def commit(tree: Path) -> None:
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "change"]):
        subprocess.run(["git", "-C", str(tree), *command], check=True)


def test_ready_tree_has_no_missing_step(release: ModuleType, ready: Path) -> None:
    assert list(release.problems(ready)) == []


def test_each_missing_step_of_a_release_is_named(release: ModuleType, ready: Path) -> None:
    (ready / "CITATION.cff").write_text("version: 0.8.0\n")
    shutil.rmtree(ready / "tests")
    changes = ready / "CHANGELOG.md"
    text = changes.read_text().replace("- Entry 1.", "- Entry 1.\n- One more.\n  wrapped")
    changes.write_text(text)
    subprocess.run(["git", "-C", str(ready), "tag", "v0.9.0"], check=True)
    found = list(release.problems(ready))
    assert [line.partition(":")[0] for line in found] == [
        "CITATION.cff",
        "CHANGELOG.md",
        "CHANGELOG.md",
        "tests/runs/stores/0.9.0",
        "git",
        "git",
    ]
    assert "41 entries" in found[1]
    assert "wrapped" in found[2]


def test_a_version_without_notes_is_not_ready(release: ModuleType, ready: Path) -> None:
    changes = ready / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace("[0.9.0]", "[0.9.1]"))
    commit(ready)
    assert list(release.problems(ready)) == ["CHANGELOG.md: no section [0.9.0]"]


def test_unreleased_notes_are_short_enough_for_a_release(release: ModuleType) -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert list(release.problems_of_entries(release.section(changes, "Unreleased"))) == []


def test_hooks_run_what_make_static_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^static:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    checks = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]] == checks
