"""Compute points on the workers of a dask cluster; this process submits, listens and stores.

Dask nodes must trust each other, since they unpickle messages (docs/cluster.md). Client and workers
run the same versions.
"""

import contextlib
import math
import platform
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from functools import lru_cache
from importlib import metadata
from typing import Any

from distributed import Client, Future, KilledWorker, get_worker

from linearity_lab.environment import environment_settings
from linearity_lab.memory import memory_limit
from linearity_lab.runs._estimate import check_data
from linearity_lab.runs._parse import canonical_json, parse_spec
from linearity_lab.runs._spec import Spec
from linearity_lab.runs._table import counts_of
from linearity_lab.runs._this_process import Report, SiteFailure, ThisProcess
from linearity_lab.runs.costs import peak_bytes
from linearity_lab.runs.events import (
    Cause,
    PointFailed,
    PointFinished,
    PointProgress,
    PointStarted,
    parse_event,
)
from ntk_core._version import __version__
from ntk_core.errors import InvalidInput
from ntk_core.numbers import size
from ntk_core.progress import Stopped

# Limits for the scheduler to connect, answer, and close.
CONNECT_S = 10.0
ANSWER_S = 30.0
CLOSE_S = 2.0
# Between two counts of workers; between two checks for Stop.
CENSUS_EVERY_S = 1.0
LOOK_EVERY_S = 0.02
TOPIC = "linearity-lab"  # shared by all runs: the scheduler keeps the last messages of every topic
# A partial point may have thousands of numbers.
MESSAGES_EVERY_S = 0.2
CURVES_EVERY_S = 1.0
_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "optax", "pydantic", "dask", "distributed")


class Cluster:
    """The workers of the dask scheduler at ``address``."""

    provenance = None  # each point records the device of its worker

    def __init__(self, spec: Spec, address: str):
        self._spec = canonical_json(spec)
        self._address = address
        self._run = uuid.uuid4().hex
        self._heard: queue.SimpleQueue[PointProgress] = queue.SimpleQueue()

    def compute(self, keys: Sequence[str], hear: Callable[[Report | None], None]) -> None:
        """Compute these points in parallel on all worker threads.

        An exception of ``hear`` stops the work.

        ``hear`` gets None at regular intervals without news.

        Raises:
            SiteFailure: if the cluster is or becomes unusable.
        """
        try:
            client = Client(
                self._address, timeout=CONNECT_S, set_as_default=False, heartbeat_interval=2000
            )
        except (OSError, TimeoutError):
            failure = f"No dask scheduler answers at {self._address} within {CONNECT_S:.0f} s."
            raise SiteFailure(failure) from None
        try:
            client.subscribe_topic(TOPIC, self._hear)
            self._points(client, deque(keys), hear)
        finally:  # this cancels the remaining points; workers stop at their next check
            threading.Thread(target=_close, args=(client,), daemon=True).start()

    def _points(
        self, client: Client, waiting: deque[str], hear: Callable[[Report | None], None]
    ) -> None:
        """Compute every point, at most one per thread at a time.

        The death of a worker counts against each of its points, so points do not queue on a worker.
        """
        computing: dict[str, Future] = {}
        patience = environment_settings().worker_wait_s
        num_threads = 0
        asked = -math.inf
        at_work = time.monotonic()
        while waiting or computing:
            now = time.monotonic()
            if now - asked > (CENSUS_EVERY_S if num_threads else LOOK_EVERY_S):
                num_threads = self._num_threads(client)
                asked = now
                at_work = now if num_threads else at_work
                if now - at_work > patience:
                    raise SiteFailure(
                        f"The scheduler at {self._address} has had no worker for {patience:.0f} s; "
                        f"start workers with: dask worker {self._address} --nthreads 1"
                    )
            while waiting and len(computing) < num_threads:
                key = waiting.popleft()
                request = (self._run, key, self._spec, conditions())
                name = f"{TOPIC}-{self._run}-{key}"
                computing[key] = client.submit(compute_point, *request, key=name, pure=False)
                hear(PointStarted(key=key))
            try:
                report = self._heard.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                hear(None)
            else:
                at_work = time.monotonic()
                if report.key in computing:  # progress may arrive after the answer
                    hear(report)
            for key in [key for key, future in computing.items() if future.done()]:
                at_work = time.monotonic()
                hear(self._answer(key, computing.pop(key)))

    def _answer(self, key: str, future: Future) -> PointFinished | PointFailed:
        try:
            found: PointFinished | PointFailed = future.result()
            return found
        except KilledWorker as killed:
            reason = (
                f"its worker died {killed.allowed_failures + 1} times while computing it (out "
                "of memory?)"
            )
            return PointFailed(key=key, reason=reason, cause=Cause.WORKER_DIED)
        except CancelledError:
            raise self._lost() from None
        except (InvalidInput, SiteFailure) as error:
            raise SiteFailure(str(error)) from None
        except Exception as error:  # the worker could not start, for example without a module
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            raise SiteFailure(
                f"A worker of {self._address} could not compute the point ({reason})."
            ) from None

    def _hear(self, event: tuple[object, Mapping[str, str]]) -> None:
        """Record a worker's message; ignore messages of other runs."""
        _, message = event
        if message["run"] == self._run:
            report = parse_event(message["event"])
            assert isinstance(report, PointProgress)
            self._heard.put(report)

    def _num_threads(self, client: Client) -> int:
        scheduler: Any = client.scheduler
        with contextlib.suppress(OSError, TimeoutError):
            if client.status == "running":
                return sum(
                    client.sync(scheduler.ncores_running, callback_timeout=ANSWER_S).values()
                )
        raise self._lost()

    def _lost(self) -> SiteFailure:
        return SiteFailure(
            f"The dask scheduler at {self._address} was lost; finished points are kept, and the "
            "same run resumes."
        )


def _close(client: Client) -> None:
    with contextlib.suppress(TimeoutError, OSError, RuntimeError):
        client.close(CLOSE_S)


def conditions() -> dict[str, str]:
    """Return versions and floating-point type, which client and workers must share."""
    import jax

    return {
        "linearity-lab": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: metadata.version(name) for name in _PACKAGES},
        "floating-point type": "float64" if jax.config.read("jax_enable_x64") else "float32",
    }


def compute_point(
    run: str, key: str, spec_json: str, expected: dict[str, str]
) -> PointFinished | PointFailed:
    """Compute a point in a thread of a dask worker.

    Args:
        run: names the run in the messages.
        expected: the client's :func:`conditions`.

    Raises:
        SiteFailure: if every point of the run is refused, or no client waits for it.
        InvalidInput: if the data are not available on the worker.
    """
    others = [
        f"{name} {expected.get(name)} (client) and {ours} (worker)"
        for name, ours in conditions().items()
        if ours != expected.get(name)
    ]
    if others:
        raise SiteFailure(f"The cluster computes with other versions: {', '.join(others)}.")
    spec = parse_spec(spec_json)
    check_data(spec)
    required = peak_bytes(counts_of(spec, key))
    available = memory_limit()
    if required > available:
        reason = (
            f"it needs about {size(required)} and {size(available)} are available on its worker"
        )
        return PointFailed(key=key, reason=reason, cause=Cause.DOES_NOT_FIT)
    worker = get_worker()
    task = worker.get_current_task()
    sent = -math.inf
    answers: list[PointFinished | PointFailed] = []

    def hear(report: Report | None) -> None:
        nonlocal sent
        if isinstance(report, PointFinished | PointFailed):
            answers.append(report)
            return
        pause_s = MESSAGES_EVERY_S if getattr(report, "point", None) is None else CURVES_EVERY_S
        if isinstance(report, PointProgress) and time.monotonic() - sent >= pause_s:
            sent = time.monotonic()
            worker.log_event(TOPIC, {"run": run, "event": report.model_dump_json()})
        # Cancelled tasks, and those of a client that has died, are no longer executing.
        if task not in worker.state.tasks or worker.state.tasks[task].state != "executing":
            raise Stopped

    try:
        _here(spec_json).compute([key], hear)
    except Stopped:
        raise SiteFailure("A worker was stopped by another client.") from None
    return answers[0]


@lru_cache(maxsize=1)
def _here(spec: str) -> ThisProcess:
    """Load the data of the current run once per worker."""
    return ThisProcess(parse_spec(spec))
