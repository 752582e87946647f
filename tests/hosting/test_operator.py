"""The operator's answers: nothing without the token, few guesses, and a list of jobs that he can end."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from starlette.requests import Request

from linearity_lab.server import _operator, routes
from linearity_lab.server._operator import MAX_FAILURES, TOKEN_VARIABLE, Failures, operator_token, refusal
from ntk_core.cli import main
from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import digest
from ntk_core.runs.store import JobClock, Store, UnfinishedJob

TOKEN = "a-token-that-nobody-guesses"
SPEC = KernelChangeSpec(widths=(3,), num_seeds=1)


@pytest.fixture(autouse=True)
def _known_to_nobody(monkeypatch, tmp_path):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "s.sqlite"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(_operator, "_FAILURES", Failures())
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)


@pytest.fixture
def store():
    """With one job that runs."""
    store = Store()
    ledger = store.ledger()
    ledger.note(UnfinishedJob(SPEC, "somebody", 1.0))
    ledger.write()
    ledger.write_clocks([JobClock(digest(SPEC), True, 12.0, 60.0)])
    yield store
    ledger.close()
    store.close()


def request(token: str | None = TOKEN, address: str = "192.0.2.7", said: dict | None = None, **path: str) -> Request:
    shown = {} if token is None else {"authorization": f"Bearer {token}"}
    headers = [(name.encode(), value.encode()) for name, value in {**shown, **(said or {})}.items()]
    return Request({"type": "http", "headers": headers, "client": (address, 1), "path_params": path, "method": "GET"})


async def answered(endpoint, given: Request) -> tuple[int, str]:
    answer = await endpoint(given)
    return answer.status_code, bytes(answer.body).decode()


@pytest.fixture
def ask():
    return lambda endpoint, given: asyncio.run(answered(endpoint, given))


def test_nothing_is_shown_where_nobody_is_an_operator(monkeypatch, store, ask):
    monkeypatch.delenv(TOKEN_VARIABLE)
    for token in (None, "", TOKEN):
        assert ask(_operator.list_jobs, request(token)) == (404, "Not Found")
        assert ask(_operator.end_job, request(token, digest=digest(SPEC)))[0] == 404
    assert not store.unfinished_jobs()[0].ending


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "ü"])
def test_nothing_is_shown_to_whoever_does_not_know_the_token(store, ask, token):
    assert ask(_operator.list_jobs, request(token)) == (401, "Unauthorized")
    assert ask(_operator.end_job, request(token, digest=digest(SPEC))) == (401, "Unauthorized")
    assert not store.unfinished_jobs()[0].ending


def test_a_token_that_could_be_guessed_is_none(monkeypatch, store, ask):
    monkeypatch.setenv(TOKEN_VARIABLE, "short")
    with pytest.raises(InvalidInput):
        operator_token()
    assert ask(_operator.list_jobs, request("short"))[0] == 404


def test_guessing_ends_after_a_few_and_begins_again_a_minute_later():
    now = [0.0]
    failures = Failures(lambda: now[0])
    for _ in range(MAX_FAILURES):
        assert refusal(request("wrong"), failures).status_code == 401
    assert refusal(request("wrong"), failures).status_code == 429
    assert refusal(request(), failures).status_code == 429  # or an answer would tell which guess was right
    assert refusal(request(address="192.0.2.8"), failures) is None
    now[0] = 61.0
    assert refusal(request(), failures) is None


def test_the_operator_sees_the_job_but_not_whose_it_is_and_ends_it(store, ask):
    status, body = ask(_operator.list_jobs, request())
    (job,) = json.loads(body)["jobs"]
    assert status == 200
    assert (job["digest"], job["running"], job["spent_s"], job["allowed_s"]) == (digest(SPEC), True, 12.0, 60.0)
    assert "somebody" not in body
    assert ask(_operator.end_job, request(digest="0" * 64))[0] == 404
    assert ask(_operator.end_job, request(digest=""))[0] == 404
    assert ask(_operator.end_job, request(digest=digest(SPEC)))[0] == 202
    assert store.unfinished_jobs()[0].ending
    assert store.ledger().to_end() == {digest(SPEC)}


def asked_by_browser(password: str, origin: str = "https://lab.example.org", **path: str) -> Request:
    shown = "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()
    return request(None, said={"authorization": shown, "host": "lab.example.org", "origin": origin}, **path)


def test_the_operator_has_a_page_with_a_button_for_each_job(monkeypatch, store, ask):
    asked = asyncio.run(_operator.jobs_page(request(None)))
    assert (asked.status_code, asked.headers["www-authenticate"]) == (401, "Basic")
    for refused in (_operator.jobs_page, _operator.end_on_page):
        assert ask(refused, asked_by_browser("wrong", digest=digest(SPEC)))[0] == 401
    status, body = ask(_operator.jobs_page, asked_by_browser(TOKEN))
    told = _operator._listed()[1]["jobs"]
    assert isinstance(told, list)
    job = told[0]
    assert (status, len(told)) == (200, 1)
    for shown in (job["visitor"], "kernel_change", "running", f"{job['expected_s']:,.0f} s", "12 s", "60 s"):
        assert f"<td>{shown}</td>" in body
    assert f'action="/operator/{digest(SPEC)}/end"><button>End</button>' in body
    assert "somebody" not in body
    assert "$" not in body
    elsewhere = asked_by_browser(TOKEN, "https://evil.example.org", digest=digest(SPEC))
    assert ask(_operator.end_on_page, elsewhere)[0] == 403
    assert not store.unfinished_jobs()[0].ending
    assert ask(_operator.end_on_page, asked_by_browser(TOKEN, digest="0" * 64))[0] == 404
    ended = asyncio.run(_operator.end_on_page(asked_by_browser(TOKEN, digest=digest(SPEC))))
    assert (ended.status_code, ended.headers["location"]) == (303, "/operator")
    assert store.unfinished_jobs()[0].ending
    assert "<td>ending</td>" in ask(_operator.jobs_page, asked_by_browser(TOKEN))[1]
    monkeypatch.delenv(TOKEN_VARIABLE)
    for hidden in (_operator.jobs_page, _operator.end_on_page):
        assert ask(hidden, asked_by_browser(TOKEN, digest=digest(SPEC))) == (404, "Not Found")


def test_tokens_are_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(_operator.hmac, "compare_digest", lambda a, b: compared.append((a, b)))
    assert refusal(request("guess"), Failures()).status_code == 401
    assert compared == [(b"guess", TOKEN.encode())]


def test_the_answers_have_their_places():
    assert {(route.path, *route.methods - {"HEAD"}) for route in routes()} >= {
        ("/api/jobs", "GET"),
        ("/api/jobs/{digest}/end", "POST"),
        ("/operator", "GET"),
        ("/operator/{digest}/end", "POST"),
    }


def test_the_command_line_lists_and_ends_jobs(store, capsys):
    assert main(["jobs"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[:2] == [digest(SPEC)[:16], "running"]
    assert "12 s of 60 s" in line
    assert main(["jobs", "--end", "0" * 8]) == 2
    assert not store.unfinished_jobs()[0].ending
    assert main(["jobs", "--end", digest(SPEC)[:8]]) == 0
    capsys.readouterr()
    assert main(["jobs", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["ending"], told["experiment"]) == (True, "kernel_change")
