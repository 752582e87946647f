"""Jobs of earlier runs of the server, as the store knows them."""

from __future__ import annotations

import logging

from dashboard.jobs._job import Job
from ntk_core.errors import InvalidInput
from ntk_core.specs import Spec, digest
from ntk_core.store import MIN_PREFIX, Store

INTERRUPTED = "stopped before it was finished; run it again to go on from its finished points"
_LOG = logging.getLogger(__name__)


def recalled_from(store: Store, spec: Spec) -> Job:
    """A new job with whatever the store knows of it.

    Raises:
        InvalidInput: when the store cannot be used.
    """
    result = store.result(digest(spec))
    job = Job(spec, digest(spec)[:MIN_PREFIX], result)
    if job.status != "completed":
        job.recall(store.points(spec).finished().values(), INTERRUPTED)
    return job


def recalled_by_id(store: Store, job_id: str) -> Job | None:
    """The job of this id; None when the store knows none."""
    try:
        spec = store.spec(job_id) if len(job_id) == MIN_PREFIX else None
        return None if spec is None else recalled_from(store, spec)
    except InvalidInput as error:
        _LOG.warning("%s", error)
        return None
