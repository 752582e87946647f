"""The jobs of this process."""

from __future__ import annotations

import atexit
import functools
import threading
from typing import TYPE_CHECKING

from linearity_lab.jobs.profile import profile

if TYPE_CHECKING:
    from linearity_lab.jobs._jobs import Jobs


@functools.cache
def _shared() -> Jobs:
    # Not before jobs are asked for: store and specs take longer to load than all that the server needs to listen.
    from linearity_lab.jobs._jobs import Jobs
    from linearity_lab.jobs.limits import check_limits

    limits = profile()
    jobs = Jobs(
        num_workers=limits.num_workers,
        max_waiting=limits.max_waiting,
        is_shared=limits.is_shared,
        check=check_limits,
        max_s=limits.max_job_s,
        max_bytes=limits.max_memory_bytes,
        is_quiet=limits.name == "hosted",
    )
    atexit.register(jobs.shutdown)
    return jobs


_SHARED_LOCK = threading.Lock()


def shared_jobs() -> Jobs:
    """The jobs of this process, within the limits of its profile; its workers end with it.

    Raises:
        InvalidInput: when the store or a setting of the profile cannot be used.
    """
    with _SHARED_LOCK:
        return _shared()
