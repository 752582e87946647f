"""Uploaded files, parsed apart and cached for all sessions.

Each is parsed in a process with limits of time and memory.
"""

import atexit
import functools
import importlib
import io
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import CancelledError
from multiprocessing.reduction import ForkingPickler
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from linearity_lab.dashboard.jobs._process import LivePool, limit_memory, prepare_child
from linearity_lab.dashboard.jobs.profile import profile
from linearity_lab.data.uploads import (
    Candidate,
    Choices,
    Cleaned,
    Limits,
    clean_upload,
    parse_upload,
)
from ntk_core.errors import InvalidInput

MAX_READING_S = 20.0
MAX_READING_BYTES = 3 * 2**29
SMALL_BYTES = 2**20
Read = Callable[[], bytes]
_T = TypeVar("_T")
# File id → file in the state of the session that shows it.
_SHOWN: WeakValueDictionary[str, io.BytesIO] = WeakValueDictionary()


def start(max_bytes: int) -> None:
    """Prepare a process that parses files."""
    prepare_child()
    importlib.import_module("PIL.Image")
    limit_memory(max_bytes)


def parse(work: Callable[..., _T], arguments: tuple[object, ...]) -> tuple[_T, int]:
    """Return the result of a parser and its size in bytes.

    Without enough memory the process ends.
    """
    try:
        found = work(*arguments)
        return found, len(ForkingPickler.dumps(found))
    except MemoryError:
        os._exit(1)


class ReadUploads:
    """Parsed and cleaned uploads, shared by all sessions that upload the same bytes.

    Files of up to SMALL_BYTES have their own process, so that they do not wait for larger ones.

    Args:
        most_bytes: size of the cache, which drops the least recently used results.
        max_s: time limit to parse or clean a file.
        max_bytes: memory limit of its process.
    """

    def __init__(
        self, most_bytes: int, max_s: float = MAX_READING_S, max_bytes: int = MAX_READING_BYTES
    ):
        self._most_bytes = most_bytes
        self._max_s = max_s
        self._max_bytes = max_bytes
        self._small, self._large = (LivePool(1, start, (max_bytes,)) for _ in range(2))
        self._small_turn = threading.Lock()
        self._large_turn = threading.Lock()
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, tuple[Any, int]] = OrderedDict()

    def candidate(
        self, version: str, read: Read, limits: Limits, header: bool | None = None
    ) -> Candidate:
        """Parse the file with this SHA-256.

        Refuse files as ``parse_upload`` does, and over time or memory.
        """
        key = (version, limits, header)
        return self._kept_or_new(key, parse_upload, read, lambda data: (data, limits, header))

    def cleaned(
        self,
        version: str,
        read: Read,
        choices: Choices,
        limits: Limits,
        header: bool | None = None,
    ) -> Cleaned:
        """Clean it by these choices.

        Refuse files as ``clean_upload`` does, and over time or memory.
        """
        candidate = self.candidate(version, read, limits, header)
        key = (version, limits, header, choices)
        return self._kept_or_new(key, clean_upload, read, lambda _: (candidate, choices, limits))

    def close(self) -> None:
        """End the processes."""
        self._small.close()
        self._large.close()

    def _kept_or_new(
        self,
        key: object,
        work: Callable[..., _T],
        read: Read,
        arguments: Callable[[bytes], tuple[object, ...]],
    ) -> _T:
        found: tuple[_T, int] | InvalidInput | None = self._kept_at(key)
        if found is None:
            is_small = len(read()) <= SMALL_BYTES
            turn = self._small_turn if is_small else self._large_turn
            pool = self._small if is_small else self._large
            # Waiting threads hold no bytes, so that a queue takes no memory.
            with turn:
                found = self._kept_at(key) or self._parsed(pool, work, read, arguments)
                self._keep(key, found)
        if isinstance(found, InvalidInput):
            raise found
        return found[0]

    def _parsed(
        self,
        pool: LivePool,
        work: Callable[..., _T],
        read: Read,
        arguments: Callable[[bytes], tuple[object, ...]],
    ) -> tuple[_T, int] | InvalidInput:
        """Return the result of a process with its size, or its refusal.

        A refusal is returned, since the traceback of a raised error would hold the bytes of the
        file.
        """
        asked = pool.schedule(parse, (work, arguments(read())), self._max_s)
        try:
            error = asked.exception()
        except CancelledError as ended:
            error = ended
        if error is None:
            return asked.result()
        if isinstance(error, InvalidInput):
            return error
        # The process has ended.
        allowed = (
            f"one that can be read within {self._max_s:g} s and {self._max_bytes / 2**30:g} "
            "GiB of memory"
        )
        return InvalidInput("file", "this file", allowed)

    def _kept_at(self, key: object) -> tuple[Any, int] | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: object, found: tuple[Any, int] | InvalidInput) -> None:
        """Cache a result; refusals stay with the session that shows them."""
        if isinstance(found, InvalidInput):
            return
        with self._lock:
            self._kept[key] = found
            while sum(held for _, held in self._kept.values()) > self._most_bytes:
                self._kept.popitem(last=False)


def show_file(file_id: str, file: io.BytesIO, num_bytes: int) -> Read:
    """Return a function that reads a file of a session, without a copy of its bytes.

    Raises:
        InvalidInput: from this function, if ``drop_file`` has emptied the file.
    """
    _SHOWN[file_id] = file

    def read() -> bytes:
        data = file.getvalue()
        if len(data) < num_bytes:
            given = "a file that this busy server has dropped"
            raise InvalidInput("file", given, "a new upload of it")
        return data

    return read


def drop_file(file_id: str) -> None:
    """Free the bytes that a session's state still holds of a file that the server has removed."""
    shown = _SHOWN.pop(file_id, None)
    if shown is not None:
        shown.truncate(0)


@functools.cache
def read_uploads() -> ReadUploads:
    """Return the uploads of this process, within the limits of its profile.

    Its processes end with it.
    """
    uploads = ReadUploads(profile().max_held_bytes)
    atexit.register(uploads.close)
    return uploads
