"""Points computed by the workers of a dask cluster; this process only asks, listens and keeps.

Dask connects nodes that trust each other (it unpickles what they send). What is sent here is the canonical JSON of a
spec and the key of a point, and what is used of the answer is JSON again (docs/cluster.md).
"""

import asyncio
import contextlib
import logging
import queue
import threading
import time
import uuid
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, KilledWorker
from distributed.versions import VersionMismatchWarning

from ntk_core.environment import settings
from ntk_core.runs._cluster_point import DASK, TOPIC, Message, Reply, Request, compute_point, conditions, different
from ntk_core.runs._parse import canonical_json
from ntk_core.runs._sites import Advanced, Failed, Finished, Report, SiteFailure, Started
from ntk_core.runs._spec import Spec
from ntk_core.runs._values import Provenance

CONNECT_S = 10.0
ANSWER_S = 30.0  # a scheduler that says nothing for this long is lost
CENSUS_EVERY_S = 1.0
LOOK_EVERY_S = 0.02  # for Stop
CLOSE_S = 2.0
LEAVE_S = 0.05  # a job gives its worker process 0.15 s to stop; closing goes on by itself, and ends with the process
_LOG = logging.getLogger(__name__)


class Cluster:
    """The workers of the dask scheduler at ``address``."""

    def __init__(self, spec: Spec, address: str):
        self._spec, self._address = spec, address

    def reports(self, keys: Sequence[str]) -> Generator[Report | None, None, None]:
        """As :meth:`ntk_core.runs._sites.Site.reports`; as many points at once as the workers have threads."""
        conversation = _ClusterRun(self._spec, self._address, keys)
        conversation.start()
        try:
            while True:
                try:
                    told = conversation.told.get(timeout=LOOK_EVERY_S)
                except queue.Empty:
                    told = ()
                if told is None:
                    return
                if isinstance(told, SiteFailure):
                    raise told
                yield told or None
        finally:
            conversation.end()

    def provenance(self) -> Provenance | None:
        """None: each point tells on which worker's device it was computed."""
        return None


class _ClusterRun(threading.Thread):
    """Talks with the scheduler in a thread and an event loop of its own; every wait in it has an end.

    Attributes:
        told: reports; a failure; None at the end.
    """

    def __init__(self, spec: Spec, address: str, keys: Sequence[str]):
        super().__init__(name="dask client", daemon=True)
        self.told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._spec, self._address, self._keys = canonical_json(spec), address, keys
        self._run, self._conditions = uuid.uuid4().hex, conditions()
        self._begun: set[str] = set()
        self._done: set[str] = set()
        self._num_threads = 0
        self._heard = time.monotonic()  # when a worker was last known to work
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._ready = threading.Event()

    def run(self) -> None:
        """The thread's own: until every point is done, or :meth:`end`."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._talk())
        except SiteFailure as failure:
            self.told.put(failure)
        except asyncio.CancelledError:
            pass
        except Exception as error:
            _LOG.exception("Computing on the cluster failed.")
            self.told.put(SiteFailure(f"Computing on the cluster failed ({type(error).__name__}: {error})."))
        finally:
            self._ready.set()
            self.told.put(None)

    def end(self) -> None:
        """Give up what is not done: the workers stop at their next look."""
        self._ready.wait(LEAVE_S)
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())
        self.join(LEAVE_S)

    async def _talk(self) -> None:
        self._task = asyncio.current_task()
        self._ready.set()
        client = await self._connect()
        try:
            await self._compare_versions(client)
            client.subscribe_topic(TOPIC, self._hear)
            await self._compute(client)
        finally:
            await _close(client)

    async def _connect(self) -> Client:
        client = Client(
            self._address, asynchronous=True, timeout=CONNECT_S, set_as_default=False, heartbeat_interval=2000
        )
        try:
            return await asyncio.wait_for(client, CONNECT_S)
        except (OSError, TimeoutError):
            reason = f"No dask scheduler answers at {self._address} within {CONNECT_S:.0f} s."
        except (ImportError, VersionMismatchWarning) as error:
            reason = f"The scheduler at {self._address} runs other versions: {' '.join(str(error).split())}"
        await _close(client)
        raise SiteFailure(reason)

    async def _compare_versions(self, client: Client) -> None:
        """With the scheduler; each worker compares for itself, also one that comes later."""
        told = await self._asked(client, "versions")
        theirs = {name: str(told["packages"].get(name)) for name in DASK}
        differences = different({name: self._conditions[name] for name in DASK}, theirs, "here", "scheduler")
        if differences:
            raise SiteFailure(f"The scheduler at {self._address} runs other versions: {differences}.")

    async def _compute(self, client: Client) -> None:
        """Every point, no more at a time than there are threads.

        A worker that dies counts against each point that was given to it, so none waits there behind another.
        """
        waiting = deque(self._keys)
        census = asyncio.create_task(self._census(client))
        computing: set[asyncio.Task[None]] = set()
        try:
            while waiting or computing:
                while waiting and len(computing) < self._num_threads:
                    computing.add(asyncio.create_task(self._point(client, waiting.popleft())))
                done, _ = await asyncio.wait(
                    {census, *computing}, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                )
                computing -= done
                for task in done:
                    task.result()
        finally:
            for task in (census, *computing):
                task.cancel()
            await asyncio.gather(census, *computing, return_exceptions=True)

    async def _census(self, client: Client) -> None:
        """How many threads the workers have, again and again; fails when nobody answers, or nobody is there."""
        patience = settings().worker_wait_s
        while True:
            threads = await self._asked(client, "ncores_running")
            self._num_threads, now = sum(threads.values()), time.monotonic()
            self._heard = now if self._num_threads else self._heard
            if now - self._heard > patience:
                raise SiteFailure(
                    f"The scheduler at {self._address} has had no worker for {patience:.0f} s; start workers with: "
                    f"dask worker {self._address} --nthreads 1"
                )
            await asyncio.sleep(CENSUS_EVERY_S if self._num_threads else LOOK_EVERY_S)

    async def _point(self, client: Client, key: str) -> None:
        request = Request(run=self._run, key=key, spec=self._spec, conditions=self._conditions)
        future: Any = client.submit(
            compute_point, request.model_dump_json(), key=f"{TOPIC}-{self._run}-{key}", pure=False
        )
        try:
            reply = Reply.model_validate_json(await future)
        except KilledWorker as killed:
            reason = f"its worker died {killed.allowed_failures + 1} times while computing it (out of memory?)"
            reply = Reply(outcome="failed", reason=reason)
        except CancelledError:
            raise self._lost() from None
        except Exception as error:  # the worker could not even begin: it has no such module, for instance
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            raise SiteFailure(f"A worker of {self._address} could not take the work ({reason}).") from None
        self._heard = time.monotonic()
        match reply:
            case Reply(outcome="refused", reason=reason):
                raise SiteFailure(reason)
            case Reply(outcome="finished", point=point) if point is not None:
                self._begin(key)
                self.told.put(Finished(key, point))
            case _:
                self._begin(key)
                self.told.put(Failed(key, reply.reason or "its worker was stopped by another client"))
        self._done.add(key)

    def _hear(self, event: tuple[float, Any]) -> None:
        """A message of some worker about some run."""
        _, heard = event
        if not (isinstance(heard, dict) and heard.get("run") == self._run):
            return
        self._heard = time.monotonic()
        message = Message.model_validate_json(heard["message"])
        if message.key not in self._done:  # a message may come after the answer
            self._begin(message.key)
            self.told.put(Advanced(message.key, message.fraction, message.message, message.point))

    def _begin(self, key: str) -> None:
        """A point begins once, also where another worker computes it again."""
        if key not in self._begun:
            self._begun.add(key)
            self.told.put(Started(key))

    async def _asked(self, client: Client, question: str) -> Any:
        """The scheduler's answer."""
        scheduler: Any = client.scheduler
        if client.status != "running":
            raise self._lost()
        try:
            return await asyncio.wait_for(getattr(scheduler, question)(), ANSWER_S)
        except (OSError, TimeoutError):
            raise self._lost() from None

    def _lost(self) -> SiteFailure:
        return SiteFailure(
            f"The dask scheduler at {self._address} was lost; finished points are kept, and the same run resumes."
        )


async def _close(client: Client) -> None:
    """Tells the scheduler that nobody waits for these points any more; the workers ask for that."""
    with contextlib.suppress(TimeoutError, OSError):
        await asyncio.wait_for(client.close(), CLOSE_S)
