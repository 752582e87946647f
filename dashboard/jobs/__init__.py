"""Runs that belong to the server, not to a browser session: start, attach, follow, stop. Free of Streamlit and JAX.

Names are imported when first used: the server listens before the store and the specs are loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dashboard.jobs._shared import shared_jobs

if TYPE_CHECKING:
    from dashboard.jobs._jobs import Jobs
    from dashboard.jobs._limits import QueueFull, TooManyJobs
    from dashboard.jobs._snapshot import Load, Snapshot

__all__ = ["Jobs", "Load", "QueueFull", "Snapshot", "TooManyJobs", "shared_jobs"]
_HOMES = {
    "Jobs": "_jobs",
    "Load": "_snapshot",
    "QueueFull": "_limits",
    "Snapshot": "_snapshot",
    "TooManyJobs": "_limits",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dashboard.jobs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dashboard.jobs.{_HOMES[name]}"), name)
