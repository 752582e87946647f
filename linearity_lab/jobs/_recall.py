"""Jobs of earlier runs of the server, as the store knows them."""

import logging

from linearity_lab.jobs._job import Job
from ntk_core.errors import InvalidInput
from ntk_core.runs import EXPERIMENTS, Spec, estimate, learn, spec_digest, work_of_points
from ntk_core.runs.events import Ended
from ntk_core.runs.store import MIN_PREFIX, Store

STOPPED = "stopped by the server; run it again to continue from its finished points"
# Number and size of runs that estimates are learned from; all are read at the start.
NUM_LEARNED, MAX_LEARNED_BYTES = 30, 1_000_000
_LOG = logging.getLogger(__name__)


def recalled_from(store: Store, spec: Spec) -> Job:
    """A new job with whatever the store knows of it."""
    run = spec_digest(spec)
    job, result, listed = Job(spec, run[:MIN_PREFIX]), store.result(run), store.listed(run)
    if result is not None and result.status == "completed":
        job.take(Ended(status="completed", result=result))
        return job
    job.keep(store.points(spec).finished().values())
    if listed is not None and listed.status == "stopped":
        job.end("stopped", STOPPED)
    else:
        job.end("cancelled")
    return job


def recalled_by_id(store: Store, job_id: str) -> Job | None:
    """The job of this id; None when the store knows none."""
    try:
        spec = store.spec(job_id) if len(job_id) == MIN_PREFIX else None
        return None if spec is None else recalled_from(store, spec)
    except InvalidInput as error:
        _LOG.warning("%s", error)
        return None


def unfinished_seconds(store: Store, spec: Spec) -> tuple[float, int]:
    """Seconds that the points of ``spec`` should take that the store does not have, and how many it has.

    Nothing is written, and points are not looked at closely: one that is damaged is found when it is needed.
    """
    listed = store.listed(spec_digest(spec))
    done = store.runtimes(spec_digest(spec)) if listed is not None and listed.num_points else ()
    return estimate(spec, done).seconds, len(done)


def learn_from(store: Store) -> None:
    """Let estimates know how long the runs took that were finished here last."""
    try:
        for run in store.runs(status="completed", limit=NUM_LEARNED).runs:
            has_work = run.experiment in EXPERIMENTS  # the cost of custom models is unknown
            if run.spec is not None and has_work and not run.imported and run.num_bytes < MAX_LEARNED_BYTES:
                work = work_of_points(run.spec)
                learn((work[key], seconds) for key, seconds in store.runtimes(run.digest).items() if key in work)
    except InvalidInput as error:
        _LOG.warning("%s", error)
