"""Files for maintainers: workflows, citation, changelog, first screen of the README."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from ntk_core import __version__
from ntk_core.cli._main import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in ROOT.glob(".github/workflows/*.yaml")}
ACTION = re.compile(r"(actions)/[\w-]+@v\d+\.\d+\.\d+")


def steps(workflow: dict[Any, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def test_workflows_run_existing_commands_with_few_rights():
    assert set(WORKFLOWS) == {"check", "wheel", "image", "site"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert dict(re.findall(r"^([a-z-]+): TIER := (.+)$", makefile, flags=re.MULTILINE)) == {
        "test": "not slow and not gpu",
        "slow": "slow and not gpu",
        "check-tests": "not gpu",
    }
    assert re.search(r"^check: static\n(?:\t.*\n)*\t\$\(MAKE\) check-tests$", makefile, flags=re.MULTILINE)
    assert "make check " in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    targets = {name for line in re.findall(r"^([a-z ]+):(?!=)", makefile, flags=re.MULTILINE) for name in line.split()}
    for name, workflow in WORKFLOWS.items():
        assert workflow["name"] == name
        assert workflow["permissions"] == {"contents": "read"}
        assert all(0 < job["timeout-minutes"] <= 90 for job in workflow["jobs"].values())
        for step in steps(workflow):
            if "uses" in step:
                assert ACTION.fullmatch(step["uses"]), step
            run = step.get("run", "")
            assert set(re.findall(r"\bmake ([a-z-]+)", run)) <= targets, run
            assert set(re.findall(r"(?:-m ntk_core|linearity-lab) ([a-z]+)\b", run)) <= set(COMMANDS), run
            assert all((ROOT / script).exists() for script in re.findall(r"\.ci/\w+", run)), run
    for part in ("ntk_core site --out .docs/site --docs", "docs .docs/site/docs", ".ci/links.py .docs/site"):
        assert part in makefile
    assert "path: .docs/site" in (ROOT / ".github/workflows/site.yaml").read_text(encoding="utf-8")
    called = " ".join(step.get("run", "") for workflow in WORKFLOWS.values() for step in steps(workflow))
    for command in (".ci/run", "make wheel", "docker build", "make docs"):
        assert command in called


def test_citation_and_changelog_have_one_version():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == __version__
    assert {"cff-version", "message", "title", "authors", "license"} <= cited.keys()
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\](?: - (.+))?$", changes, flags=re.MULTILINE)
    assert versions[0] == ("Unreleased", "")
    assert versions[1] == (__version__, cited["date-released"])


def test_project_urls_are_those_of_the_cited_papers():
    """The project has no public address."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    assert list(project["urls"].values()) == [each["url"] for each in cited]
    for label, paper in zip(project["urls"], cited, strict=True):
        assert len(label) <= 32  # limit of package indexes
        assert label.startswith(paper["authors"][0]["family-names"])
        assert label.endswith(str(paper["year"]))


def test_readme_is_one_screen_with_an_animated_picture():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 45
    for theme in ("light", "dark"):
        assert f"docs/images/live_still_{theme}.webp" in readme
        path = ROOT / "docs" / "images" / f"live_{theme}.webp"
        assert f"docs/images/{path.name}" in readme
        assert path.stat().st_size <= 1_500_000
        with Image.open(path) as picture:
            assert getattr(picture, "n_frames", 1) > 50
