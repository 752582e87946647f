"""Ctrl-C and SIGTERM: the run stops after the step at hand, or after a grace in any case, and can be resumed.

Python runs its signal handlers only between two of its own instructions, and compiling a network can take minutes
without one. So the signal is heard through a pipe, by a thread.
"""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator

from ntk_core.cli._terminal import INTERRUPTED, TERMINATED, printable

# A person waits, or presses again; what sends SIGTERM kills soon after it.
GRACE_S = {signal.SIGINT: 30.0, signal.SIGTERM: 5.0}
_EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Interruption:
    """Asked by the run between its steps: whether it is to stop.

    Attributes:
        exit_code: of the program, once it has been asked to stop.
        last_words: what can be done with what is finished.
    """

    def __init__(self, last_words: str):
        self.last_words = last_words
        self.exit_code = INTERRUPTED
        self._asked = False

    def __call__(self) -> bool:
        return self._asked

    def listen(self, pipe: socket.socket) -> None:
        """Note the first signal; end the program at the second one, or when it has not ended in time."""
        with contextlib.suppress(OSError):
            first = pipe.recv(1)
            if not first:  # the run has ended
                return
            number = signal.Signals(first[0])
            self.exit_code = _EXIT_CODES[number]
            self._asked = True
            os.write(2, b"\nStopping after this step; Ctrl-C again stops immediately.\n")
            pipe.settimeout(GRACE_S[number])
            try:
                if not pipe.recv(1):
                    return
            except TimeoutError:
                pass
            # Every finished point is on the disk; what computes cannot be ended in another way.
            os.write(2, printable(self.last_words).encode() + b"\n")
            os._exit(self.exit_code)


@contextlib.contextmanager
def interruptible(last_words: str) -> Iterator[Interruption]:
    """Inside, signals ask the run to stop instead of ending the program."""
    interruption = Interruption(last_words)
    ours, pipe = socket.socketpair()
    pipe.setblocking(False)
    thread = threading.Thread(target=interruption.listen, args=(ours,), daemon=True)
    before = {number: signal.signal(number, lambda *_: None) for number in GRACE_S}
    wakeup = signal.set_wakeup_fd(pipe.fileno(), warn_on_full_buffer=False)
    thread.start()
    try:
        yield interruption
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        pipe.close()
        thread.join()
        ours.close()
