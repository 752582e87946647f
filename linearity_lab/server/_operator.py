"""The operator's list of jobs, ``/operator`` and ``/api/jobs``, for whoever knows the token, for nobody else."""

from __future__ import annotations

import base64
import binascii
import collections
import functools
import hmac
import html
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from linearity_lab.server._hosts import is_own_page
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from ntk_core.runs.store import ListedJob

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


def refusal(request: Request, failures: Failures, scheme: str = "Bearer") -> Response | None:
    """The answer to somebody who is no operator; None for one.

    Args:
        scheme: how the token is asked for; a browser asks its user for what is ``Basic``.
    """
    try:
        token = operator_token()
    except InvalidInput:  # the log says so
        token = ""
    if not token:
        return PlainTextResponse("Not Found", status_code=404)
    address = request.client.host if request.client else ""
    if failures.too_many(address):
        return PlainTextResponse("Too Many Requests", status_code=429, headers={"Retry-After": str(int(WINDOW_S))})
    given = _given(request.headers.get("authorization", ""))
    if hmac.compare_digest(given.encode(), token.encode()):
        return None
    if given or scheme == "Bearer":  # a browser asks once without, and then its user
        failures.note(address)
    return PlainTextResponse("Unauthorized", status_code=401, headers={"WWW-Authenticate": scheme})


def _given(authorization: str) -> str:
    """The token that is shown: as such, or as the password of any name."""
    kind, _, given = authorization.partition(" ")
    if kind.lower() == "basic":
        try:
            return base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return given
    return given.strip() if kind.lower() == "bearer" else ""


async def list_jobs(request: Request) -> Response:
    """The jobs that wait or run, as JSON."""
    refused = refusal(request, _FAILURES)
    return await run_in_threadpool(_answered, _listed) if refused is None else refused


async def end_job(request: Request) -> Response:
    """Let the job of this digest be ended: 202, and within seconds it is; 404 where there is none."""
    refused, end = refusal(request, _FAILURES), functools.partial(_ended, request.path_params["digest"])
    return await run_in_threadpool(_answered, end) if refused is None else refused


async def jobs_page(request: Request) -> Response:
    """The same list as a page, with a button for each job."""
    refused = refusal(request, _FAILURES, "Basic")
    return await run_in_threadpool(_answered, _listed, _page) if refused is None else refused


async def end_on_page(request: Request) -> Response:
    """What the button does, for pages of this server alone: browsers show the token of theirs to it from any."""
    if (refused := refusal(request, _FAILURES, "Basic")) is not None:
        return refused
    if not is_own_page(request.headers):
        return PlainTextResponse("Forbidden", status_code=403)
    end = functools.partial(_ended, request.path_params["digest"])
    return await run_in_threadpool(_answered, end, lambda _: RedirectResponse("/operator", status_code=303))


ROUTES = (
    Route("/api/jobs", list_jobs, methods=["GET"]),
    Route("/api/jobs/{digest}/end", end_job, methods=["POST"]),
    Route("/operator", jobs_page, methods=["GET"]),
    Route("/operator/{digest}/end", end_on_page, methods=["POST"]),
)
_Body = Mapping[str, object]


def _answered(work: Callable[[], tuple[int, _Body]], shown: Callable[[_Body], Response] | None = None) -> Response:
    try:
        status, body = work()
    except InvalidInput:
        status, body = 503, {"reason": "the store does not answer"}
    answer = shown(body) if shown and status < 400 else JSONResponse(body, status_code=status)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _listed() -> tuple[int, _Body]:
    from ntk_core.runs import estimate  # the server listens before the store is loaded
    from ntk_core.runs.store import Store

    def told(job: ListedJob) -> dict[str, object]:
        return {**job.as_json(), "expected_s": None if job.spec is None else estimate(job.spec).seconds}

    store = Store()
    try:
        return 200, {"jobs": [told(job) for job in store.unfinished_jobs()]}
    finally:
        store.close()


def _page(body: _Body) -> Response:
    jobs = body["jobs"]
    assert isinstance(jobs, list)
    words = Template((Path(__file__).parents[1] / "operator.html").read_text(encoding="utf-8"))
    rows = "".join(map(_row, jobs)) or '<tr><td colspan="8">No job waits or runs.</td></tr>'
    return HTMLResponse(words.substitute(rows=rows))


def _row(job: Mapping[str, object]) -> str:
    def seconds(name: str, otherwise: str) -> str:
        value = job[name]
        return f"{value:,.0f} s" if isinstance(value, int | float) else otherwise

    submitted = job["submitted_s"]
    assert isinstance(submitted, float)
    state = "ending" if job["ending"] else "running" if job["running"] else "waiting"
    cells = (
        str(job["visitor"]) or "–",
        str(job["experiment"]) or "settings that cannot be read",
        state,
        time.strftime("%Y-%m-%d %H:%M", time.gmtime(submitted)),
        seconds("expected_s", "–"),
        seconds("spent_s", "–"),
        seconds("allowed_s", "any time"),
    )
    form = f'<form method="post" action="/operator/{job["digest"]}/end"><button>End</button></form>'
    return f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}<td>{form}</td></tr>\n"


def _ended(digest: str) -> tuple[int, _Body]:
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
