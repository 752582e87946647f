"""Memory that runs may use, that this process holds, and that it returns to the system."""

import contextlib
import ctypes
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from linearity_lab.environment import environment_settings
from ntk_core.machine import available_memory

USABLE = 0.9  # of a device's memory; compiled programs and their constants take some
FREE_SHARE = 0.8  # of the free memory that a run may take by default
# Parameters of glibc's malloc.h for a threaded server that holds uploads temporarily
_MALLOC_PARAMETERS = {"M_MMAP_THRESHOLD": (-3, 2**18), "M_ARENA_MAX": (-8, 2)}


def memory_limit() -> float:
    """Return the memory limit of a run in bytes.

    ``LINEARITY_LAB_MEMORY_GIB``, or the memory of this process's accelerators, or four
    fifths of free memory.
    """
    stated = stated_memory()
    if stated:
        return stated
    on_accelerators = sum(accelerator_bytes())
    if on_accelerators:
        return on_accelerators
    return FREE_SHARE * available_memory()


def stated_memory() -> float | None:
    """Return the bytes of ``LINEARITY_LAB_MEMORY_GIB``; None if unset."""
    gibibytes = environment_settings().memory_gib
    return None if gibibytes is None else gibibytes * 2**30


def accelerator_bytes() -> list[float]:
    """Return usable memory of each accelerator of a point.

    Empty before JAX has started and on a CPU.
    """
    if "jax" not in sys.modules:
        return []
    import jax  # waits for imports in other threads

    usable = []
    for device in jax.devices():
        if device.platform == "cpu":
            continue
        statistics = device.memory_stats() or {}
        if "bytes_limit" in statistics:
            usable.append(USABLE * statistics["bytes_limit"])
    return usable[: environment_settings().devices]


def resident_memory() -> float:
    """Return the resident bytes of this process; 0 without psutil outside Linux."""
    if importlib.util.find_spec("psutil") is not None:
        import psutil

        return float(psutil.Process().memory_info().rss)
    with contextlib.suppress(OSError):
        # The second number is the count of resident pages (man 5 proc).
        numbers = Path("/proc/self/statm").read_text(encoding="ascii").split()
        return float(numbers[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0.0


def keep_memory_returnable() -> None:
    """Let glibc return freed memory to the system; no effect with other C libraries.

    Blocks of 256 KiB or more get their own mapping, which is released when freed. By default glibc
    raises that bound to the largest freed block, up to 32 MiB, so uploads fragment the heap, and it
    uses an arena per thread.
    """
    mallopt = _c_function("mallopt")
    if mallopt is None:
        return
    for parameter, value in _MALLOC_PARAMETERS.values():
        mallopt(parameter, value)


def return_freed_memory() -> None:
    """Return freed memory to the system with glibc; no effect with other C libraries."""
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


def _c_function(name: str) -> Any:
    """Return a function of this process's C library; None if it has none of this name."""
    if os.name != "posix":
        return None
    return getattr(ctypes.CDLL(None), name, None)
