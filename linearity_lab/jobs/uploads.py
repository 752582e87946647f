"""Uploaded files, each read by a process of its own, and kept in one bounded cache for all sessions."""

import bisect
import contextlib
import functools
import itertools
import multiprocessing
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext

from pydantic import ConfigDict, TypeAdapter

from linearity_lab.jobs._process import limit_memory, no_start_script, yield_to_pages
from linearity_lab.jobs.profile import profile
from ntk_core.data.uploads import BadLine, Candidate, Choices, Cleaned, Limits, clean_upload, parse_upload
from ntk_core.errors import InvalidInput

MAX_READING_S = 20.0
MAX_READING_BYTES = 3 * 2**29
MAX_ANSWER_BYTES = 2**28
SMALL_BYTES = 2**20
Read = Callable[[], bytes]
_PRELOADED = ["linearity_lab.jobs.uploads", "pandas", "PIL.Image"]


@dataclass(frozen=True)
class Refusal:
    """An error of ``parse_upload`` or ``clean_upload``."""

    field: str
    given: str
    allowed: str
    is_bad_line: bool


# In JSON: nothing that could run as code.
ANSWER: TypeAdapter[Candidate | Cleaned | Refusal] = TypeAdapter(
    Candidate | Cleaned | Refusal, config=ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
)


def answer(out: Connection, max_bytes: int, read: Callable, arguments: tuple) -> None:
    """Send what a file holds or its cleaned data, within this memory; nothing where that is not enough."""
    yield_to_pages()
    limit_memory(max_bytes, is_final=True)
    with out, contextlib.suppress(MemoryError, OSError):
        try:
            found = read(*arguments)
        except InvalidInput as error:
            found = Refusal(error.field, error.given, error.allowed, isinstance(error, BadLine))
        out.send_bytes(ANSWER.dump_json(found))


class Reader:
    """Reads one file at a time, the smallest waiting one first, each in a process of its own."""

    def __init__(self, max_s: float = MAX_READING_S, max_bytes: int = MAX_READING_BYTES):
        self._max_s, self._max_bytes = max_s, max_bytes
        self._tickets, self._changed = itertools.count(), threading.Condition()
        self._waiting: list[tuple[int, int]] = []  # (bytes of the file, ticket), smallest first
        self._is_reading = False

    def ask(self, read: Callable, *arguments: object, size: int = 0) -> tuple[Candidate | Cleaned, int]:
        """Return the result of ``parse_upload`` or ``clean_upload``, and its size in bytes.

        Args:
            size: bytes of the file, by which waiting questions are ordered.

        Raises:
            InvalidInput: what they raise, or that it takes too long or too much memory.
        """
        with self._turn(size):
            data = self._answer(read, arguments)
        try:
            found = ANSWER.validate_json(data)
        except Exception:  # it has ended, or writes what is no answer
            allowed = f"one that can be read within {self._max_s:g} s and {self._max_bytes / 2**30:g} GiB of memory"
            raise InvalidInput("file", "this file", allowed) from None
        if isinstance(found, Refusal):
            raise (BadLine if found.is_bad_line else InvalidInput)(found.field, found.given, found.allowed)
        return found, len(data)

    @contextlib.contextmanager
    def _turn(self, size: int) -> Iterator[None]:
        place = size, next(self._tickets)
        with self._changed:
            bisect.insort(self._waiting, place)
            self._changed.wait_for(lambda: not self._is_reading and self._waiting[0] == place)
            self._waiting.pop(0)
            self._is_reading = True
        try:
            yield
        finally:
            with self._changed:
                self._is_reading = False
                self._changed.notify_all()

    def _answer(self, read: Callable, arguments: tuple) -> bytes:
        """The answer of a process; empty where it gives none in time."""
        context = _context()
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=answer, args=(theirs, self._max_bytes, read, arguments), daemon=True)
        with no_start_script():
            process.start()
        theirs.close()  # so that the pipe ends with the process
        timer = threading.Timer(self._max_s, process.kill)
        timer.daemon = True
        timer.start()
        try:
            with ours:
                return ours.recv_bytes(MAX_ANSWER_BYTES)
        except (OSError, EOFError):
            return b""
        finally:
            timer.cancel()
            process.kill()
            process.join()


@functools.cache
def _context() -> SpawnContext | ForkServerContext:
    """Processes that begin with these modules loaded, except on Windows."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


class ReadUploads:
    """Parsed and cleaned uploads, read once for all sessions that upload the same bytes.

    Files of up to SMALL_BYTES do not wait for larger ones. Of all answers, the last used ``most_bytes`` are kept.
    """

    def __init__(self, most_bytes: int, small: Reader, large: Reader):
        self._most_bytes, self._small, self._large = most_bytes, small, large
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, tuple[Candidate | Cleaned, int]] = OrderedDict()

    def candidate(self, version: str, read: Read, limits: Limits) -> Candidate:
        """Parse the file of this SHA-256; refuses as ``parse_upload``, and files over time or memory."""
        found = self._answer((version, limits), read, lambda data: (parse_upload, data, limits))
        assert not isinstance(found, Cleaned)
        return found

    def cleaned(self, version: str, read: Read, choices: Choices, limits: Limits) -> Cleaned:
        """Clean it by these choices; refuses as ``clean_upload``, and files over time or memory."""
        candidate = self.candidate(version, read, limits)
        key, question = (version, limits, choices), (clean_upload, candidate, choices, limits)
        found = self._answer(key, read, lambda _: question)
        assert isinstance(found, Cleaned)
        return found

    def _answer(self, key: object, read: Read, question: Callable[[bytes], tuple]) -> Candidate | Cleaned:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
        data = read()
        reader = self._small if len(data) <= SMALL_BYTES else self._large
        found, num_bytes = reader.ask(*question(data), size=len(data))
        with self._lock:
            self._kept[key] = found, num_bytes
            while sum(held for _, held in self._kept.values()) > self._most_bytes:
                self._kept.popitem(last=False)
        return found


@functools.cache
def read_uploads() -> ReadUploads:
    """Uploads of this process, within the limits of its profile."""
    return ReadUploads(profile().max_held_bytes, Reader(), Reader())
