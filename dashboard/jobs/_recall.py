"""Jobs of earlier runs of the server, as the store knows them."""

import logging
from collections.abc import Callable

from dashboard.jobs._job import Job
from ntk_core.errors import InvalidInput
from ntk_core.runs import Spec, digest, estimate
from ntk_core.runs.store import MIN_PREFIX, Store, UnfinishedJob

INTERRUPTED = "stopped before it was finished; run it again to continue from its finished points"
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


def recalled_unfinished(store: Store, left: UnfinishedJob, check: Callable[[Spec], None] | None) -> Job | None:
    """The job that an earlier server wrote down; None when it cannot go on, which is then logged.

    Args:
        check: raises ``InvalidInput`` for a spec that is beyond the limits of today.
    """
    try:
        job = recalled_from(store, left.spec)
        if check is not None:
            check(job.spec)
    except InvalidInput as error:
        _LOG.warning("An unfinished job cannot go on: %s", str(error).splitlines()[0])
        return None
    job.owner, job.submitted_s = left.owner, left.submitted_s
    job.expected_s = estimate(job.spec, job.finished_keys()).seconds
    return job
