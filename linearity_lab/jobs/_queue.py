"""Which job may join the queue, and which one begins next."""

import collections
import math
from collections.abc import Sequence

from linearity_lab.jobs._job import Job
from linearity_lab.jobs.profile import Profile
from ntk_core.errors import InvalidInput

MAX_PER_SESSION = 2  # one that runs and one that waits


class QueueFull(InvalidInput):
    """Too many jobs wait already."""

    template = "{}: {} cannot be taken; try again {}"

    def __init__(self, waiting: int):
        super().__init__("run", f"one more than {waiting} waiting jobs", "in a moment, when one of them has started")


class TooManyJobs(InvalidInput):
    """A session, or a network address, has as many unfinished jobs as it may have."""

    template = QueueFull.template

    def __init__(self, what: str = "a third unfinished run of yours", when: str = "when one has ended or is stopped"):
        super().__init__("run", what, when)


def check_room(queue: Sequence[Job], active: Sequence[Job], limits: Profile, owner: str, address: str) -> None:
    """Refuse one job too many.

    Raises:
        TooManyJobs: of this session or network address.
        QueueFull: of everybody.
    """
    if limits.is_shared and owner and sum(job.owner == owner for job in active) >= MAX_PER_SESSION:
        raise TooManyJobs
    if address and sum(job.address == address for job in active) >= limits.max_per_address:
        what = f"one more than {limits.max_per_address:.0f} unfinished runs from your network address"
        raise TooManyJobs(what, "when one of them has ended")
    if len(queue) >= limits.max_waiting:
        raise QueueFull(limits.max_waiting)


def first(queue: Sequence[Job], running: Sequence[Job], limits: Profile) -> Job | None:
    """The job that waits longest; on shared servers of a session without a running one, and the least busy address."""
    if not limits.is_shared:
        return next(iter(queue), None)
    owners = {job.owner for job in running} - {""}
    busy = collections.Counter(job.address for job in running if limits.max_per_address < math.inf and job.address)
    return min((job for job in queue if job.owner not in owners), key=lambda job: busy[job.address], default=None)
