"""``app``: the dashboard, from any folder."""

import argparse
import importlib.util
import os
import subprocess
import sys
from typing import Any

from ntk_core.cli._exit_codes import FAILED
from ntk_core.cli._printing import complain
from ntk_core.environment import IS_CHECKOUT, TOP

_NEEDED = ("streamlit", "plotly", "pandas", "segno")  # of the extra; they bring the rest
_INSTALL = "pip install -r requirements.txt" if IS_CHECKOUT else "pip install 'linearity-lab[app]'"
# Before the command line tells a JAX of its own where compiled code is kept: the workers see to that themselves.
_ENVIRONMENT = dict(os.environ)


def add(commands: Any) -> None:
    """The command's options."""
    parser = commands.add_parser("app", help="start the dashboard")
    parser.add_argument("--port", type=int, metavar="N", help="where it listens (default: 8501, or the next free port)")
    parser.add_argument("--host", metavar="ADDRESS", help="0.0.0.0 lets others reach it (default: localhost)")
    parser.add_argument("further", nargs="*", metavar="OPTION", help="after --: options of streamlit run")
    parser.set_defaults(command=app)


def app(options: argparse.Namespace) -> int:
    """Become the server; returns only where that cannot be."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        complain(f"The dashboard needs more than the library (missing: {', '.join(missing)}): {_INSTALL}")
        return FAILED
    flags = [f"--server.port={options.port}"] if options.port is not None else []
    flags += [f"--server.address={options.host}"] if options.host is not None else []
    # -P: what lies in the folder where somebody starts it is no module of the dashboard.
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(TOP / "app.py"), *flags, *options.further]
    if os.name != "posix":
        return subprocess.call(command, env=_ENVIRONMENT)
    os.execve(sys.executable, command, _ENVIRONMENT)
