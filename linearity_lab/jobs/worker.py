"""A worker process that computes specs sequentially, and the server's side of each computation."""

import contextlib
import logging
import math
import os
import signal
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import psutil
from pebble import ProcessExpired

from linearity_lab.jobs._process import LivePool, limit_memory, prepare_child
from linearity_lab.jobs.profile import error_text
from ntk_core.errors import InvalidInput
from ntk_core.runs import PRESETS, parse_spec, run
from ntk_core.runs.compiled_code import keep_compiled_code, release_compiled
from ntk_core.runs.events import Ended, Event, PointFailed, parse_event
from ntk_core.runs.store import VARIABLE, Store
from ntk_core.settings.grammar import InvalidSpec, with_settings

# The system refuses memory beyond the job's limit plus this margin; the server ends a job over its limit.
BURST_BYTES = 2**29
OUT_OF_MEMORY = "ran out of memory"  # in the reasons of ntk_core.runs
_LOG = logging.getLogger(__name__)


def start(store: str, is_quiet: bool) -> None:
    """Prepare the process: low priority, JAX imported, the first point of the first figure compiled."""
    prepare_child()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # pebble's handler would wait for compiled code
    os.environ.update({VARIABLE: store, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    if is_quiet:
        silent = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silent, stream)
    keep_compiled_code()
    try:
        figure = next(iter(PRESETS.values())).spec
        first = getattr(figure, figure.swept_field)[:1]
        for _ in run(
            with_settings(figure, {figure.swept_field: first, "training.max_steps": 1}),
            scheduler="",
        ):
            pass
    except Exception:
        _LOG.exception("The worker could not warm up.")


def compute(spec_json: str, out: Connection, max_bytes: float) -> None:
    """Compute a spec and send its events as JSON, with ``Ended`` as the last one.

    Args:
        out: pipe for events, after a first message ``pid resident_bytes``.
        max_bytes: memory limit of the job.
    """
    with out, contextlib.suppress(OSError):  # no listener: the job was stopped before it started
        out.send_bytes(f"{os.getpid()} {psutil.Process().memory_info().rss}".encode())
        limit_memory(max_bytes + BURST_BYTES)
        try:
            for event in _events(spec_json, max_bytes):
                out.send_bytes(event.model_dump_json().encode())
        finally:
            limit_memory(math.inf)
    release_compiled()


def over_memory(max_bytes: float) -> str:
    """Return the reason of a job that was ended for its memory."""
    return f"over memory: {max_bytes / 2**30:.3g} GiB allowed"


def _events(spec_json: str, max_bytes: float) -> Iterator[Event]:
    """Yield the events of a run; the last one is always ``Ended``."""
    try:
        spec, store = parse_spec(spec_json), Store()
        for event in run(spec, points=store.points(spec)):
            if isinstance(event, Ended) and event.result is not None:
                store.save_result(event.result)
            yield event
            if (
                isinstance(event, PointFailed)
                and OUT_OF_MEMORY in event.reason
                and max_bytes < math.inf
            ):
                yield Ended(status="stopped", reason=over_memory(max_bytes))
                return
    except InvalidSpec as error:
        yield Ended(status="failed", reason=str(error).splitlines()[0])
    except InvalidInput as error:
        yield Ended(status="failed", reason=error_text(error))
    except MemoryError:
        yield Ended(status="stopped", reason=over_memory(max_bytes))
    except Exception as error:
        _LOG.exception("A run failed.")
        text = (str(error).strip().splitlines() or ["no message"])[0]
        yield Ended(
            status="failed", reason=f"the computation failed ({type(error).__name__}: {text[:200]})"
        )


class Computation:
    """The server's view of one spec in a worker.

    Attributes:
        reader: end of the worker's pipe; readable if there is a message to :meth:`receive`.
        pid: process id of the worker, None before its start.
        max_bytes: memory limit.
    """

    def __init__(self, pool: LivePool, spec_json: str, max_bytes: float):
        self.reader, self._writer = Pipe(duplex=False)
        self.max_bytes, self._bytes_at_start = max_bytes, 0
        self.pid: int | None = None
        self._process: psutil.Process | None = None
        self._future = pool.schedule(compute, (spec_json, self._writer, max_bytes))

    def receive(self) -> Event | None:
        """Return the next event; None for a worker's first message, and after its end."""
        try:
            message = self.reader.recv_bytes()
        except (EOFError, OSError):
            self.reader.close()
            return None
        if self.pid is not None:
            return parse_event(message)
        self.pid, self._bytes_at_start = map(int, message.split())
        self._writer.close()  # only the worker's end keeps the pipe open
        return None

    def is_over(self) -> bool:
        """Whether its worker has finished and all events are received, or no worker could start it."""
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
