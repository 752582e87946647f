"""Environment variables: one class names them all; a wrong one is refused in one sentence."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ntk_core.environment import PREFIX, data_directory, settings
from ntk_core.errors import InvalidInput
from ntk_core.variables import Settings

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE_PYTHON = {
    "BIND",
    "CONTAINER_MEMORY",
    "NGINX_MEMORY",
    "SESSIONS_PER_CLIENT",
    "TLS_PROXY",
}  # compose.yaml


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def test_values_are_read_each_time_stripped_and_unset_if_empty(monkeypatch):
    assert settings() == Settings.model_construct()
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", " classroom ")
    monkeypatch.setenv("LINEARITY_LAB_WORKERS", "")
    assert (settings().profile, settings().workers) == ("classroom", None)


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("STORE_BYTES", "2 GB", "an integer from 1,000,000 to 1,000,000,000,000,000"),
        ("STORE_BYTES", "٥" * 8, "an integer from 1,000,000 to"),
        ("WORKERS", "²", "an integer from 1 to 64"),
        ("MEMORY_GIB", "nan", "a number above 0 (GiB)"),
        ("WORKER_WAIT_S", "inf", "a number from 0 to 86,400"),
        ("PROFILE", "public", "one of local, classroom, hosted"),
    ],
)
def test_wrong_value_is_refused_in_one_sentence(monkeypatch, name, given, allowed):
    monkeypatch.setenv(PREFIX + name, given)
    with pytest.raises(InvalidInput) as refused:
        settings()
    assert str(refused.value).startswith(f"{PREFIX}{name}: {given} cannot be used; use {allowed}")
    assert "\n" not in str(refused.value)


def test_every_variable_in_the_code_is_a_setting():
    files = [
        path
        for folder in ("ntk_core", "linearity_lab", "pages")
        for path in (ROOT / folder).rglob("*.py")
    ]
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in (*files, ROOT / "compose.yaml", ROOT / "Dockerfile")
    )
    named = set(re.findall(r"LINEARITY_LAB_([A-Z_]*[A-Z])", text))
    assert named - OUTSIDE_PYTHON <= {name.upper() for name in Settings.model_fields}


def test_every_setting_is_documented():
    docs = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    names = {name.upper() for name in Settings.model_fields} | OUTSIDE_PYTHON
    assert {name for name in names if PREFIX + name not in docs} == set()


def test_relative_home_is_refused(monkeypatch):
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: Path("~/share"))
    with pytest.raises(RuntimeError, match="not an absolute path"):
        data_directory()


def test_memory_is_asked_for_while_jax_is_being_imported():
    """As in a server with two simultaneous first pages."""
    code = """
import sys, threading
from ntk_core.environment import accelerator_bytes
importing = threading.Thread(target=__import__, args=("jax",))
importing.start()
while "jax" not in sys.modules:
    pass
print(accelerator_bytes())
"""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert found.stdout.strip() == "[]"
