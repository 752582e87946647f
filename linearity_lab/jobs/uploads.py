"""Uploaded files, read by processes of their own and kept in one bounded cache for all sessions."""

import bisect
import contextlib
import functools
import itertools
import logging
import signal
import threading
from collections import OrderedDict
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from linearity_lab.jobs._process import Context, limit_memory, yield_to_pages
from linearity_lab.jobs.profile import profile
from linearity_lab.jobs.wire import received, send
from ntk_core.data.uploads import Candidate, Choices, Cleaned, Limits, clean_upload, parse_upload
from ntk_core.errors import InvalidInput

MAX_READING_S = 20.0
MAX_READING_BYTES = 3 * 2**29
SMALL_BYTES = 2**20
_LOG = logging.getLogger(__name__)


def serve(questions: Connection, max_bytes: int) -> None:
    """Answer questions about files within this memory limit, until the server ends."""
    import pandas as pd  # noqa: F401  # before memory is limited
    import PIL.Image  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the server's terminal is the server's to handle
    yield_to_pages()
    limit_memory(max_bytes, is_final=True)
    with contextlib.suppress(EOFError, OSError, ValueError):  # the server has ended, or asks for too much
        while True:
            (what, *arguments), _ = received(questions)
            try:
                answer = {"parse": parse_upload, "clean": clean_upload}[what](*arguments)  # type: ignore[operator]
            except (InvalidInput, MemoryError) as error:
                answer = error
            send(questions, answer)


class Reader:
    """A process that reads one file at a time, the smallest waiting one first; started again after it has ended."""

    def __init__(self, max_s: float = MAX_READING_S, max_bytes: int = MAX_READING_BYTES):
        self._max_s, self._max_bytes = max_s, max_bytes
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._tickets, self._turn = itertools.count(), threading.Condition()
        self._waiting: list[tuple[int, int]] = []  # (bytes of the file, ticket), smallest first
        self._is_reading = False

    def ask(self, what: str, *arguments: object, size: int = 0) -> tuple[Any, int]:
        """What ``parse_upload`` or ``clean_upload`` makes of the arguments, and its size in bytes.

        Args:
            size: bytes of the file, by which waiting questions are ordered.

        Raises:
            InvalidInput: what they raise, or that it takes too long or too much memory.
        """
        place = size, next(self._tickets)
        with self._turn:
            bisect.insort(self._waiting, place)
            self._turn.wait_for(lambda: not self._is_reading and self._waiting[0] == place)
            self._waiting.pop(0)
            self._is_reading = True
        try:
            answer, num_bytes = self._answer((what, *arguments))
        finally:
            with self._turn:
                self._is_reading = False
                self._turn.notify_all()
        if isinstance(answer, MemoryError):
            allowed = f"one that can be read within {self._max_s:g} s and {self._max_bytes / 2**30:g} GiB of memory"
            raise InvalidInput("file", "this file", allowed)
        if isinstance(answer, InvalidInput):
            raise answer
        return answer, num_bytes

    def close(self) -> None:
        """End the process; the next question starts another one."""
        if self._process is not None and self._pipe is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            _LOG.info("the reader of uploads has ended", extra={"facts": {"code": self._process.exitcode}})
        self._process = self._pipe = None

    def _answer(self, question: tuple) -> tuple[Any, int]:
        if self._process is None or self._pipe is None or not self._process.is_alive():
            context = Context()
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=serve, args=(theirs, self._max_bytes), daemon=True)
            self._process.start()
            theirs.close()  # so that the pipe ends with the process
        timer = threading.Timer(self._max_s, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            send(self._pipe, question)
            return received(self._pipe)
        except (OSError, EOFError, ValueError):  # it has ended, or writes what is no answer
            self.close()
            return MemoryError(), 0
        finally:
            timer.cancel()


class ReadUploads:
    """What files hold and what choices make of them, read once for all sessions that upload the same bytes.

    Files of up to SMALL_BYTES have a process of their own. Of all answers, the last used ``most_bytes`` are kept.
    """

    def __init__(self, most_bytes: int, small: Reader, large: Reader):
        self._most_bytes, self._small, self._large = most_bytes, small, large
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, tuple[Any, int]] = OrderedDict()

    def candidate(self, version: str, read: Callable[[], bytes], limits: Limits) -> Candidate:
        """What the file of this SHA-256 holds; refuses as ``parse_upload``, or what takes too long or too much."""
        found: Candidate = self._answer((version, limits), read, "parse", lambda: (read(), limits))
        return found

    def cleaned(self, version: str, read: Callable[[], bytes], choices: Choices, limits: Limits) -> Cleaned:
        """What these choices make of it; refuses as ``clean_upload``, or what takes too long or too much."""
        candidate = self.candidate(version, read, limits)
        key = (version, limits, choices)
        found: Cleaned = self._answer(key, read, "clean", lambda: (candidate, choices, limits))
        return found

    def _answer(self, key: object, read: Callable[[], bytes], what: str, arguments: Callable[[], tuple]) -> Any:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        size = len(read())
        reader = self._small if size <= SMALL_BYTES else self._large
        found, num_bytes = reader.ask(what, *arguments(), size=size)
        with self._lock:
            self._kept[key] = found, num_bytes
            while sum(held for _, held in self._kept.values()) > self._most_bytes:
                self._kept.popitem(last=False)
        return found


@functools.cache
def read_uploads() -> ReadUploads:
    """Those of this process, within the limits of its profile."""
    return ReadUploads(profile().max_held_bytes, Reader(), Reader())
