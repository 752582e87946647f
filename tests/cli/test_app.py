"""``app`` becomes the server; without its extra it says what to install. What a wheel holds is tried by make wheel."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ntk_core.cli import _app, main
from ntk_core.environment import TOP

ROOT = Path(__file__).resolve().parents[2]


class Became(Exception):
    """What the process would have become."""


def test_the_command_becomes_streamlit_with_the_script_of_this_checkout(monkeypatch):
    def become(program, command, environment):
        raise Became(program, command, environment)

    monkeypatch.setattr(os, "execve", become)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "of the command line")
    with pytest.raises(Became) as became:
        main(["app", "--port", "9", "--host", "0.0.0.0", "--", "--server.headless=true"])
    program, command, environment = became.value.args
    assert program == sys.executable
    assert command[1:6] == ["-P", "-m", "streamlit", "run", str(ROOT / "app.py")]
    assert command[6:] == ["--server.port=9", "--server.address=0.0.0.0", "--server.headless=true"]
    assert environment.get("JAX_COMPILATION_CACHE_DIR") != "of the command line"
    assert TOP == ROOT


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(_app.importlib.util, "find_spec", lambda name: None if name in ("streamlit", "segno") else name)
    assert main(["app"]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert "missing: streamlit, segno" in said
    assert said.endswith(": pip install -r requirements.txt")
