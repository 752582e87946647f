"""Whether the server can take a job now, for load balancers and people who look after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from linearity_lab.jobs import shared_jobs
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from linearity_lab.jobs import Jobs

READY_PATH = "/api/ready"


def readiness(jobs: Jobs) -> Mapping[str, object]:
    """What ``/api/ready`` answers: ``ready``, and why.

    Raises:
        InvalidInput: when the store does not answer.
    """
    load = jobs.load()
    return {"ready": load.workers > 0 and load.has_room, **asdict(load)}


async def ready(_: Request) -> JSONResponse:
    """200 when a job would begin or wait its turn, 503 when it would be refused; the body says which part fails."""
    answer = await run_in_threadpool(_answer, shared_jobs)
    return JSONResponse(answer, status_code=200 if answer["ready"] else 503, headers={"Cache-Control": "no-store"})


def _answer(jobs: Callable[[], Jobs]) -> Mapping[str, object]:
    try:
        return readiness(jobs())
    except InvalidInput as error:
        return {"ready": False, "reason": f"a setting of the server is wrong: {error.field}"}
