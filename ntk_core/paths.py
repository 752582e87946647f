"""Where the lab keeps its files on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NAME = "linearity-lab"


def data_directory() -> Path:
    """The user's data directory of the lab by the platform's custom; not created here.

    Raises:
        RuntimeError: when the user has no home directory.
    """
    if sys.platform == "win32":
        base = _absolute(os.environ.get("LOCALAPPDATA")) or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:  # XDG Base Directory Specification: relative values must be ignored
        base = _absolute(os.environ.get("XDG_DATA_HOME")) or Path.home() / ".local" / "share"
    return base / _NAME


def private_directory(path: Path) -> Path:
    """``path``, created if need be and readable by its owner only (mode 700).

    Raises:
        OSError: when it cannot be made so.
    """
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.name == "posix" and path.stat().st_mode & 0o777 != 0o700:
        path.chmod(0o700)
    return path


def _absolute(text: str | None) -> Path | None:
    return Path(text) if text and os.path.isabs(text) else None
