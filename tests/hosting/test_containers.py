"""Documentation of containers and settings against the files."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose

from hosting.start_nginx import CONFIGURATION, DEFAULTS
from linearity_lab.dashboard.jobs.profile import OVERRIDES, PROFILES

ROOT = Path(__file__).resolve().parents[2]
HOSTING = (ROOT / "docs" / "hosting.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> dict:
    """The parsed file, which the specification's own parser accepts."""
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert len(PyCompose.from_yaml(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text))) == 3
    return yaml.safe_load(text)


def test_containers_have_few_rights_and_limits(compose):
    rights = {
        "read_only": True,
        "tmpfs": ["/tmp"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    }
    for name, volumes in (("dashboard", ["data:/data"]), ("nginx", [])):
        assert compose["services"][name].items() >= rights.items()
        assert compose["services"][name].get("volumes", []) == volumes
    for service in compose["services"].values():
        assert re.search(r"\d+g\b", service["mem_limit"])
        assert 100 <= service["pids_limit"] <= 1000
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}


def test_every_image_is_named_by_its_digest(compose):
    (base,) = re.findall(r"^ARG BASE=(.*)$", DOCKERFILE, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${BASE}"}
    built = {
        each["build"]["args"]["BASE"] for each in compose["services"].values() if "build" in each
    }
    fetched = [each["image"] for each in compose["services"].values() if "build" not in each]
    assert built == {f"${{BASE:-{base}}}"}
    for image in (base, fetched[0]):
        assert re.search(r"@sha256:[0-9a-f]{64}\}?$", image)
    assert len(fetched) == 1
    # Compose files allow no tag with a digest.
    for tag in (
        base.partition("@")[0],
        "postgres:17-alpine",
    ):
        assert f"docker buildx imagetools inspect {tag}" in HOSTING


def test_bill_of_materials_lists_locked_packages_and_hashes():
    bill = json.loads(
        subprocess.check_output([sys.executable, ROOT / ".ci" / "sbom.py", "cpu"], text=True)
    )
    text = (ROOT / "locks" / "cpu.txt").read_text(encoding="utf-8")
    assert bill["bomFormat"] == "CycloneDX"
    assert len(bill["components"]) == len(re.findall(r"^[\w.-]+(?:\[.*\])?==", text, re.M))
    assert sum(len(each["hashes"]) for each in bill["components"]) == text.count("--hash=sha256:")
    assert all(each["hashes"] for each in bill["components"])
    assert any(each["purl"].startswith("pkg:pypi/streamlit@1.") for each in bill["components"])


def test_nginx_alone_is_published_on_this_machine_by_default(compose):
    ports = {
        name: service["ports"]
        for name, service in compose["services"].items()
        if "ports" in service
    }
    assert ports == {"nginx": ["${LINEARITY_LAB_BIND:-127.0.0.1}:8501:8080"]}
    # The app trusts X-Forwarded-For of any peer, and nginx is the only one.
    assert compose["services"]["dashboard"]["environment"]["FORWARDED_ALLOW_IPS"] == "*"
    assert set(compose["services"]["nginx"]["environment"]) <= set(DEFAULTS)
    filled = set(re.findall(r"\$\{(\w+)\}", CONFIGURATION.read_text()))
    assert filled == set(DEFAULTS) - {"LAB_TLS_PROXY"} | {"REAL_IP_LINES", "GEO_LINES"}
    assert compose["services"]["nginx"]["environment"]["LAB_TLS_PROXY"] == (
        "${LINEARITY_LAB_TLS_PROXY:-}"
    )


def test_the_image_is_built_from_a_lock_and_runs_without_root():
    build, proxy, app = DOCKERFILE.split("\nFROM ")[1:]
    assert "--require-hashes" in build
    assert re.search(r"COPY locks/\$\{ACCELERATOR\}\.txt", build)
    for stage, user in ((proxy, "65534"), (app, "1000")):
        assert re.findall(r"^USER (.*)$", stage, re.MULTILINE)[-1] == user
        assert "HEALTHCHECK" in stage
    assert "VOLUME /data" in app


def test_the_table_of_limits_holds_the_numbers_of_the_profiles():
    for variable, (limit, _) in OVERRIDES.items():
        if limit in ("max_width", "max_seeds", "max_waiting", "max_job_s"):
            (row,) = [
                line for line in HOSTING.splitlines() if variable in line and line.startswith("|")
            ]
            numbers = [f"{getattr(each, limit):,}" for each in PROFILES.values()]
            assert re.findall(r"\| ([\d,]+) (?=\|)", row) == numbers, limit


def test_memory_limits_stand_in_one_row_of_the_documentation():
    """Messages that the documentation quotes leave the number out."""
    for path in (ROOT / "docs").rglob("*.md"):
        text = path.read_text("utf-8")
        assert re.findall(r"over memory: [\d.]+ GiB allowed", text) == [], path
    row = next(line for line in HOSTING.splitlines() if "LINEARITY_LAB_MEMORY_GIB" in line)
    classroom, hosted = (
        PROFILES[name].max_memory_bytes / 2**30 for name in ("classroom", "hosted")
    )
    assert f"| {classroom:g} GiB | {hosted:g} GiB |" in row


def test_tests_named_beside_attacks_exist():
    rows = [line for line in HOSTING.splitlines() if re.match(r"\| A \d: ", line)]
    assert [row[:5] for row in rows] == [f"| A {number}" for number in range(1, 10)]
    for row in rows:
        file = ""
        for path, name in re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", row):
            file = path or file
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
