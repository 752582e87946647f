"""Reads uploaded files in a process of its own, so that a file that takes long or much memory holds nobody else up.

In and out: values as ``linearity_lab.jobs.wire`` writes them. Start it with
``python -m linearity_lab.jobs.upload_reader``; it ends when stdin ends.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from linearity_lab.jobs.wire import received, send
from ntk_core.data.uploads import clean_upload, parse_upload
from ntk_core.errors import InvalidInput

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
        (what, *arguments), _ = question
        answer: Any
        try:
            answer = _WORK[what](*arguments)
        except (InvalidInput, MemoryError) as error:
            answer = error
        send(answers, answer)


def _stay_small() -> None:
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE))
        os.nice(NICENESS)


if __name__ == "__main__":
    main()
