"""Uploaded files as they were read: by one process for all sessions, kept in one bounded cache by digest."""

import atexit
import contextlib
import functools
import heapq
import itertools
import logging
import os
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linearity_lab.jobs.profile import Profile, profile
from linearity_lab.jobs.wire import received, send
from ntk_core.data.uploads import Candidate, Choices, Cleaned, Limits
from ntk_core.errors import InvalidInput

MAX_READING_S = 20.0
_ROOT = Path(__file__).resolve().parents[2]
_LOG = logging.getLogger(__name__)


class SmallestFirst:
    """A lock that goes to the smallest waiting task, so that large files of some do not delay small ones of others."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[int, int]] = []
        self._tickets = itertools.count()
        self._is_held = False

    @contextlib.contextmanager
    def held(self, size: int) -> Iterator[None]:
        """Wait for the turn of a task of this size, and hold the lock during the block."""
        ticket = (size, next(self._tickets))
        with self._changed:
            heapq.heappush(self._waiting, ticket)
            self._changed.wait_for(lambda: not self._is_held and self._waiting[0] == ticket)
            heapq.heappop(self._waiting)
            self._is_held = True
        try:
            yield
        finally:
            with self._changed:
                self._is_held = False
                self._changed.notify_all()


class Reader:
    """The process that reads, one file at a time, the smallest first; started again after it has ended."""

    def __init__(self, max_reading_s: float = MAX_READING_S):
        self._max_reading_s = max_reading_s
        self._lock = SmallestFirst()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, what: str, *arguments: object, size: int = 0) -> tuple[Any, int]:
        """What ``parse_upload`` or ``clean_upload`` makes of the arguments, and its size in bytes.

        Args:
            size: bytes of the file, by which waiting questions are ordered.

        Raises:
            InvalidInput: what they raise, or that it takes too long or too much memory.
        """
        with self._lock.held(size):
            process = self._started()
            timer = threading.Timer(self._max_reading_s, process.kill)
            timer.daemon = True
            timer.start()
            try:
                assert process.stdin is not None
                assert process.stdout is not None
                send(process.stdin, (what, *arguments))
                found = received(process.stdout)
            except OSError:
                found = None
            finally:
                timer.cancel()
            if found is None:
                self._end()
        answer, num_bytes = found or (MemoryError(), 0)
        if isinstance(answer, InvalidInput):
            raise answer
        if isinstance(answer, MemoryError):
            allowed = f"one that can be read within {self._max_reading_s:g} s and 2 GiB of memory"
            raise InvalidInput("file", "this file", allowed)
        return answer, num_bytes

    def close(self) -> None:
        """End the process; the next question starts another one."""
        with self._lock.held(0):
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "linearity_lab.jobs.upload_reader"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # One thread: what is read here is small, and every thread takes address space.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OPENBLAS_NUM_THREADS": "1"},
                process_group=0,
            )
        return self._process

    def _end(self) -> None:
        if (process := self._process) is None:
            return
        self._process = None
        process.kill()
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        _LOG.info("the reader of uploads has ended", extra={"facts": {"code": code}})


@dataclass(frozen=True)
class _Kept:
    value: Any
    num_bytes: int
    owner: str


class BoundedCache:
    """Values by key, ``most`` bytes in all; beyond that the owner who holds most loses what it used longest ago."""

    def __init__(self, most: int):
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, _Kept] = OrderedDict()

    @property
    def num_bytes(self) -> int:
        """Of all values together."""
        with self._lock:
            return sum(kept.num_bytes for kept in self._kept.values())

    def get(self, key: object) -> Any:
        """The value; None where it is not, or no longer, kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key].value

    def put(self, key: object, value: object, num_bytes: int, owner: str) -> None:
        """Keep a value, unless it is larger than all that may be kept."""
        with self._lock:
            self._kept.pop(key, None)
            if num_bytes > self._most:
                return
            self._kept[key] = _Kept(value, num_bytes, owner)
            while sum(kept.num_bytes for kept in self._kept.values()) > self._most:
                held: dict[str, int] = {}
                for kept in self._kept.values():
                    held[kept.owner] = held.get(kept.owner, 0) + kept.num_bytes
                heaviest = max(held, key=held.__getitem__)
                del self._kept[next(key for key, kept in self._kept.items() if kept.owner == heaviest)]


class ReadUploads:
    """What files hold and what choices make of them, read once for all sessions that bring the same bytes."""

    def __init__(self, reader: Reader, most_bytes: int):
        self._reader, self._cache = reader, BoundedCache(most_bytes)

    def candidate(self, version: str, read: Callable[[], bytes], limits: Limits, owner: str) -> Candidate:
        """What the file of this SHA-256 holds; its bytes are asked for where they are needed.

        Raises:
            InvalidInput: as :func:`ntk_core.data.uploads.parse_upload`, or it takes too long.
        """
        key = (version, limits)
        found: Candidate | None = self._cache.get(key)
        if found is None:
            data = read()
            found, num_bytes = self._reader.ask("parse", data, limits, size=len(data))
            self._cache.put(key, found, num_bytes, owner)
        return found

    def cleaned(self, version: str, read: Callable[[], bytes], choices: Choices, limits: Limits, owner: str) -> Cleaned:
        """What these choices make of it.

        Raises:
            InvalidInput: as :func:`ntk_core.data.uploads.clean_upload`, or it takes too long.
        """
        key = (version, limits, choices)
        found: Cleaned | None = self._cache.get(key)
        if found is None:
            candidate = self.candidate(version, read, limits, owner)
            found, num_bytes = self._reader.ask("clean", candidate, choices, limits, size=len(read()))
            self._cache.put(key, found, num_bytes, owner)
        return found


@functools.cache
def _read_uploads(chosen: Profile) -> ReadUploads:
    reader = Reader()
    atexit.register(reader.close)
    return ReadUploads(reader, chosen.max_held_bytes)


def read_uploads() -> ReadUploads:
    """Those of this process, within the limits of its profile."""
    return _read_uploads(profile())
