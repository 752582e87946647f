"""Installed packages and free memory of this machine."""

import contextlib
import importlib.metadata
import importlib.util
import json
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

# A wheel packs app.py into linearity_lab; a checkout has it at its top.
IS_CHECKOUT = not (Path(__file__).resolve().parents[1] / "linearity_lab" / "app.py").is_file()


def how_to_install(extra: str) -> str:
    """Return the command that installs ``cli``, ``app``, ``cluster``, ``postgres`` or ``torch``."""
    if IS_CHECKOUT:
        return f"pip install -r requirements{'' if extra == 'app' else '-' + extra}.txt"
    return f"pip install '{_installed_from()}[{extra}]'"


def _installed_from() -> str:
    """Return the path of the wheel or folder that was installed.

    The name of the distribution if unknown.
    """
    name = "linearity-lab"
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError, KeyError):
        text = importlib.metadata.distribution(name).read_text("direct_url.json")
        url = urlsplit(json.loads(text)["url"]) if text else None
        if url is not None and url.scheme == "file":
            return unquote(url.path)
    return name


def check_installed(extra: str, purpose: str, *modules: str) -> None:
    """Require the packages of an extra; the error names the command that installs them."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        words = (
            f"{purpose} needs more packages (missing: {', '.join(missing)}): "
            f"{how_to_install(extra)}"
        )
        raise ModuleNotFoundError(words, name=missing[0])


def available_memory() -> float:
    """Return available memory in bytes.

    Half of the physical memory without psutil and outside Linux.
    """
    if importlib.util.find_spec("psutil") is not None:
        import psutil

        return float(psutil.virtual_memory().available)
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(
            int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")
        )
    if hasattr(os, "sysconf"):
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    check_installed("cli", "The estimate of free memory", "psutil")
    return 0.0
