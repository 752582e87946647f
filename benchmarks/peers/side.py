"""Protocol of the peers' scripts: one request per line."""

import contextlib
import ctypes
import gc
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

Found = TypeVar("Found")
Message = dict[str, Any]  # a JSON object
# The timed call, and the report on its result after the clock has stopped.
Calls = dict[str, tuple[Callable[[], object], Callable[[Any], Message]]]


def forget_peak() -> int:
    """Return resident bytes without freed blocks; the peak counts from here (Linux)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        # Glibc keeps freed blocks, which would hide the memory of the next call.
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return resident_bytes("VmRSS")


def resident_bytes(field: str) -> int:
    """Return memory of this process: ``VmRSS`` now, ``VmHWM`` at its peak."""
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0])


def timed(work: Callable[[], Found], weigh: bool) -> tuple[Found, float, int | None]:
    """Return result, wall seconds and, if weighed, added memory."""
    before = forget_peak() if weigh else None
    began = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - began
    return found, seconds, None if before is None else max(0, resident_bytes("VmHWM") - before)


def weights(
    request: Message, convert: Callable[[np.ndarray], Found], letter: str = "w"
) -> tuple[Found, list[Found]]:
    """Return inputs and weights from the file of a request."""
    with np.load(request["file"], allow_pickle=False) as arrays:
        names = sorted(
            (name for name in arrays.files if name.startswith(letter)),
            key=lambda name: int(name[1:]),
        )
        return convert(arrays["x"]), [convert(arrays[name]) for name in names]


def norm(found: object) -> Message:
    """Report the norm of an array, in double precision."""
    return {"norm": float(np.linalg.norm(np.asarray(found, np.float64)))}


def serve(prepare: dict[str, Callable[[Message], Calls]], packages: tuple[str, ...]) -> None:
    """Answer requests until stdin ends.

    ``{"what": NAME}`` prepares new calls, ``{"time": NAME, "weigh": bool}`` calls,
    ``{"packages": true}`` asks for versions.
    """
    calls: Calls = {}
    for line in sys.stdin:
        request = json.loads(line)
        if "time" in request:
            work, describe = calls[request["time"]]
            found, seconds, added = timed(work, request["weigh"])
            answer = {"s": seconds, "added_bytes": added, **describe(found)}
        elif "packages" in request:
            answer = {name: version(name) for name in packages}
        else:
            calls.clear()  # frees their arrays before new ones are made
            calls = prepare[request["what"]](request)
            answer = {"calls": list(calls)}
        print(json.dumps(answer), flush=True)
