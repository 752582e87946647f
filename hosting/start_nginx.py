"""Start nginx with ``nginx.conf`` beside this file, its ``${LAB_…}`` from the environment."""

import os
import shutil
import string
from pathlib import Path

CONFIGURATION = Path(__file__).with_name("nginx.conf")
DEFAULTS = {
    "LAB_APP": "127.0.0.1:8501",
    "LAB_LISTEN": "8080",
    "LAB_SCRATCH": "/tmp",
    "LAB_SESSIONS_PER_CLIENT": "20",
    "LAB_TLS_PROXY": "127.0.0.1",
}


def find_nginx() -> str | None:
    """Path of nginx, which Debian installs outside a user's PATH."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def write_configuration(values: dict[str, str]) -> list[str]:
    """Fill in the configuration, write it below ``LAB_SCRATCH``, and return the command that serves it."""
    filled = {name: values.get(name) or default for name, default in DEFAULTS.items()}
    file = Path(filled["LAB_SCRATCH"]) / "nginx.conf"
    file.write_text(
        string.Template(CONFIGURATION.read_text(encoding="utf-8")).safe_substitute(filled)
    )
    return [find_nginx() or "nginx", "-c", str(file), "-p", filled["LAB_SCRATCH"], "-e", "stderr"]


if __name__ == "__main__":
    command = write_configuration(dict(os.environ))
    os.execv(command[0], command)
