"""Answers questions about uploaded files on stdin and stdout, within so many bytes of memory, until stdin ends."""

import os
import signal
import sys
from contextlib import suppress

from linearity_lab.jobs.wire import received, send
from ntk_core.data.uploads import clean_upload, parse_upload
from ntk_core.errors import InvalidInput

NICENESS = 10


def main(max_bytes: int) -> None:
    """Serve until stdin ends."""
    import pandas as pd  # noqa: F401  # before memory is limited
    import PIL.Image  # noqa: F401

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the server's terminal is the server's to handle
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
        os.nice(NICENESS)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with suppress(EOFError, BrokenPipeError):
        while True:
            (what, *arguments), _ = received(sys.stdin.buffer)
            try:
                answer = {"parse": parse_upload, "clean": clean_upload}[what](*arguments)  # type: ignore[operator]
            except (InvalidInput, MemoryError) as error:
                answer = error
            send(answers, answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
