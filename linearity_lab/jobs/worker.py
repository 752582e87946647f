"""A worker process: computes one spec after another, told by JSON lines on stdin, telling by JSON lines on stdout.

In: ``{"run": spec}``, ``{"stop": true}``. Out: ``{"kind": "ready"}`` once, then the events of each run. The process
ends when stdin ends, so it never outlives its server. Start it with ``python -m linearity_lab.jobs.worker``.
"""

import json
import logging
import os
import queue
import signal
import sys
import threading
from typing import IO

from linearity_lab.jobs.faults import told
from ntk_core.errors import InvalidInput
from ntk_core.runs import PRESETS, Spec, parse_spec, run
from ntk_core.runs.compiled_code import keep_compiled_code
from ntk_core.runs.events import Ended, event_json
from ntk_core.runs.store import Store
from ntk_core.runs.unfinished import keep_unfinished
from ntk_core.settings.grammar import InvalidSpec, with_settings

READY = '{"kind": "ready"}'
NICENESS = 15
_LOG = logging.getLogger(__name__)


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the server's terminal is the server's to handle
    _lower_priority()
    out = _reserve_stdout()
    keep_compiled_code()
    keep_unfinished()
    specs: queue.SimpleQueue[Spec | InvalidSpec] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(specs, stop), daemon=True).start()
    _warm_up()
    _say(out, READY)
    store = Store()
    while True:
        spec = specs.get()
        if isinstance(spec, InvalidSpec):
            _say_failed(out, str(spec).splitlines()[0])
        else:
            _compute(spec, store, stop, out)


def _compute(spec: Spec, store: Store, stop: threading.Event, out: IO[str]) -> None:
    """One run; whatever happens, its last line is an ``Ended`` event."""
    try:
        for event in run(spec, points=store.points(spec), should_stop=stop.is_set):
            if isinstance(event, Ended) and event.result is not None:
                store.save_result(event.result)
            _say(out, event_json(event))
    except InvalidInput as error:
        _say_failed(out, told(error))
    except MemoryError:
        _say_failed(out, "the computation ran out of memory; choose smaller widths or fewer seeds")
    except Exception as error:
        _LOG.exception("A run failed.")
        text = (str(error).strip().splitlines() or ["no message"])[0]
        _say_failed(out, f"the computation failed ({type(error).__name__}: {text[:200]})")


def _say_failed(out: IO[str], reason: str) -> None:
    _say(out, event_json(Ended(status="failed", reason=reason)))


def _listen(specs: queue.SimpleQueue[Spec | InvalidSpec], stop: threading.Event) -> None:
    """Read commands while the main thread computes."""
    for line in sys.stdin.buffer:
        command = json.loads(line)
        if "run" in command:
            stop.clear()  # a stop that came too late for the run before must not end this one
            try:
                specs.put(parse_spec(command["run"]))
            except InvalidSpec as error:
                specs.put(error)
        elif "stop" in command:
            stop.set()
    os._exit(0)  # the server is gone; finished points are in the store already


def _say(out: IO[str], line: str) -> None:
    try:
        out.write(line + "\n")
        out.flush()
    except OSError:
        os._exit(0)


def _reserve_stdout() -> IO[str]:
    """The pipe to the server, for our lines only: whatever else is printed, by C code too, goes to stderr."""
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return pipe


def _lower_priority() -> None:
    # Pages must answer while workers fill every core. On Windows the server asks for it when it starts the process.
    if sys.platform != "win32":
        os.nice(NICENESS)


def _warm_up() -> None:
    """Import JAX and compile the first point of the first figure, so that it comes at once when asked for."""
    try:
        figure = next(iter(PRESETS.values())).spec
        first = getattr(figure, figure.swept_field)[:1]
        for _ in run(with_settings(figure, {figure.swept_field: first, "training.max_steps": 1}), scheduler=""):
            pass
    except Exception:
        _LOG.exception("The worker could not warm up.")


if __name__ == "__main__":
    main()
