"""The jobs of this process."""

from __future__ import annotations

import atexit
import functools
import threading

from dashboard.jobs._jobs import Jobs


@functools.cache
def _shared() -> Jobs:
    jobs = Jobs()
    atexit.register(jobs.shutdown)
    return jobs


_SHARED_LOCK = threading.Lock()


def shared_jobs() -> Jobs:
    """The jobs of this process; its workers end with it.

    Raises:
        InvalidInput: when the store or the number of workers cannot be used.
    """
    with _SHARED_LOCK:
        return _shared()
