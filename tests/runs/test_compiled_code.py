"""Cached compiled code changes no number, and disk errors fail no run."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from linearity_lab.runs import compiled_code
from linearity_lab.runs.compiled_code import VARIABLE, compiled_code_directory, keep_compiled_code
from linearity_lab.variables import CACHE_OFF

ROOT = Path(__file__).resolve().parents[2]
JAX_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
# Prints the kernel of a network, to the last bit, and the number of programs from disk.
RUN = """
import json, sys
from linearity_lab.runs.compiled_code import keep_compiled_code
keep_compiled_code()
if sys.argv[1:]:  # as on a full disk: files end after some bytes, and the writer gets an error
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
import jax
import ntk_core
found = []
jax.monitoring.register_event_listener(lambda name, **_: found.append(name))
net = ntk_core.FullyConnected(width=8, depth=2, num_outputs=1, activation="tanh", use_bias=False)
x = jax.random.normal(jax.random.key(1), (4, 3))
kernel = ntk_core.empirical_ntk(net, net.init(jax.random.key(0), (3,)), x)
print(json.dumps([kernel.tolist(), found.count("/jax/compilation_cache/cache_hits")]))
"""


def started(place: Path | str, *arguments: object) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", RUN, *map(str, arguments)],
        cwd=ROOT,
        env={**environment, VARIABLE: str(place), "JAX_DISABLE_MOST_OPTIMIZATIONS": "true"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[list, int]:
    """Return the kernel of a process and its number of programs from disk; stderr must be empty."""
    printed, complaints = process.communicate(timeout=120)
    assert (process.returncode, complaints) == (0, "")
    kernel, hits = json.loads(printed)
    return kernel, hits


def entries(place: Path) -> list[Path]:
    return sorted(place.glob("linearity-lab-*/*-cache"))


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_cached_code_and_disk_errors_change_no_number(tmp_path):
    processes = [started(CACHE_OFF), started(tmp_path), started(tmp_path)]
    (plain, hits), *others = map(ended, processes)
    assert hits == 0
    assert all(kernel == plain for kernel, _ in others)
    files = {path: path.stat().st_mtime_ns for path in entries(tmp_path)}
    kernel, hits = ended(started(tmp_path))
    assert kernel == plain
    assert hits >= len(files) > 5
    assert {path: path.stat().st_mtime_ns for path in entries(tmp_path)} == files

    damaged, missing, *_ = files
    damaged.write_bytes(os.urandom(100))
    missing.unlink()
    assert ended(started(tmp_path, 1000))[0] == plain
    assert not missing.exists() or missing.stat().st_size <= 1000


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A separate directory in a process without JAX."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setenv(JAX_VARIABLE, "")
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "")
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    return tmp_path / "kept"


def test_the_directory_is_the_owners_alone(place):
    keep_compiled_code()
    directory = Path(os.environ[JAX_VARIABLE])
    assert directory.parent == place
    if os.name == "posix":
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_importing_the_core_keeps_settings_and_starts_no_cluster():
    modules = "ntk_core, linearity_lab.cli, linearity_lab.runs, linearity_lab.dashboard.jobs.worker"
    script = (
        f"import os, sys, {modules}; print(os.environ.get('{JAX_VARIABLE}'), 'distributed' in "
        "sys.modules)"
    )
    environment = {name: value for name, value in os.environ.items() if name != JAX_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"None False\n"


@pytest.mark.parametrize(("variable", "given"), [(JAX_VARIABLE, "/somewhere"), (VARIABLE, " Off ")])
def test_another_choice_is_left_alone(place, monkeypatch, variable, given):
    monkeypatch.setenv(variable, given)
    keep_compiled_code()
    assert os.environ[JAX_VARIABLE] == ("/somewhere" if variable == JAX_VARIABLE else "")
    assert not place.exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "yes",
            "yes cannot be used; use the absolute path of a directory that can be written, or off",
        ),
        ("file", "Not a directory"),
    ],
)
def test_unusable_path_gets_one_sentence(place, monkeypatch, caplog, given, words):
    place.write_text("")
    monkeypatch.setenv(VARIABLE, str(place) if given == "file" else given)
    with caplog.at_level(logging.WARNING):
        keep_compiled_code()
    assert os.environ[JAX_VARIABLE] == ""
    (message,) = caplog.messages
    assert message.startswith("Compiled code is not kept between starts: ")
    assert words in message
    assert "\n" not in message


def test_empty_entry_and_full_directory_are_cleared(place, monkeypatch):
    directory = compiled_code_directory()
    directory.mkdir(parents=True)
    (directory / "a-cache").touch()
    (directory / "b-cache").write_bytes(bytes(900))
    (place / "thesis.tex").write_bytes(bytes(900))
    keep_compiled_code()
    assert [path.name for path in entries(place)] == ["b-cache"]
    monkeypatch.setattr(compiled_code, "MAX_BYTES", 800)
    monkeypatch.setenv(JAX_VARIABLE, "")
    keep_compiled_code()
    assert directory.is_dir()
    assert entries(place) == []
    assert (place / "thesis.tex").exists()


def test_another_processor_has_its_own_directory(place, tmp_path, monkeypatch):
    ours = compiled_code_directory()
    (tmp_path / "cpuinfo").write_text("model name : another\nflags : fpu sse\n")
    monkeypatch.setattr(compiled_code, "_PROCESSOR", tmp_path / "cpuinfo")
    assert compiled_code_directory() != ours
