"""The order in which waiting jobs get a worker: in turn by viewer, and last those that nobody waits for any more."""

import collections
import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence

from linearity_lab.jobs._job import Job

MAX_REMEMBERED_OWNERS = 1000


class FairQueue:
    """Waiting jobs. Each owner gets a turn before one gets a second; within a turn, whoever was served longest ago.

    Args:
        is_abandoned: whether everybody who waited for a job has left. Such a job waits until no other one does.
    """

    def __init__(self, is_abandoned: Callable[[Job], bool]):
        self._is_abandoned = is_abandoned
        self._waiting: dict[str, Job] = {}  # in order of arrival
        self._served: collections.OrderedDict[str, int] = collections.OrderedDict()
        self._count = itertools.count(1)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, job: Job) -> None:
        self._waiting[job.job_id] = job
        self._change_all()

    def remove(self, job: Job) -> None:
        del self._waiting[job.job_id]
        self._change_all()

    def clear(self) -> None:
        self._waiting.clear()

    def take(self) -> Job:
        """The job whose turn it is; it waits no longer."""
        job = self.in_order()[0]
        self.remove(job)
        self._served[job.owner] = next(self._count)
        self._served.move_to_end(job.owner)
        if len(self._served) > MAX_REMEMBERED_OWNERS:
            self._served.popitem(last=False)
        return job

    def _change_all(self) -> None:
        """Their places are others now."""
        for job in self._waiting.values():
            job.change()

    def in_order(self) -> list[Job]:
        """The jobs as they would be taken if no other one came."""
        turns: collections.Counter[tuple[bool, str]] = collections.Counter()
        keyed = []
        for arrival, job in enumerate(self._waiting.values()):
            abandoned = self._is_abandoned(job)
            turn = turns[abandoned, job.owner]
            turns[abandoned, job.owner] += 1
            keyed.append(((abandoned, turn, self._served.get(job.owner, 0), arrival), job))
        return [job for _, job in sorted(keyed, key=lambda pair: pair[0])]

    def place(self, job: Job, running_s: Iterable[float], num_workers: int) -> tuple[int, float]:
        """The job's place from 1, and how long it waits until it begins, in seconds; arguments as for :func:`waits`."""
        ahead = self.in_order()
        place = ahead.index(job) + 1
        return place, waits(running_s, num_workers, [other.left_s() for other in ahead[:place]])[-1]

    def others_wait(self, owner: str) -> bool:
        """Whether somebody other than ``owner`` waits for a job."""
        return any(job.owner != owner and not self._is_abandoned(job) for job in self._waiting.values())

    def last_abandoned(self) -> Job | None:
        """The job that is given up first when there is no room: the last in order that nobody waits for."""
        return next((job for job in reversed(self.in_order()) if self._is_abandoned(job)), None)


def waits(running_s: Iterable[float], num_workers: int, ahead_s: Sequence[float]) -> list[float]:
    """How long each of the waiting jobs waits until it begins, in seconds.

    Args:
        running_s: expected remaining seconds of the running jobs.
        ahead_s: expected seconds of the waiting jobs, in the order in which they are taken.
    """
    free_at = sorted(running_s)[:num_workers]
    free_at += [0.0] * (num_workers - len(free_at))
    heapq.heapify(free_at)
    begins = []
    for seconds in ahead_s:
        begin = heapq.heappop(free_at)
        begins.append(begin)
        heapq.heappush(free_at, begin + seconds)
    return begins
