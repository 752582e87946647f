"""Runs that belong to the server, not to a browser session: start, attach, follow, stop. Free of Streamlit and JAX."""

from dashboard.jobs._jobs import Jobs
from dashboard.jobs._limits import QueueFull, TooManyJobs
from dashboard.jobs._shared import shared_jobs
from dashboard.jobs._snapshot import Load, Snapshot

__all__ = ["Jobs", "Load", "QueueFull", "Snapshot", "TooManyJobs", "shared_jobs"]
