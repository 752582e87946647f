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

from ntk_core.machine import IS_CHECKOUT, available_memory

if TYPE_CHECKING:
    from linearity_lab.variables import Settings

_NAME = "linearity-lab"
# Where app.py, pages/ and gallery/ are: the top of a checkout, or a folder of the wheel (pyproject.toml).
_PACKED = Path(__file__).resolve().parent
TOP = _PACKED.parent if IS_CHECKOUT else _PACKED
# glibc's malloc.h: parameters for a threaded server that holds uploads temporarily
_MALLOPT = {"M_MMAP_THRESHOLD": (-3, 2**18), "M_ARENA_MAX": (-8, 2)}
PREFIX = "LINEARITY_LAB_"
USABLE = 0.9  # of a device's memory; compiled programs and their constants take some
OUTSIDE = "linearity_lab.experiments"  # entry points of other distributions: name = package


def command_name() -> str:
    """Name of the command line: ``python -m linearity_lab`` if it started this process."""
    called = Path(sys.argv[0]).parts[-2:] if sys.argv else ()
    return "python -m linearity_lab" if called == ("linearity_lab", "__main__.py") else _NAME


def settings() -> Settings:
    """Return the current settings of the environment; errors name the variable."""
    from linearity_lab.variables import read  # imports pydantic, which delays the server's start

    return read(
        tuple(
            sorted((name, value) for name, value in os.environ.items() if name.startswith(PREFIX))
        )
    )


def data_directory() -> Path:
    """Return the user's data directory by platform convention, without creating it."""
    import platformdirs

    directory = platformdirs.user_data_path(_NAME, appauthor=False)
    if not directory.is_absolute():
        raise RuntimeError(f"{directory} is not an absolute path; set HOME or XDG_DATA_HOME to one")
    return directory


def private_directory(path: Path) -> Path:
    """Create ``path`` if needed, readable by its owner only (mode 700)."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if os.name == "posix" and path.stat().st_mode & 0o777 != 0o700:
        path.chmod(0o700)
    return path


@contextlib.contextmanager
def written_whole(path: Path, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a file that is written atomically, even if the machine stops; create its directory."""
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
    """Return the bytes of ``LINEARITY_LAB_MEMORY_GIB``; None if unset."""
    gibibytes = settings().memory_gib
    return None if gibibytes is None else gibibytes * 2**30


def accelerator_bytes() -> list[float]:
    """Return usable memory of each accelerator of a point; empty before JAX has started and on a CPU."""
    if "jax" not in sys.modules:
        return []
    import jax  # waits for imports in other threads

    statistics = [
        device.memory_stats() or {} for device in jax.devices() if device.platform != "cpu"
    ]
    found = [USABLE * each["bytes_limit"] for each in statistics if "bytes_limit" in each]
    return found[: settings().devices]


def memory_limit() -> float:
    """Return the memory limit of a run in bytes.

    ``LINEARITY_LAB_MEMORY_GIB``, or the memory of this process's accelerators, or four fifths of free memory.
    """
    return stated_memory() or sum(accelerator_bytes()) or 0.8 * available_memory()


def resident_memory() -> float:
    """Return the resident bytes of this process; 0 without psutil outside Linux."""
    if importlib.util.find_spec("psutil") is not None:
        import psutil

        return float(psutil.Process().memory_info().rss)
    with contextlib.suppress(OSError):
        return float(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    return 0.0


def keep_memory_returnable() -> None:
    """Let glibc return freed memory to the system; no effect with other C libraries.

    Blocks of 256 KiB or more get their own mapping, which is released when freed. By default glibc raises that bound
    to the largest freed block, up to 32 MiB, so uploads fragment the heap, and it uses an arena per thread.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        for parameter, value in _MALLOPT.values():
            mallopt(parameter, value)


def return_freed_memory() -> None:
    """Return freed memory to the system with glibc; no effect with other C libraries."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)
