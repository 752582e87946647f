"""The environment of this process: its variables, the directories of its files, its memory."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ntk_core._version import __version__

if TYPE_CHECKING:
    from ntk_core.variables import Settings

_NAME = "linearity-lab"
_BESIDE = Path(__file__).resolve().parents[1]
_PACKED = _BESIDE / "linearity_lab"
IS_CHECKOUT = not (_PACKED / "app.py").is_file()
# Where app.py, pages/ and gallery/ are: the top of a checkout, or a folder of the wheel (pyproject.toml).
TOP = _BESIDE if IS_CHECKOUT else _PACKED
# glibc's malloc.h: parameter → value for a server of many threads that holds uploads for a while
_MALLOPT = {"M_MMAP_THRESHOLD": (-3, 2**18), "M_ARENA_MAX": (-8, 2)}
PREFIX = "LINEARITY_LAB_"
USABLE = 0.9  # of a device's memory; compiled programs and their constants take some
OUTSIDE = "linearity_lab.experiments"  # entry points of other distributions: name = package with EXPERIMENT


def command_name() -> str:
    """Command that starts the command line here: ``python -m ntk_core`` where this process was started so."""
    called = Path(sys.argv[0]).parts[-2:] if sys.argv else ()
    return "python -m ntk_core" if called == ("ntk_core", "__main__.py") else _NAME


def how_to_install(extra: str) -> str:
    """The command that adds ``cli``, ``app``, ``cluster``, ``postgres`` or ``torch`` to the checkout or wheel."""
    if IS_CHECKOUT:
        return f"pip install -r requirements{'' if extra == 'app' else '-' + extra}.txt"
    return f"pip install 'linearity_lab-{__version__}-py3-none-any.whl[{extra}]'"


def check_installed(extra: str, purpose: str, *modules: str) -> None:
    """Require the packages of an extra.

    Raises:
        ModuleNotFoundError: in one sentence with the command that installs them.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        words = f"{purpose} needs more packages (missing: {', '.join(missing)}): {how_to_install(extra)}"
        raise ModuleNotFoundError(words, name=missing[0])


def settings() -> Settings:
    """The settings of the environment as it is now.

    Raises:
        InvalidInput: naming the variable, its value and the allowed ones.
    """
    from ntk_core.variables import read  # imports pydantic, without which a server listens sooner

    return read(tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith(PREFIX))))


def data_directory() -> Path:
    """The user's data directory of the lab by the platform's custom; not created here.

    Raises:
        RuntimeError: when the user has no home directory.
    """
    import platformdirs

    directory = platformdirs.user_data_path(_NAME, appauthor=False)
    if not directory.is_absolute():
        raise RuntimeError(f"{directory} is not an absolute path; set HOME or XDG_DATA_HOME to one")
    return directory


def private_directory(path: Path) -> Path:
    """``path``, created if need be and readable by its owner only (mode 700).

    Raises:
        OSError: when it cannot be made so.
    """
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.name == "posix" and path.stat().st_mode & 0o777 != 0o700:
        path.chmod(0o700)
    return path


@contextlib.contextmanager
def written_whole(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A file to write, which appears complete or not at all, also when the machine stops; its directory is created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with open(part, "wb", opener=functools.partial(os.open, mode=mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def stated_memory() -> float | None:
    """Bytes that a run may use by ``LINEARITY_LAB_MEMORY_GIB``; None where it is unset.

    Raises:
        InvalidInput: when it is not a number above 0.
    """
    gibibytes = settings().memory_gib
    return None if gibibytes is None else gibibytes * 2**30


def available_memory() -> float:
    """Bytes that programs can still use; without psutil as Linux reports, elsewhere half of the physical memory."""
    if importlib.util.find_spec("psutil") is not None:
        import psutil

        return float(psutil.virtual_memory().available)
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    if hasattr(os, "sysconf"):
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    check_installed("cli", "The estimate of free memory", "psutil")
    return 0.0


def accelerator_bytes() -> list[float]:
    """Usable memory of each accelerator that a point may use; nothing before JAX has started, and on a CPU."""
    if "jax" not in sys.modules:
        return []
    import jax  # waits where another thread is importing it

    statistics = [device.memory_stats() or {} for device in jax.devices() if device.platform != "cpu"]
    found = [USABLE * each["bytes_limit"] for each in statistics if "bytes_limit" in each]
    return found[: settings().devices]


def memory_limit() -> float:
    """Bytes that a run may use: ``LINEARITY_LAB_MEMORY_GIB``, or the memory of all accelerators that this process
    computes on, or four fifths of what is free now."""
    return stated_memory() or sum(accelerator_bytes()) or 0.8 * available_memory()


def resident_memory() -> float:
    """Bytes of this process in memory; 0 where neither psutil nor Linux reports it."""
    if importlib.util.find_spec("psutil") is not None:
        import psutil

        return float(psutil.Process().memory_info().rss)
    with contextlib.suppress(OSError):
        return float(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0.0


def keep_memory_returnable() -> None:
    """Let freed memory go back to the system, where the C library is glibc; elsewhere nothing is done.

    Blocks of 256 KiB or more get a mapping of their own, which goes when they are freed. By default glibc raises that
    bound to the largest block that was ever freed, up to 32 MiB, so that uploads come to lie among what stays; and it
    has an arena of its own for each of many threads.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        for parameter, value in _MALLOPT.values():
            mallopt(parameter, value)


def return_freed_memory() -> None:
    """Hand freed memory back to the system, where the C library is glibc; elsewhere nothing is done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
