"""Runs that belong to the server, not to a browser session: start, attach, follow, stop. Free of Streamlit and JAX.

Names are imported when first used: the server listens before the store and the specs are loaded.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import threading
from typing import TYPE_CHECKING, Any

from linearity_lab.jobs.profile import profile

if TYPE_CHECKING:
    from linearity_lab.jobs._job import Load, NoRoom, Snapshot, key_words
    from linearity_lab.jobs._jobs import Jobs

__all__ = ["Jobs", "Load", "NoRoom", "Snapshot", "key_words", "shared_jobs"]
_HOMES = {"Jobs": "_jobs", "Load": "_job", "NoRoom": "_job", "Snapshot": "_job", "key_words": "_job"}
_SHARED_LOCK = threading.Lock()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'linearity_lab.jobs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"linearity_lab.jobs.{_HOMES[name]}"), name)


def shared_jobs() -> Jobs:
    """The jobs of this process, within the limits of its profile; its workers end with it."""
    with _SHARED_LOCK:
        return _shared()


@functools.cache
def _shared() -> Jobs:
    from linearity_lab.jobs._jobs import Jobs
    from linearity_lab.jobs.limits import check_limits

    jobs = Jobs(limits=profile(), check=check_limits)
    atexit.register(jobs.shutdown)
    return jobs
