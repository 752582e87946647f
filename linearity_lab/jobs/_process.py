"""Child processes of the server: spawned without its start script, with low priority and within a memory limit."""

import contextlib
import math
import multiprocessing
import os
import sys
import threading
import types
from collections.abc import Iterator
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

NICENESS = 15
_MAIN = threading.Lock()


@contextlib.contextmanager
def no_start_script() -> Iterator[None]:
    """Let processes that start meanwhile not execute the start script of this one, as ``multiprocessing`` asks them to.

    In Streamlit's server ``__main__`` is the script of the page.
    """
    stub = types.ModuleType("__main__")
    with _MAIN:
        main, sys.modules["__main__"] = sys.modules["__main__"], stub
        try:
            yield
        finally:
            if sys.modules["__main__"] is stub:  # else Streamlit has begun to run a page
                sys.modules["__main__"] = main


class Process(SpawnProcess):
    """A child that does not execute the start script of its parent."""

    def start(self) -> None:
        with no_start_script():
            super().start()


class Context(SpawnContext):
    """Spawned processes that know their context."""

    def Process(self, *arguments: Any, **named: Any) -> Process:  # type: ignore[override]
        """A process that is not yet started."""
        child = Process(*arguments, **named)
        child.context = self  # type: ignore[attr-defined]
        return child

    def living(self) -> list[multiprocessing.process.BaseProcess]:
        """The started processes that have not ended."""
        return [each for each in multiprocessing.active_children() if getattr(each, "context", None) is self]


def yield_to_pages() -> None:
    """Give this process a low priority: pages must answer while it fills every core."""
    if sys.platform != "win32":
        os.nice(NICENESS)


def limit_memory(max_bytes: float, *, is_final: bool = False) -> None:
    """Let the system refuse more memory than this above what the process has; only Linux counts it so."""
    if sys.platform == "linux":
        import resource

        with open("/proc/self/status", encoding="ascii") as lines:
            held = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData:"))
        most = int(held + max_bytes) if max_bytes < math.inf else resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_DATA, (most, most if is_final else resource.RLIM_INFINITY))
