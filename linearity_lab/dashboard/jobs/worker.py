"""A worker process that computes specs sequentially, and the server's side of each computation."""

import contextlib
import logging
import math
import os
import signal
import time
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import psutil
from pebble import ProcessExpired

from linearity_lab.dashboard.jobs._process import LivePool, limit_memory, prepare_child
from linearity_lab.dashboard.jobs.profile import error_text
from linearity_lab.runs import PRESETS, parse_spec, run_to_end
from linearity_lab.runs.compiled_code import keep_compiled_code, release_compiled
from linearity_lab.runs.events import (
    Cause,
    Ended,
    Event,
    PointFailed,
    PointFinished,
    PointProgress,
    parse_event,
)
from linearity_lab.runs.store import VARIABLE, RunTooLarge, Store
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from ntk_core.errors import InvalidInput, failure
from ntk_core.numbers import size

# The system refuses memory beyond the job's limit plus this margin; the server ends a
# job over its limit.
BURST_BYTES = 2**29
MESSAGE_MARGIN = 2**16  # for the rest of a message whose point has just the allowed size
# A worker that is asked to end a preview has this time; programs compile for up to as long. A new
# worker takes three seconds to import JAX and loses its compiled programs. Our choice.
GRACE_S = 5.0
_LOG = logging.getLogger(__name__)


def start(store: str, is_quiet: bool) -> None:
    """Prepare the process: low priority, JAX imported, usual programs compiled."""
    prepare_child()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # pebble's handler would wait for compiled code
    os.environ.update({VARIABLE: store, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    if is_quiet:
        silent = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silent, stream)
    keep_compiled_code()
    try:
        warm_up()
    except Exception:
        _LOG.exception("The worker could not warm up.")


def warm_up() -> None:
    """Compile the draws of weights, and the first points of *Kernel* and *Explore*."""
    from ntk_core.networks.architectures import compile_draws

    compile_draws()
    for preset in (next(iter(PRESETS.values())), PRESETS["explore"]):
        first = getattr(preset.spec, preset.spec.swept_field)[:1]
        small = {preset.spec.swept_field: first, "num_seeds": 1, "training.max_steps": 1}
        run_to_end(with_settings(preset.spec, small), scheduler="")


def compute(
    spec_json: str, out: Connection, max_bytes: float, max_result_bytes: float = math.inf
) -> None:
    """Compute a spec and send its events as JSON, with ``Ended`` as the last one.

    Messages contain neither the arrays that the store keeps beside a point, nor points again in
    ``Ended``.

    Args:
        out: pipe for events, after a first message ``pid resident_bytes``. A message from the
            server ends the run.
        max_bytes: memory limit of the job.
        max_result_bytes: limit of all finished points in messages; beyond it the run
            ends as ``stopped``.
    """
    with out, contextlib.suppress(_NoListener):  # the job was stopped
        outbox = Outbox(out.send_bytes, max_result_bytes)
        outbox.start()
        limit_memory(max_bytes + BURST_BYTES)
        try:
            follow(spec_json, max_bytes, outbox.send, should_stop=out.poll)
        finally:
            limit_memory(math.inf)
    release_compiled()


def follow(
    spec_json: str,
    max_bytes: float,
    hear: Callable[[Event], object],
    *,
    should_stop: Callable[[], bool] | None = None,
) -> None:
    """Run a spec and pass its events to ``hear``; the last one is always ``Ended``."""
    out_of_memory = Ended(status="stopped", reason=over_memory(max_bytes), cause=Cause.OVER_MEMORY)

    def keep_and_hear(event: Event) -> None:
        if isinstance(event, Ended) and event.result is not None:
            store.save_result(event.result)
        hear(event)
        is_over = isinstance(event, PointFailed) and event.cause is Cause.OVER_MEMORY
        if is_over and max_bytes < math.inf:
            raise EndsEarly(out_of_memory)

    try:
        spec = parse_spec(spec_json)
        store = Store()
        points = store.points(spec, of_job=True)
        run_to_end(spec, on_event=keep_and_hear, points=points, should_stop=should_stop)
        return
    except _NoListener:
        raise
    except EndsEarly as end:
        ended = end.event
    except RunTooLarge as error:
        ended = Ended(status="stopped", reason=f"over size: {error}", cause=Cause.OVER_SIZE)
    except InvalidSpec as error:
        first = str(error.problems[0])
        ended = Ended(status="failed", reason=first, cause=Cause.INVALID_INPUT)
    except InvalidInput as error:
        ended = Ended(status="failed", reason=error_text(error), cause=Cause.INVALID_INPUT)
    except MemoryError:
        ended = out_of_memory
    except Exception as error:
        _LOG.exception("A run failed.")
        reason = f"the computation failed ({failure(error)})"
        ended = Ended(status="failed", reason=reason, cause=Cause.ERROR)
    hear(ended)


class EndsEarly(Exception):
    """Ends a run from its listener; ``event`` replaces the run's last event."""

    def __init__(self, event: Ended):
        super().__init__(event.reason)
        self.event = event


class _NoListener(Exception):
    """The server has closed its end of the pipe."""


class Outbox:
    """Sends events as JSON, until the finished points exceed ``most`` bytes together."""

    def __init__(self, send: Callable[[bytes], object], most: float):
        self._send_bytes = send
        self._most = most
        self._num_bytes = 0  # of finished points

    def start(self) -> None:
        """Send the first message: process id and resident memory."""
        self._send(f"{os.getpid()} {psutil.Process().memory_info().rss}".encode())

    def send(self, event: Event) -> None:
        """Send an event.

        Raises:
            EndsEarly: if the event or all finished points together are too large.
        """
        message = _light(event).model_dump_json().encode()
        if isinstance(event, PointProgress) and len(message) > self._most:
            # A partial point only helps to draw; the finished one decides.
            message = event.model_copy(update={"point": None}).model_dump_json().encode()
        needed = len(message)
        if isinstance(event, PointFinished):
            needed += self._num_bytes
        if needed > self._most:
            reason = over_size(needed, self._most)
            raise EndsEarly(Ended(status="stopped", reason=reason, cause=Cause.OVER_SIZE))
        if isinstance(event, PointFinished):
            self._num_bytes = needed
        self._send(message)

    def _send(self, message: bytes) -> None:
        try:
            self._send_bytes(message)
        except OSError as error:
            raise _NoListener from error


def _light(event: Event) -> Event:
    """Return an event without large arrays.

    The last event also has no points, which were sent before.
    """
    if isinstance(event, PointFinished):
        return event.model_copy(update={"point": event.point.apart()[0]})
    if isinstance(event, PointProgress) and event.point is not None:
        return event.model_copy(update={"point": event.point.apart()[0]})
    if isinstance(event, Ended) and event.result is not None:
        return event.model_copy(update={"result": event.result.model_copy(update={"points": ()})})
    return event


def over_size(num_bytes: float, most: float) -> str:
    """Return the reason of a job that was ended for the size of its result."""
    return f"over size: its result takes at least {size(num_bytes)}, {size(most)} allowed"


def over_memory(max_bytes: float) -> str:
    """Return the reason of a job that was ended for its memory."""
    return f"over memory: {max_bytes / 2**30:.3g} GiB allowed"


class WorkerComputation:
    """The server's view of one spec in a worker.

    Attributes:
        reader: end of the worker's pipe; readable if there is a message to :meth:`receive`.
        pid: process id of the worker, None before its start.
        max_bytes: memory limit.
        max_result_bytes: limit of one message.
        num_bytes: size of the last message.
        is_oversized: whether a message exceeded the limit; the pipe is then closed.
    """

    def __init__(
        self, pool: LivePool, spec_json: str, max_bytes: float, max_result_bytes: int = 2**30
    ):
        self.reader, self._writer = Pipe()
        self._kill_at = math.inf
        self.max_bytes = max_bytes
        self._bytes_at_start = 0
        self.max_result_bytes = max_result_bytes
        self.num_bytes = 0
        self.is_oversized = False
        self.pid: int | None = None
        self._process: psutil.Process | None = None
        self._future = pool.schedule(
            compute, (spec_json, self._writer, max_bytes, max_result_bytes)
        )

    def receive(self) -> Event | None:
        """Return the next event; None for a worker's first message, and after its end."""
        try:
            message = self.reader.recv_bytes(self.max_result_bytes + MESSAGE_MARGIN)
        except EOFError:
            self.reader.close()
            return None
        except OSError:
            # The length stated by the worker is refused before its bytes are read. Compliant
            # workers end before.
            self.is_oversized = True
            self.reader.close()
            return None
        self.num_bytes = len(message)
        if self.pid is not None:
            return parse_event(message)
        self.pid, self._bytes_at_start = map(int, message.split())
        self._writer.close()  # only the worker's end keeps the pipe open
        return None

    def is_over(self) -> bool:
        """Whether nothing more will come from this computation.

        Its worker has finished and all events are received, or no worker could start it.
        """
        if self.pid is None and self._future.done() and not self.reader.poll():
            self.reader.close()
        return self.reader.closed and self._future.done()

    def grown_bytes(self) -> int:
        """Resident memory of the worker above its memory at the start of the computation."""
        with contextlib.suppress(psutil.Error):
            if self.pid is not None:
                self._process = self._process or psutil.Process(self.pid)
                return int(self._process.memory_info().rss) - self._bytes_at_start
        return 0

    def ask_to_end(self) -> None:
        """Let the worker end this computation at its next report.

        Also keep its compiled programs.
        """
        if self.pid is None:  # no worker has begun it
            self.kill()
            return
        self._kill_at = time.monotonic() + GRACE_S
        with contextlib.suppress(OSError):  # it has just ended
            self.reader.send_bytes(b"end")

    @property
    def is_ending(self) -> bool:
        """Whether the worker was asked to end this computation and has not yet."""
        return self._kill_at < math.inf

    def kill_if_late(self) -> None:
        """Kill the worker if it was asked to end and has not."""
        if time.monotonic() > self._kill_at and not self._future.done():
            self.kill()

    def kill(self) -> None:
        """End the computation and its worker; pebble starts another one."""
        self._future.cancel()

    def death(self) -> str:
        """Describe in one clause why the worker ended."""
        error = None if self._future.cancelled() else self._future.exception()
        if self.pid is None or not isinstance(error, ProcessExpired):
            return "the worker process has ended"
        name = (
            signal.Signals(-error.exitcode).name
            if error.exitcode < 0
            else f"exit status {error.exitcode}"
        )
        memory = ", most often because memory ran out" if error.exitcode == -signal.SIGKILL else ""
        return f"the worker process crashed ({name}){memory}"
