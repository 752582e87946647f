"""Compute a run and report its events; Ctrl-C and SIGTERM stop it resumably."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

from linearity_lab.cli._complaints import complain
from linearity_lab.cli.run_directory import RunDirectory
from linearity_lab.exit_codes import COMPLETED, FAILED, INTERRUPTED, TERMINATED
from linearity_lab.installation import command_name
from linearity_lab.runs import Computation, Spec, check_size, run_summary, run_to_end, spec_digest
from linearity_lab.runs.events import Ended, Event, PointFailed, PointFinished, PointProgress
from linearity_lab.runs.progress_bar import terminal_bar
from linearity_lab.runs.store import Store
from ntk_core.errors import InvalidInput
from ntk_core.markup import printable
from ntk_core.numbers import percent

# Users wait or press again; senders of SIGTERM kill soon afterwards.
GRACE_S = {signal.SIGINT: 30.0, signal.SIGTERM: 5.0}
_EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


class Interruption:
    """Stop flag that a run reads between its steps.

    Attributes:
        exit_code: of the program after a signal.
        last_words: message about finished points.
    """

    def __init__(self, last_words: str):
        self.last_words = last_words
        self.exit_code = INTERRUPTED
        self._asked = False

    def __call__(self) -> bool:
        return self._asked

    def listen(self, pipe: socket.socket) -> None:
        """Record the first signal; exit at the second one, or after a grace period."""
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
            # Finished points are on disk; running computations cannot be interrupted otherwise.
            os.write(2, printable(self.last_words).encode() + b"\n")
            os._exit(self.exit_code)


@contextlib.contextmanager
def interruptible(last_words: str) -> Iterator[Interruption]:
    """Context in which signals stop the run instead of the program."""
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


_PREFIX = 12


def wants_json(chosen: bool | None) -> bool:
    """Whether to print events as JSON lines: as chosen, or if stdout is no terminal."""
    return not sys.stdout.isatty() if chosen is None else chosen


def compute(
    spec: Spec,
    directory: RunDirectory | None,
    as_json: bool,
    computation: Computation | None = None,
) -> int:
    """Run ``spec``, store its points, write its result to the directory, return the exit code."""
    if computation is None:
        check_size(spec)  # refuse before storing anything
    earlier = directory.begin(spec) if directory is not None else None
    store = Store()
    if earlier is not None:
        store.save_result(earlier, imported=True)
    again = f"`{command_name()} resume {spec_digest(spec)[:_PREFIX]}` resumes the run"
    if directory is not None or computation is not None:  # only the model file can resume its run
        again = "The same command resumes the run"
    with interruptible(f"Stopped; its finished points are kept. {again}.") as interruption:
        work = partial(
            run_to_end,
            spec,
            points=store.points(spec),
            should_stop=interruption,
            computation=computation,
        )
        try:
            ended = follow(work, as_json)
            if ended.result is not None:
                store.save_result(ended.result)
                if directory is not None:
                    directory.write(ended.result)
        except (
            InvalidInput
        ) as error:  # for example a full disk: the input was valid, the run failed
            complain(error)
            return FAILED
    if not as_json and ended.result is not None:
        print(run_summary(spec, ended.result.points))
        if ended.result.num_imported:
            complain(f"{ended.result.imported_words}.")
        if directory is None:
            complain(f"Stored as run {spec_digest(spec)[:_PREFIX]}.")
    return conclude(ended, interruption)


def conclude(ended: Ended, interruption: Interruption) -> int:
    """Report on stderr how a run ended unless completed, and return the exit code."""
    if ended.status == "completed":
        return COMPLETED
    if ended.status == "failed":
        complain(f"The run failed: {ended.reason}")
        return FAILED
    complain(interruption.last_words)
    return interruption.exit_code


class FollowedRun(Protocol):
    """A run that calls a function with each event.

    It returns the last event. ``run_to_end`` of a spec is one.
    """

    def __call__(self, *, on_event: Callable[[Event], None]) -> Ended: ...


def follow(work: FollowedRun, as_json: bool, prefix: str = "") -> Ended:
    """Run, show the events, and return the last one."""
    if as_json:
        return work(on_event=_print)
    with terminal_bar(prefix) as draw:

        def hear(event: Event) -> None:
            draw(event)
            _complain_of(event, prefix)

        return work(on_event=hear)


def _print(event: Event) -> None:
    """Print an event as a line of JSON.

    Partial points are left out, since point_finished has all of them.
    """
    if isinstance(event, PointProgress):
        event = event.model_copy(update={"point": None})
    print(event.model_dump_json(), flush=True)


def _complain_of(event: Event, prefix: str) -> None:
    """State finished points where no bar is drawn, and failed points."""
    if isinstance(event, PointFinished) and not sys.stderr.isatty():
        state = "resumed" if event.resumed else "finished"
        complain(f"{prefix}{event.key} {state}, {percent(event.fraction)}")
    elif isinstance(event, PointFailed):
        complain(f"{prefix}{event.key} failed: {event.reason}")
