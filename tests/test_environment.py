"""Environment variables: one class names them all; a wrong one is refused in one sentence."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from linearity_lab.environment import environment_settings
from linearity_lab.files import data_directory
from linearity_lab.variable_names import PREFIX
from linearity_lab.variables import OF_COMPOSE, Settings
from ntk_core.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def test_values_are_read_each_time_stripped_and_unset_if_empty(monkeypatch):
    assert environment_settings() == Settings.model_construct()
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", " classroom ")
    monkeypatch.setenv("LINEARITY_LAB_WORKERS", "")
    assert (environment_settings().profile, environment_settings().workers) == ("classroom", None)


@pytest.mark.parametrize(
    ("name", "given", "allowed"),
    [
        ("STORE_BYTES", "2 GB", "an integer from 1,000,000 to 1,000,000,000,000,000"),
        ("STORE_BYTES", "٥" * 8, "an integer from 1,000,000 to"),
        ("WORKERS", "²", "an integer from 1 to 64"),
        ("MEMORY_GIB", "nan", "a number above 0 (GiB)"),
        ("WORKER_WAIT_S", "inf", "a number from 0 to 86,400"),
        ("PROFILE", "public", "one of local, classroom, hosted"),
        ("DEVICES", "0", "an integer from 1 to 9,999"),
        ("MAX_WIDTH", "1e3", "an integer from 1 to"),
        ("MAX_SEEDS", "0", "an integer from 1 to"),
        ("MAX_SECONDS", "1.5", "an integer from 1 to"),
        ("MAX_RESULT_MIB", "-1", "an integer from 1 to"),
        ("MAX_UPLOAD_MIB", "8 MB", "an integer from 1 to"),
        ("MAX_WAITING", "many", "an integer from 1 to"),
        ("MAX_JOB_SECONDS", "5m", "an integer from 1 to"),
        ("HOSTS", "http://lab.example.org", "names such as lab.example.org"),
        ("FRAME_ANCESTORS", "huggingface.co", "origins such as https://huggingface.co"),
        ("SCHEDULER", "192.168.0.10:8786", "the address of a dask scheduler"),
        ("SCHEDULER", "tcp://host:99999", "the address of a dask scheduler"),
        ("DATA", "/nonexistent/sets", "the path of an existing folder"),
        ("CACHE", "relative/folder", "the absolute path of a directory"),
    ],
)
def test_wrong_value_is_refused_in_one_sentence(monkeypatch, name, given, allowed):
    monkeypatch.setenv(PREFIX + name, given)
    with pytest.raises(InvalidInput) as refused:
        environment_settings()
    assert str(refused.value).startswith(f"{PREFIX}{name}: {given} cannot be used; use {allowed}")
    assert "\n" not in str(refused.value)


def test_short_key_is_refused_without_showing_it(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_COOKIE_KEY", "hunter2")
    with pytest.raises(InvalidInput, match=r"COOKIE_KEY.*at least 32") as refused:
        environment_settings()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("misspelled", "meant"),
    [
        ("LINEARITY_LAB_WORKER", "LINEARITY_LAB_WORKERS"),
        ("LINEARITY_LAB_PROFIL", "LINEARITY_LAB_PROFILE"),
        ("LINEARITY_LAB_MEMORY_GB", "LINEARITY_LAB_MEMORY_GIB"),
        ("LINEARITY_LAB_FRAME_ANCESTOR", "LINEARITY_LAB_FRAME_ANCESTORS"),
        ("LINEARITY_LAB_TLS_PROXIES", "LINEARITY_LAB_TLS_PROXY"),
        ("LINEARITY_LAB_HOST", "LINEARITY_LAB_HOSTS"),
        ("LINEARITY_LAB_STORES_BYTES", "LINEARITY_LAB_STORE_BYTES"),
    ],
)
def test_misspelled_name_is_refused_with_the_nearest(monkeypatch, misspelled, meant):
    monkeypatch.setenv(misspelled, "1")
    with pytest.raises(InvalidInput) as refused:
        environment_settings()
    assert str(refused.value).startswith(f"{misspelled}: no such setting; did you mean {meant}")


def test_unknown_number_of_a_port_is_refused(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PORT", "8501")
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_PORT: no such setting"):
        environment_settings()


def test_service_variables_of_kubernetes_are_ignored(monkeypatch):
    """Services linearity-lab and linearity-lab-store in the pod's namespace."""
    for service in ("", "STORE_"):
        name = PREFIX + service
        monkeypatch.setenv(f"{name}SERVICE_HOST", "10.0.0.11")
        monkeypatch.setenv(f"{name}SERVICE_PORT", "8501")
        monkeypatch.setenv(f"{name}SERVICE_PORT_HTTP", "8501")
        monkeypatch.setenv(f"{name}PORT", "tcp://10.0.0.11:8501")
        monkeypatch.setenv(f"{name}PORT_8501_TCP", "tcp://10.0.0.11:8501")
        monkeypatch.setenv(f"{name}PORT_8501_TCP_PROTO", "tcp")
        monkeypatch.setenv(f"{name}PORT_8501_TCP_PORT", "8501")
        monkeypatch.setenv(f"{name}PORT_8501_TCP_ADDR", "10.0.0.11")
    assert environment_settings() == Settings.model_construct()


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
    assert named - OF_COMPOSE <= {name.upper() for name in Settings.model_fields}


def test_every_setting_is_documented():
    docs = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    names = {name.upper() for name in Settings.model_fields} | OF_COMPOSE
    assert {name for name in names if PREFIX + name not in docs} == set()


def test_relative_home_is_refused(monkeypatch):
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: Path("~/share"))
    with pytest.raises(RuntimeError, match="not an absolute path"):
        data_directory()


@pytest.mark.slow
def test_memory_is_asked_for_while_jax_is_being_imported():
    """As in a server with two simultaneous first pages."""
    code = """
import sys, threading
from linearity_lab.memory import accelerator_bytes
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
