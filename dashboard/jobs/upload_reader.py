"""Reads uploaded files in a process of its own, so that a file that takes long or much memory holds nobody else up.

In and out: a length of eight bytes and a pickle, between two processes of one program and one user. Start it with
``python -m dashboard.jobs.upload_reader``; it ends when stdin ends.
"""

import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from typing import IO, Any

from ntk_core.data.uploads import clean_upload, parse_upload
from ntk_core.errors import InvalidInput

LENGTH = struct.Struct(">Q")
MAX_ADDRESS_SPACE = 3 * 2**30  # libraries and the threads' stacks take most of a gibibyte of it
NICENESS = 10
_WORK: dict[str, Callable[..., Any]] = {"parse": parse_upload, "clean": clean_upload}


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the server's terminal is the server's to handle
    _stay_small()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while (question := received(sys.stdin.buffer)) is not None:
        what, *arguments = question
        answer: Any
        try:
            answer = _WORK[what](*arguments)
        except (InvalidInput, MemoryError) as error:
            answer = error
        send(answers, answer)


def send(pipe: IO[bytes], value: object) -> int:
    """Write one value; its bytes."""
    data = pickle.dumps(value, protocol=5)
    pipe.write(LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()
    return len(data)


def received(pipe: IO[bytes]) -> Any:
    """The next value; None at the end."""
    data = received_bytes(pipe)
    return None if data is None else pickle.loads(data)


def received_bytes(pipe: IO[bytes]) -> bytes | None:
    """The bytes of the next value; None at the end."""
    head = pipe.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    data = pipe.read(size)
    return data if len(data) == size else None


def _stay_small() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
        os.nice(NICENESS)


if __name__ == "__main__":
    main()
