"""Dependencies: bounds, locks, licenses."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "locks").glob("*.txt"))
PYTHON_3_11 = {"python_version": "3.11", "python_full_version": "3.11.9", "sys_platform": "linux"}


def locked(path: Path) -> dict[str, tuple[Version, str]]:
    """Name → (version on the image's Python, requirement with hashes)."""
    entries = re.split(r"\n(?=[a-z0-9])", path.read_text(encoding="utf-8"))
    found: dict[str, tuple[Version, str]] = {}
    for entry in entries:
        requirement = Requirement(entry.partition("\n")[0].rstrip(" \\"))
        if requirement.marker is None or requirement.marker.evaluate(PYTHON_3_11):
            (pin,) = requirement.specifier
            found[canonicalize_name(requirement.name)] = (Version(pin.version), entry)
    return found


def script(name: str) -> ModuleType:
    """Load a script of .ci/, which is not a package."""
    specification = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def requirements(name: str) -> list[Requirement]:
    return [Requirement(line) for line in script("licenses").stated(name)]


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_a_lock_satisfies_every_requirement_with_hashes(path):
    versions = locked(path)
    assert "://" not in path.read_text(encoding="utf-8")
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for _, entry in versions.values())
    for requirement in [
        *requirements("requirements.txt"),
        *requirements("requirements-postgres.txt"),
    ]:
        version, _ = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), (
            f"{requirement}: {path.name} has {version}; make locks"
        )


def test_the_locks_for_a_gpu_have_what_jax_needs_there():
    for version in ("12", "13"):
        assert f"jax-cuda{version}-plugin" in locked(ROOT / "locks" / f"cuda{version}.txt")
    assert not any("cuda" in name for name in locked(ROOT / "locks" / "cpu.txt"))


def test_every_package_has_an_allowed_license():
    licenses = script("licenses")
    packages = licenses.installed(licenses.stated("requirements.txt"))
    assert {"jax", "streamlit", "websockets"} <= packages.keys()
    refused = {name: licenses.license_of(package) for name, package in packages.items()}
    assert {name: text for name, text in refused.items() if not licenses.is_allowed(text)} == {}


def test_a_license_is_allowed_when_all_of_one_choice_are():
    is_allowed = script("licenses").is_allowed
    assert all(
        map(
            is_allowed,
            ("MIT", "BSD-3-Clause AND MIT", "GPL-3.0-only OR Apache-2.0", "(MIT OR GPL-2.0-only)"),
        )
    )
    assert not any(map(is_allowed, ("GPL-3.0-only", "MIT AND AGPL-3.0-only", "Proprietary", "")))


KNOWN: dict[str, Any] = {"version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
CLEAN: dict[str, Any] = {"version": "1.0", "vulns": []}
UNASKED: dict[str, Any] = {"skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("given", "code", "shown"),
    [
        ((CLEAN, CLEAN), 0, "no known vulnerability in 2 packages"),
        ((CLEAN, KNOWN), 1, "b 1.0: PYSEC-1, fixed in 1.1"),
        ((KNOWN, UNASKED), 1, "PYSEC-1"),
        ((CLEAN, UNASKED), 3, "NOT AUDITED: no answer about 1 of 2 packages"),
        ((), 3, "NOT AUDITED"),
    ],
)
def test_an_audit_without_an_answer_is_never_a_pass(capsys, given, code, shown):
    packages = [{"name": name, **about} for name, about in zip("ab", given, strict=False)]
    assert script("audit").verdict("cpu", {"dependencies": packages} if packages else None) == code
    assert shown in capsys.readouterr().out
