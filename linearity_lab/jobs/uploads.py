"""Uploaded files, each read by a process of its own, and kept in one bounded cache for all sessions."""

import bisect
import contextlib
import dataclasses
import functools
import io
import itertools
import json
import multiprocessing
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext

import numpy as np
from numpy.typing import NDArray

from linearity_lab.jobs._process import limit_memory, no_start_script, yield_to_pages
from linearity_lab.jobs.profile import profile
from ntk_core.data import uploads as files
from ntk_core.data.uploads import Candidate, Choices, Cleaned, Limits
from ntk_core.errors import InvalidInput

MAX_READING_S = 20.0
MAX_READING_BYTES = 3 * 2**29
MAX_ANSWER_BYTES = 2**28
SMALL_BYTES = 2**20
_PRELOADED = ["linearity_lab.jobs.uploads", "pandas", "PIL.Image"]
_DATA = ("Arrays", "BadLine", "Cleaned", "Column", "ImageEntry", "ImageFolders", "Table")
_KINDS = {"InvalidInput": InvalidInput, **{name: getattr(files, name) for name in _DATA}}


def packed(value: object) -> bytes:
    """A value as npy files, the first with its JSON: nothing that could run as code."""
    arrays: list[NDArray] = []
    text = json.dumps(value, default=partial(_plain, arrays)).encode()
    stream = io.BytesIO()
    for each in (np.frombuffer(text, np.uint8), *arrays):
        np.save(stream, each, allow_pickle=False)
    return stream.getvalue()


def unpacked(data: bytes) -> object:
    """The value, its lists as tuples; raises ``ValueError`` for anything that :func:`packed` does not write."""
    stream, arrays = io.BytesIO(data), list[NDArray]()
    try:
        while not arrays or stream.tell() < len(data):
            arrays.append(np.lib.format.read_array(stream, allow_pickle=False))
        return _with_tuples(json.loads(arrays[0].tobytes(), object_hook=partial(_value, arrays)))
    except Exception as error:  # of json, of NumPy, or of a class
        raise ValueError("no value of ours") from error


def _plain(arrays: list[NDArray], value: object) -> dict[str, object]:
    if isinstance(value, bytes | np.ndarray):
        arrays.append(np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value)
        return {"bytes" if isinstance(value, bytes) else "array": len(arrays)}  # the first is the JSON
    is_error = isinstance(value, InvalidInput)
    names = ("field", "given", "allowed") if is_error else [each.name for each in dataclasses.fields(value)]  # type: ignore[arg-type]
    return {"kind": type(value).__name__, "fields": {name: getattr(value, name) for name in names}}


def _value(arrays: list[NDArray], found: dict[str, object]) -> object:
    """What :func:`_plain` has written; any other dictionary has arrays as values."""
    match found:
        case {"bytes": int(index)}:
            return arrays[index].tobytes()
        case {"array": int(index)}:
            return arrays[index]
        case {"kind": str(name), "fields": dict(fields)}:
            return _KINDS[name](**{field: _with_tuples(value) for field, value in fields.items()})
    return found


def _with_tuples(value: object) -> object:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def answer(out: Connection, max_bytes: int, what: str, arguments: tuple) -> None:
    """Send what a file holds or its cleaned data, within this memory; nothing where that is not enough."""
    yield_to_pages()
    limit_memory(max_bytes, is_final=True)
    with out, contextlib.suppress(MemoryError, OSError):
        try:
            found: object = {"parse": files.parse_upload, "clean": files.clean_upload}[what](*arguments)  # type: ignore[operator]
        except InvalidInput as error:
            found = error
        out.send_bytes(packed(found))


class Reader:
    """Reads one file at a time, the smallest waiting one first, each in a process of its own."""

    def __init__(self, max_s: float = MAX_READING_S, max_bytes: int = MAX_READING_BYTES):
        self._max_s, self._max_bytes = max_s, max_bytes
        self._tickets, self._changed = itertools.count(), threading.Condition()
        self._waiting: list[tuple[int, int]] = []  # (bytes of the file, ticket), smallest first
        self._is_reading = False

    def ask(self, what: str, *arguments: object, size: int = 0) -> tuple[object, int]:
        """What ``parse_upload`` or ``clean_upload`` makes of the arguments, and its size in bytes.

        Args:
            size: bytes of the file, by which waiting questions are ordered.

        Raises:
            InvalidInput: what they raise, or that it takes too long or too much memory.
        """
        with self._turn(size):
            data = self._answer(what, arguments)
        try:
            found = unpacked(data)
        except ValueError:  # it has ended, or writes what is no answer
            allowed = f"one that can be read within {self._max_s:g} s and {self._max_bytes / 2**30:g} GiB of memory"
            raise InvalidInput("file", "this file", allowed) from None
        if isinstance(found, InvalidInput):
            raise found
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

    def _answer(self, what: str, arguments: tuple) -> bytes:
        """The answer of a process; empty where it gives none in time."""
        context = _context()
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=answer, args=(theirs, self._max_bytes, what, arguments), daemon=True)
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
    """What files hold and what choices make of them, read once for all sessions that upload the same bytes.

    Files of up to SMALL_BYTES do not wait for larger ones. Of all answers, the last used ``most_bytes`` are kept.
    """

    def __init__(self, most_bytes: int, small: Reader, large: Reader):
        self._most_bytes, self._small, self._large = most_bytes, small, large
        self._lock = threading.Lock()
        self._kept: OrderedDict[object, tuple[object, int]] = OrderedDict()

    def candidate(self, version: str, read: Callable[[], bytes], limits: Limits) -> Candidate:
        """What the file of this SHA-256 holds; refuses as ``parse_upload``, or what takes too long or too much."""
        found = self._answer((version, limits), read, "parse", lambda: (read(), limits))
        assert isinstance(found, Candidate)
        return found

    def cleaned(self, version: str, read: Callable[[], bytes], choices: Choices, limits: Limits) -> Cleaned:
        """What these choices make of it; refuses as ``clean_upload``, or what takes too long or too much."""
        candidate = self.candidate(version, read, limits)
        found = self._answer((version, limits, choices), read, "clean", lambda: (candidate, choices, limits))
        assert isinstance(found, Cleaned)
        return found

    def _answer(self, key: object, read: Callable[[], bytes], what: str, arguments: Callable[[], tuple]) -> object:
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
