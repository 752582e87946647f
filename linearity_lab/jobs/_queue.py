"""Which job may join the queue, and which one begins next."""

import collections
import math
from collections.abc import Sequence

from linearity_lab.jobs._job import Job
from linearity_lab.jobs.profile import Profile
from ntk_core.errors import InvalidInput

MAX_PER_SESSION = 2  # one that runs and one that waits


class NoRoom(InvalidInput):
    """One job too many: of everybody, of a session, or of a network address."""

    template = "{}: {} cannot be taken; try again {}"


def check_room(queue: Sequence[Job], active: Sequence[Job], limits: Profile, owner: str, address: str) -> None:
    """Refuse one job too many.

    Raises:
        NoRoom: naming the limit.
    """
    if limits.is_shared and owner and sum(job.owner == owner for job in active) >= MAX_PER_SESSION:
        raise NoRoom("run", "a third unfinished run of yours", "when one has ended or is stopped")
    if address and sum(job.address == address for job in active) >= limits.max_per_address:
        what = f"one more than {limits.max_per_address:.0f} unfinished runs from your network address"
        raise NoRoom("run", what, "when one of them has ended")
    if len(queue) >= limits.max_waiting:
        what = f"one more than {limits.max_waiting} waiting jobs"
        raise NoRoom("run", what, "in a moment, when one of them has started")


def first(queue: Sequence[Job], running: Sequence[Job], limits: Profile) -> Job | None:
    """The job that waits longest; on shared servers of a session without a running one, and the least busy address."""
    if not limits.is_shared:
        return next(iter(queue), None)
    owners = {job.owner for job in running} - {""}
    busy = collections.Counter(job.address for job in running if limits.max_per_address < math.inf and job.address)
    return min((job for job in queue if job.owner not in owners), key=lambda job: busy[job.address], default=None)
