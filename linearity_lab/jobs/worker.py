"""A worker process: warm up, then compute one spec after another and send the events of each.

Started by pebble; it ends with its server.
"""

import contextlib
import logging
import math
import os
import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection

import psutil

from linearity_lab.jobs._process import limit_memory, prepare_child
from linearity_lab.jobs.profile import error_text
from ntk_core.errors import InvalidInput
from ntk_core.runs import PRESETS, parse_spec, run
from ntk_core.runs.compiled_code import keep_compiled_code
from ntk_core.runs.events import Ended, Event, PointFailed, event_json
from ntk_core.runs.store import VARIABLE, Store
from ntk_core.settings.grammar import InvalidSpec, with_settings

# A worker that has kept more than this after a job is replaced by the spare one, which is warm already.
MAX_GROWN_BYTES = 400 * 2**20
# The system refuses memory beyond the job's budget and this; the server ends a job that is over its budget.
BURST_BYTES = 2**29
OUT_OF_MEMORY = "ran out of memory"  # in the reasons of ntk_core.runs
_LOG = logging.getLogger(__name__)
_bytes_when_warm = 0


def start(store: str, is_quiet: bool) -> None:
    """Prepare the process: low priority, JAX imported, the first point of the first figure compiled."""
    global _bytes_when_warm
    prepare_child()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # pebble's handler would wait for compiled code
    os.environ.update({VARIABLE: store, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
    if is_quiet:
        silent = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(silent, stream)
    keep_compiled_code()
    _warm_up()
    _bytes_when_warm = _resident_bytes()


def compute(spec_json: str, out: Connection, max_bytes: float) -> None:
    """Compute a spec and send its events as JSON, an ``Ended`` event last.

    Args:
        out: gets ``pid resident_bytes`` first.
        max_bytes: memory that the job may take.
    """
    with out, contextlib.suppress(OSError):  # no listener: the job was stopped before it started
        out.send_bytes(f"{os.getpid()} {_resident_bytes()}".encode())
        limit_memory(max_bytes + BURST_BYTES)
        try:
            for event in _events(spec_json, max_bytes):
                out.send_bytes(event_json(event).encode())
        finally:
            limit_memory(math.inf)
    if _resident_bytes() - _bytes_when_warm > MAX_GROWN_BYTES:
        os._exit(1)


def over_memory(max_bytes: float) -> str:
    """The reason of a job that was ended for its memory."""
    return f"over memory: {max_bytes / 2**30:.3g} GiB allowed"


def _events(spec_json: str, max_bytes: float) -> Iterator[Event]:
    """The events of a run; whatever happens, the last one is ``Ended``."""
    try:
        spec, store = parse_spec(spec_json), Store()
        for event in run(spec, points=store.points(spec)):
            if isinstance(event, Ended) and event.result is not None:
                store.save_result(event.result)
            yield event
            if isinstance(event, PointFailed) and OUT_OF_MEMORY in event.reason and max_bytes < math.inf:
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
        yield Ended(status="failed", reason=f"the computation failed ({type(error).__name__}: {text[:200]})")


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _warm_up() -> None:
    """Import JAX and compile the first point of the first figure, so that it appears quickly."""
    try:
        figure = next(iter(PRESETS.values())).spec
        first = getattr(figure, figure.swept_field)[:1]
        for _ in run(with_settings(figure, {figure.swept_field: first, "training.max_steps": 1}), scheduler=""):
            pass
    except Exception:
        _LOG.exception("The worker could not warm up.")
