"""A wrong variable prevents the start of the server and of commands, with one sentence."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from linearity_lab.cli import main
from linearity_lab.exit_codes import BAD_INPUT
from linearity_lab.runs.store import check_location
from linearity_lab.variables import OF_COMPOSE
from ntk_core.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[2]
# One wrong value for each variable.
WRONG = {
    "STORE": "nosuchdatabase://lab@db/lab",
    "STORE_BYTES": "2 GB",
    "CACHE": "relative",
    "DATA": "/nonexistent/sets",
    "MEMORY_GIB": "lots",
    "DEVICES": "0",
    "SCHEDULER": "somewhere",
    "WORKER_WAIT_S": "-1",
    "PROFILE": "public",
    "WORKERS": "0",
    "COOKIE_KEY": "short",
    "HOSTS": "http://x",
    "FRAME_ANCESTORS": "x",
    "MAX_WIDTH": "0",
    "MAX_SEEDS": "0",
    "MAX_SECONDS": "0",
    "MAX_RESULT_MIB": "0",
    "MAX_UPLOAD_MIB": "0",
    "MAX_WAITING": "0",
    "MAX_JOB_SECONDS": "0",
}


def documented_variables() -> set[str]:
    """Variables in the first cells of the docs' tables, and in the table of limits."""
    found = set()
    for name in ("hosting", "jobs-and-results", "cluster"):
        for line in (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8").splitlines():
            if line.startswith("|"):
                found |= set(re.findall(r"`LINEARITY_LAB_([A-Z_]+)`", line))
    return found


def ended(command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("LINEARITY_LAB_")
    }
    for name, value in variables.items():
        environment[f"LINEARITY_LAB_{name}"] = value
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_documented_variable_has_a_wrong_value_here():
    assert documented_variables() - OF_COMPOSE == set(WRONG)


@pytest.mark.parametrize("name", sorted(set(WRONG) - {"STORE"}))
def test_wrong_value_prevents_every_command(name, monkeypatch, capsys):
    monkeypatch.setenv(f"LINEARITY_LAB_{name}", WRONG[name])
    assert main(["presets"]) == BAD_INPUT
    printed = capsys.readouterr().err
    assert printed.startswith(f"LINEARITY_LAB_{name}: ")
    assert "cannot be used; use " in printed
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *WRONG.items(),
        ("STORE", "mysql+nodriver://lab@db/lab"),
        ("STORE", str(ROOT)),
        ("WORKERS", "5"),  # hosted servers have at most four
        ("WORKER", "1"),
        ("PORT", "8501"),
    ],
)
def test_wrong_variable_prevents_the_start_of_a_server(name, given, monkeypatch, capfd):
    from linearity_lab.dashboard.server import _app

    class Ended(BaseException):
        """Stands in for the end of this process."""

    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.setattr(_app.os, "_exit", end)
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted")
    monkeypatch.setenv(f"LINEARITY_LAB_{name}", given)
    with pytest.raises(Ended) as ending:
        _app.stop_if_misconfigured()
    assert ending.value.args == (BAD_INPUT,)
    printed = capfd.readouterr().err
    assert printed.startswith(f"LINEARITY_LAB_{name}: ")
    assert printed.count("\n") == 1


@pytest.mark.parametrize("name", ["linearity_lab_profile", "Linearity_Lab_Hosts"])
def test_name_with_small_letters_is_no_variable(name, monkeypatch, capsys):
    """Such a name was read by one part of the lab and ignored by another."""
    monkeypatch.setenv(name, "hosted")
    assert main(["presets"]) == BAD_INPUT
    allowed = f"a name with small letters cannot be used; use {name.upper()}\n"
    assert capsys.readouterr().err == f"{name}: {allowed}"


def test_password_of_a_wrong_store_is_not_shown():
    with pytest.raises(InvalidInput) as refused:
        check_location("mysql+nodriver://lab:hunter2@db/lab")
    assert "hunter2" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.first_cases(1)  # starts a process
@pytest.mark.parametrize(
    "command",
    [
        ["-m", "streamlit", "run", "app.py", "--server.port=0", "--server.headless=true"],
        ["-m", "linearity_lab", "list"],
    ],
)
def test_process_ends_with_one_sentence(command):
    started = ended(command, PROFIL="hosted")
    assert started.returncode == BAD_INPUT
    lines = [line for line in started.stderr.splitlines() if line.strip()]
    assert lines == ["LINEARITY_LAB_PROFIL: no such setting; did you mean LINEARITY_LAB_PROFILE?"]
    assert "http" not in started.stdout  # no address of a server that does not start
