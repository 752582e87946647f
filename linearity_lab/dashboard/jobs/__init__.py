"""Jobs of the server, independent of browser sessions: start, attach, follow, stop.
Without Streamlit and JAX.

Names are imported on first use, so that the server listens before the store and the specs are
loaded.
"""

import atexit
import functools
import threading
from typing import TYPE_CHECKING

import lazy_loader  # type: ignore[import-untyped]

from linearity_lab.dashboard.jobs.profile import profile

if TYPE_CHECKING:
    from linearity_lab.dashboard.jobs._job import NoRoom, Snapshot
    from linearity_lab.dashboard.jobs._jobs import Jobs

__all__ = ["Jobs", "NoRoom", "Snapshot", "shared_jobs"]
__getattr__, _, _ = lazy_loader.attach(
    __name__, submod_attrs={"_job": ["NoRoom", "Snapshot"], "_jobs": ["Jobs"]}
)
_SHARED_LOCK = threading.Lock()


def shared_jobs() -> "Jobs":
    """Return the jobs of this process, within the limits of its profile.

    Its workers end with it.
    """
    with _SHARED_LOCK:
        return _shared()


@functools.cache
def _shared() -> "Jobs":
    from linearity_lab.dashboard.jobs._jobs import Jobs

    jobs = Jobs(limits=profile())
    atexit.register(jobs.shutdown)
    return jobs
