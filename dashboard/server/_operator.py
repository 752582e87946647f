"""The operator's list of jobs: ``/api/jobs``, for whoever knows the token, and nothing for anybody else."""

from __future__ import annotations

import collections
import hmac
import os
import time
from collections.abc import Callable, Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from ntk_core.errors import InvalidInput

JOBS_PATH = "/api/jobs"
END_PATH = "/api/jobs/{digest}/end"
TOKEN_VARIABLE = "LINEARITY_LAB_OPERATOR_TOKEN"
MIN_CHARACTERS = 24
MAX_FAILURES = 10  # of an address within a window; after that it is not even compared
WINDOW_S = 60.0
MAX_ADDRESSES = 1000


def operator_token() -> str:
    """What an operator has to show; empty where nobody is one.

    Raises:
        InvalidInput: for a token that could be guessed.
    """
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token and len(token) < MIN_CHARACTERS:
        raise InvalidInput(TOKEN_VARIABLE, "*" * len(token), f"{MIN_CHARACTERS} or more characters, drawn at random")
    return token


class Failures:
    """Wrong tokens by address; who has tried too often waits, which is told in the same words to right ones.

    Args:
        now: seconds of a clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self._now = now
        self._seen: collections.OrderedDict[str, list[float]] = collections.OrderedDict()

    def too_many(self, address: str) -> bool:
        """Whether this address has to wait."""
        return len(self._recent(address)) >= MAX_FAILURES

    def note(self, address: str) -> None:
        """One more wrong token from there."""
        self._seen[address] = [*self._recent(address), self._now()][-MAX_FAILURES:]
        self._seen.move_to_end(address)
        if len(self._seen) > MAX_ADDRESSES:
            self._seen.popitem(last=False)

    def _recent(self, address: str) -> list[float]:
        return [each for each in self._seen.get(address, []) if self._now() - each < WINDOW_S]


_FAILURES = Failures()


def refusal(request: Request, failures: Failures) -> Response | None:
    """The answer to somebody who is no operator; None for one."""
    try:
        token = operator_token()
    except InvalidInput:  # the log says so
        token = ""
    if not token:
        return PlainTextResponse("Not Found", status_code=404)
    address = request.client.host if request.client else ""
    if failures.too_many(address):
        return PlainTextResponse("Too Many Requests", status_code=429, headers={"Retry-After": str(int(WINDOW_S))})
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
        return None
    failures.note(address)
    return PlainTextResponse("Unauthorized", status_code=401, headers={"WWW-Authenticate": "Bearer"})


async def list_jobs(request: Request) -> Response:
    """The jobs that wait or run, as JSON."""
    refused = refusal(request, _FAILURES)
    return await run_in_threadpool(_answer, _listed) if refused is None else refused


async def end_job(request: Request) -> Response:
    """Let the job of this digest be ended: 202, and within seconds it is; 404 where there is none."""
    refused, digest = refusal(request, _FAILURES), request.path_params["digest"]
    return await run_in_threadpool(_answer, lambda: _ended(digest)) if refused is None else refused


def _answer(work: Callable[[], tuple[int, Mapping[str, object]]]) -> Response:
    try:
        status, body = work()
    except InvalidInput:
        status, body = 503, {"reason": "the store does not answer"}
    return JSONResponse(body, status_code=status, headers={"Cache-Control": "no-store"})


def _listed() -> tuple[int, Mapping[str, object]]:
    from ntk_core.runs.store import Store  # the server listens before the store is loaded

    store = Store()
    try:
        return 200, {"jobs": [job.as_json() for job in store.unfinished_jobs()]}
    finally:
        store.close()


def _ended(digest: str) -> tuple[int, Mapping[str, object]]:
    from ntk_core.runs.store import Store

    store = Store()
    try:
        found = [job for job in store.unfinished_jobs() if len(digest) >= 8 and job.digest.startswith(digest.lower())]
        if len(found) != 1:
            return 404, {"reason": "no unfinished job has this digest"}
        store.end_job(found[0].digest)
        return 202, {"digest": found[0].digest, "ending": True}
    finally:
        store.close()
