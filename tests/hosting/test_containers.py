"""What is said about containers and settings, held against the files themselves."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose

from linearity_lab.jobs.profile import OVERRIDES, PROFILES

ROOT = Path(__file__).resolve().parents[2]
HOSTING = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
VARIABLE = re.compile(r"\bLINEARITY_LAB_[A-Z_]+\b")


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def test_the_dashboard_runs_with_a_read_only_root_no_rights_and_one_data_volume(compose):
    dashboard = compose["services"]["dashboard"]
    assert dashboard["read_only"] is True
    assert dashboard["volumes"] == ["data:/data"]
    assert dashboard["tmpfs"] == ["/tmp"]
    assert dashboard["cap_drop"] == ["ALL"]
    assert dashboard["security_opt"] == ["no-new-privileges:true"]
    assert set(compose["volumes"]) == {"data", "database"}


def test_memory_and_processes_of_every_container_are_limited(compose):
    for service in compose["services"].values():
        assert re.search(r"\d+g\b", service["mem_limit"])
        assert 100 <= service["pids_limit"] <= 1000


def test_every_image_is_named_by_its_digest(compose):
    (base,) = re.findall(r"^ARG BASE=(.*)$", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${BASE}"}
    built = compose["services"]["dashboard"]["build"]["args"]["BASE"]
    fetched = [each["image"] for each in compose["services"].values() if "build" not in each]
    assert built == f"${{BASE:-{base}}}"
    for image in (base, fetched[0]):
        assert re.search(r"@sha256:[0-9a-f]{64}\}?$", image)
    assert len(fetched) == 1
    for tag in (base.partition("@")[0], "postgres:17-alpine"):  # a compose file takes no tag beside a digest
        assert f"docker buildx imagetools inspect {tag}" in HOSTING


@pytest.mark.parametrize("lock", sorted(path.stem for path in (ROOT / "locks").glob("*.txt")))
def test_the_bill_of_materials_names_every_locked_package_with_its_hashes(lock):
    bill = json.loads(subprocess.check_output([sys.executable, ROOT / ".ci" / "sbom.py", lock], text=True))
    text = (ROOT / "locks" / f"{lock}.txt").read_text(encoding="utf-8")
    assert (bill["bomFormat"], len(bill["components"])) == (
        "CycloneDX",
        len(re.findall(r"^[\w.-]+(?:\[.*\])?==", text, re.M)),
    )
    assert sum(len(each["hashes"]) for each in bill["components"]) == text.count("--hash=sha256:")
    assert all(each["hashes"] for each in bill["components"])
    assert any(each["purl"].startswith("pkg:pypi/streamlit@1.") for each in bill["components"])


def test_the_compose_file_is_one_by_the_specification():
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    filled = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    assert "$" not in re.sub(r"^ *#.*$", "", filled, flags=re.MULTILINE)
    assert len(PyCompose.from_yaml(filled)) == 2
    with pytest.raises(ValueError, match="cap_dropp"):
        PyCompose.from_yaml(filled.replace("cap_drop", "cap_dropp"))


def test_postgres_is_an_option_that_the_dashboard_waits_for_only_where_it_is_chosen(compose):
    postgres = compose["services"]["postgres"]
    assert postgres["profiles"] == ["postgres"]
    assert "profiles" not in compose["services"]["dashboard"]
    waits = compose["services"]["dashboard"]["depends_on"]["postgres"]
    assert waits == {"condition": "service_healthy", "required": False}
    assert postgres["healthcheck"]["test"][1] == "pg_isready"


def test_only_this_machine_can_reach_the_container_unless_somebody_says_so(compose):
    assert compose["services"]["dashboard"]["ports"] == ["${LINEARITY_LAB_BIND:-127.0.0.1}:8501:8501"]


def test_the_image_is_built_from_a_lock_and_runs_as_nobody_in_particular():
    stages = DOCKERFILE.split("\nFROM ")
    assert len(stages) == 3
    assert "--require-hashes" in stages[1]
    assert re.search(r"COPY locks/\$\{ACCELERATOR\}\.txt", stages[1])
    last_user = re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)[-1]
    assert last_user == "1000"
    assert "HEALTHCHECK" in stages[2]
    assert "VOLUME /data" in stages[2]


def test_everything_that_the_image_copies_is_let_in():
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in == {"app.py", "pages", "linearity_lab", "ntk_core", "gallery", "locks", ".streamlit"}
    assert all((ROOT / name).exists() for name in let_in)


def test_every_variable_that_the_code_reads_is_documented():
    files = [path for folder in ("linearity_lab", "ntk_core") for path in (ROOT / folder).rglob("*.py")]
    files += [ROOT / "compose.yaml", ROOT / "Dockerfile"]
    read = {name for path in files for name in VARIABLE.findall(path.read_text(encoding="utf-8"))}
    documents = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    assert len(read) > 10
    assert read - set(VARIABLE.findall(documents)) == set()


@pytest.mark.parametrize("limit", ["max_width", "max_seeds", "max_waiting", "max_per_viewer", "max_per_address"])
def test_the_table_of_limits_holds_the_numbers_of_the_profiles(limit):
    (variable,) = [name for name, (of, _) in OVERRIDES.items() if of == limit]
    (row,) = [line for line in HOSTING.splitlines() if variable in line and line.startswith("|")]
    assert re.findall(r"\| ([\d,]+) (?=\|)", row) == [f"{getattr(each, limit):,}" for each in PROFILES.values()]
