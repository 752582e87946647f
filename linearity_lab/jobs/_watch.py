"""What ends jobs from outside: their wall clock, and an operator; and the turns that jobs take."""

import logging
from collections.abc import Callable, Iterable, Sequence

from linearity_lab.jobs._job import Job
from linearity_lab.jobs._recall import learn_from
from linearity_lab.jobs._record import Record
from ntk_core.runs import digest
from ntk_core.runs.store import Store

TICK_S = 1.0
# How much of a job's time a server that dies may fail to write down.
WRITE_S = 10.0
BY_OPERATOR = "stopped by the operator of the server"
_LOG = logging.getLogger(__name__)


class Watch:
    """Looks once a second at the jobs that wait or run; idle while there are none.

    Args:
        store: whose finished runs tell how fast this machine is.
        record: its lock guards the jobs.
        active: the jobs that wait or run.
        is_closing: whether the server closes.
        end: ends a job for the reason that is given, whatever its worker does.
        take_turns: lets jobs that have run long give way to waiting ones.
    """

    def __init__(
        self,
        store: Store,
        record: Record,
        active: Callable[[], Sequence[Job]],
        is_closing: Callable[[], bool],
        end: Callable[[Job, str], None],
        take_turns: Callable[[], None],
    ):
        self._store, self._ledger, self._changed = store, record.ledger, record.changed
        self._active, self._is_closing, self._end, self._take_turns = active, is_closing, end, take_turns

    def serve(self) -> None:
        """The life of its thread."""
        learn_from(self._store)
        ticks = 0
        known: set[str] = set()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing() or bool(self._active()))
                if self._changed.wait_for(self._is_closing, TICK_S):
                    return
                jobs = list(self._active())
                clocks = [job.clock() for job in jobs]
            for job, reason in _to_end(jobs, self._ledger.to_end()):
                _LOG.warning("a job was stopped by the server", extra={"facts": {"job": job.job_id, "reason": reason}})
                self._end(job, reason)
            self._take_turns()
            ticks += 1
            now = {f"{clock.digest} {clock.running}" for clock in clocks}
            if now - known or ticks * TICK_S >= WRITE_S:
                self._ledger.write_clocks(clocks)
                ticks, known = 0, now


def _to_end(jobs: Iterable[Job], asked: frozenset[str]) -> list[tuple[Job, str]]:
    """The jobs to end, each with its reason."""
    found = []
    for job in jobs:
        if digest(job.spec) in asked:
            found.append((job, BY_OPERATOR))
        elif job.spent_s() > job.allowed_s:
            found.append((job, f"stopped by the server after {_time(job.allowed_s)}, the longest that it may run"))
    return found


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
