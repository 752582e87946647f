"""Runs that belong to the server, not to a browser session: start, attach, follow, stop. Free of Streamlit and JAX.

Names are imported when first used: the server listens before the store and the specs are loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from linearity_lab.jobs._shared import shared_jobs

if TYPE_CHECKING:
    from linearity_lab.jobs._jobs import Jobs, QueueFull, TooManyJobs
    from linearity_lab.jobs._snapshot import Load, Snapshot

__all__ = ["Jobs", "Load", "QueueFull", "Snapshot", "TooManyJobs", "shared_jobs"]
_HOMES = {
    "Jobs": "_jobs",
    "Load": "_snapshot",
    "QueueFull": "_jobs",
    "Snapshot": "_snapshot",
    "TooManyJobs": "_jobs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'linearity_lab.jobs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"linearity_lab.jobs.{_HOMES[name]}"), name)
