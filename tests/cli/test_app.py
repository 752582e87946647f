"""The command ``app``: starts the server, or names the missing extra (from a wheel in ``make wheel``)."""

import os
import sys
from pathlib import Path

import pytest

from ntk_core import environment
from ntk_core.cli import _lab, main
from ntk_core.environment import TOP

ROOT = Path(__file__).resolve().parents[2]


def test_app_becomes_streamlit_on_this_checkout(monkeypatch):
    became = []
    monkeypatch.setattr(os, "execv", lambda program, command: became.append((program, command)))
    main(["app", "--port", "9", "--host", "0.0.0.0", "--", "--server.headless=true"])
    ((program, command),) = became
    assert program == sys.executable
    assert command[1:6] == ["-P", "-m", "streamlit", "run", str(ROOT / "app.py")]
    assert command[6:] == ["--server.port=9", "--server.address=0.0.0.0", "--server.headless=true"]
    assert TOP == ROOT


def test_app_without_its_extra_names_the_command_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr(_lab.importlib.util, "find_spec", lambda name: None if name in ("streamlit", "segno") else name)
    assert main(["app"]) == 1
    (printed,) = capsys.readouterr().err.splitlines()
    assert "missing: streamlit, segno" in printed
    assert printed.endswith(": pip install -r requirements.txt")


@pytest.mark.parametrize("extra", ["cli", "app", "cluster", "postgres", "torch"])
def test_install_advice_names_a_file_or_the_wheel(monkeypatch, extra):
    assert (ROOT / environment.how_to_install(extra).split()[-1]).is_file()
    monkeypatch.setattr(environment, "IS_CHECKOUT", False)
    assert f"-py3-none-any.whl[{extra}]'" in environment.how_to_install(extra)
