"""Child processes of the server.

Spawned without its start script, with low priority and within a memory limit.
"""

import contextlib
import logging
import math
import multiprocessing
import os
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import InvalidStateError
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import spawn
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from pebble import CONSTS, ProcessFuture, ProcessPool

NICENESS = 15
MAX_TASKS = 50  # tasks per process, since freed memory is not returned
# Before pebble kills a process that does not end on request, such as a stopped one.
CONSTS.term_timeout = 0.2
ENDING_S = 10.0  # for the threads of a pool that has ended
_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


def _preparation(name: str) -> dict[str, Any]:
    """Return what a spawned process sets up first; ours do not execute the start script.

    multiprocessing has no setting for it. A child would execute the file of ``__main__``, in
    Streamlit's server that of the page which a visitor sees. Processes of others keep theirs.
    """
    data = _usual_preparation(name)
    if name in _POOLS:
        for key in _OF_START_SCRIPT:
            data.pop(key, None)
    return data


_POOLS: set[str] = set()  # names of the processes of all pools
_OF_START_SCRIPT = ("init_main_from_name", "init_main_from_path")
_usual_preparation = spawn.get_preparation_data
spawn.get_preparation_data = _preparation


class _NamedContext(SpawnContext):
    """Spawns processes that all have one name."""

    def __init__(self, name: str):
        self._name = name
        _POOLS.add(name)

    def Process(self, **given: Any) -> SpawnProcess:  # type: ignore[override]
        return SpawnProcess(**given | {"name": self._name})


def prepare_child() -> None:
    """End this process with its server, and lower its priority.

    So pages respond while it uses all cores.
    """
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    if sys.platform != "win32":
        os.nice(NICENESS)


def _end_with_the_server() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)  # finished points are in the store


def limit_memory(max_bytes: float) -> None:
    """Limit the memory of this process to this much above its current use; Linux only."""
    if sys.platform == "linux":
        import resource

        with open("/proc/self/status", encoding="ascii") as lines:
            held = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData:"))
        most = int(held + max_bytes) if max_bytes < math.inf else resource.RLIM_INFINITY
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


class LivePool:
    """Warm processes that pebble starts, feeds and replaces.

    Args:
        start: function to call first in each process.
        arguments: arguments of ``start``.
    """

    def __init__(
        self, num_processes: int, start: Callable[..., None], arguments: tuple[object, ...]
    ):
        self._given = num_processes, MAX_TASKS, start, arguments
        self._name = f"pool {id(self)}"
        self._context = _NamedContext(self._name)
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None
        self._futures: weakref.WeakSet[ProcessFuture[Any]] = weakref.WeakSet()  # of this pool
        self._closed = False

    def warm_up(self) -> None:
        """Start the processes; replace a broken pool, as after the death of an idle process."""
        with self._lock:
            self._start()

    def _start(self) -> None:
        """As :meth:`warm_up`, within the lock."""
        if self._closed or (self._pool is not None and self._pool.active):
            return
        if self._pool is not None:
            _LOG.warning("The worker processes have ended and are restarted.")
            self._abandon(self._pool)
        self._pool = ProcessPool(*self._given, context=self._context)
        with contextlib.suppress(BrokenProcessPool, RuntimeError, OSError):
            _ = self._pool.active  # starts it

    def schedule(
        self, work: Callable[..., _T], arguments: tuple[object, ...], timeout_s: float | None = None
    ) -> ProcessFuture[_T]:
        """Send work to the next free process, which is killed after this time."""
        with self._lock:
            self._start()
            try:
                if self._pool is None:  # closed
                    raise RuntimeError
                future = self._pool.schedule(work, arguments, timeout=timeout_s)
            except (RuntimeError, OSError) as error:
                refused: ProcessFuture[_T] = ProcessFuture()
                refused.set_exception(error)
                return refused
            self._futures.add(future)
            return future

    def pids(self) -> list[int]:
        """Return the process ids of living processes."""
        return sorted(each.pid for each in self._processes() if each.pid)

    def _processes(self) -> list[BaseProcess]:
        return [each for each in multiprocessing.active_children() if each.name == self._name]

    def _abandon(self, pool: ProcessPool) -> None:
        """End a pool, its processes and its work, and wait a few seconds for its threads.

        Threads that do not end are left behind. A pool that breaks forgets work which its threads
        have not taken from the queue.
        """
        pool.stop()
        for each in self._processes():
            each.kill()
        end = threading.Thread(target=pool.join, daemon=True)
        end.start()
        end.join(ENDING_S)
        for future in list(self._futures):
            with contextlib.suppress(InvalidStateError):  # done
                future.set_exception(BrokenProcessPool("The pool has ended."))
        self._futures.clear()

    def close(self) -> None:
        """End all processes and start no more."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._abandon(self._pool)
