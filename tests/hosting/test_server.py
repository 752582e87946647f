"""Headers, readiness, logs and first paint, in process."""

import io
import json
import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import streamlit as st
import streamlit.logger
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Router

from linearity_lab.dashboard import early
from linearity_lab.dashboard.server import _app, routes
from linearity_lab.dashboard.server._first_paint import (
    EARLY_PAGES,
    EARLY_SCRIPT,
    OWN_SCRIPT,
    FirstPaint,
)
from linearity_lab.dashboard.server._headers import (
    SecurityHeaders,
    frame_origins,
    inline_scripts,
    security_headers,
)
from linearity_lab.dashboard.server._logs import write_json_logs
from ntk_core.errors import InvalidInput
from tests.hosting.answer import Answer

VARIABLES = ("LINEARITY_LAB_PROFILE", "LINEARITY_LAB_HOSTS", "LINEARITY_LAB_FRAME_ANCESTORS")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


PAGE = PlainTextResponse("a page")


def policy(headers: dict[str, str]) -> dict[str, list[str]]:
    parts = [part.split() for part in headers["content-security-policy"].split(";")]
    return {name: values for name, *values in parts}


def test_the_policy_allows_own_scripts_only():
    rules = policy({name.lower(): value for name, value in security_headers().items()})
    assert rules["default-src"] == rules["connect-src"] == ["'self'"]
    assert rules["object-src"] == ["'none'"]
    scripts = rules["script-src"]
    # Only a running script can create a blob or WebAssembly, and text cannot become either.
    assert scripts[:3] == ["'self'", "blob:", "'wasm-unsafe-eval'"]
    assert len(scripts) == 3 + len([OWN_SCRIPT, *inline_scripts()]) >= 4
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "data:", "https:"} & set(scripts)
    assert (
        st.get_option("server.enableXsrfProtection") is st.get_option("server.enableCORS") is True
    )


def test_only_named_sites_may_embed_the_pages(monkeypatch):
    headers = security_headers()
    assert headers["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in headers["Content-Security-Policy"]
    monkeypatch.setenv(
        "LINEARITY_LAB_FRAME_ANCESTORS", "https://huggingface.co, https://*.hf.space"
    )
    framed = security_headers(frame_origins())
    assert "X-Frame-Options" not in framed
    assert (
        "frame-ancestors 'self' https://huggingface.co https://*.hf.space"
        in framed["Content-Security-Policy"]
    )


@pytest.mark.parametrize(
    "given", ["*", "huggingface.co", "https://a.b; script-src *", "javascript:alert(1)", "https://"]
)
def test_an_origin_that_is_none_is_refused(monkeypatch, given):
    monkeypatch.setenv("LINEARITY_LAB_FRAME_ANCESTORS", given)
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_FRAME_ANCESTORS"):
        frame_origins()


@pytest.mark.parametrize(("strict", "scheme"), [(True, "https"), (True, "http"), (False, "https")])
def test_only_a_shared_server_with_https_insists_on_it(monkeypatch, strict, scheme):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted" if strict else "local")
    answer = Answer(SecurityHeaders(PAGE), scheme=scheme)
    assert ("strict-transport-security" in answer.headers) == (strict and scheme == "https")
    assert ("cross-origin-opener-policy" in answer.headers) == (scheme == "https")


@pytest.mark.parametrize(
    ("workers", "waiting", "status"), [(2, 0, 200), (1, 15, 200), (0, 0, 503), (2, 16, 503)]
)
def test_readiness_reflects_the_workers_and_the_queue(monkeypatch, workers, waiting, status):
    load = {"workers": workers, "running": 1, "waiting": waiting, "max_waiting": 16}
    monkeypatch.setattr(
        "linearity_lab.dashboard.server._app.shared_jobs",
        lambda: SimpleNamespace(load=lambda: load),
    )
    answer = Answer(Router(routes()), "/api/ready")
    assert (answer.status, json.loads(answer.text)) == (status, {"ready": status == 200, **load})
    assert answer.headers["cache-control"] == "no-store"


def test_readiness_hides_the_address_of_a_broken_store(monkeypatch):
    def no_jobs():
        raise InvalidInput("LINEARITY_LAB_STORE", "postgresql://lab:secret@db/lab", "a database")

    monkeypatch.setattr("linearity_lab.dashboard.server._app.shared_jobs", no_jobs)
    answer = Answer(Router(routes()), "/api/ready")
    assert answer.status == 503
    assert "LINEARITY_LAB_STORE" in answer.text
    assert "secret" not in answer.text


def broken(*_: object) -> None:
    raise ZeroDivisionError("a path of the user")


IDLE = {"workers": 0, "running": 0, "waiting": 0, "max_waiting": 16}


@pytest.mark.parametrize(
    ("function", "step", "load"),
    [
        ("_load_pages", "loading pages", {**IDLE, "workers": 2}),
        ("_start_jobs", "starting jobs", IDLE),
    ],
)
def test_failed_warm_up_is_logged_and_not_ready(monkeypatch, logs, function, step, load):
    for name in ("_load_pages", "_start_jobs"):
        monkeypatch.setattr(_app, name, broken if name == function else lambda: None)
    monkeypatch.setattr(_app, "shared_jobs", lambda: SimpleNamespace(load=lambda: load))
    _app._warm_up()
    line = json.loads(logs.getvalue())
    assert (line["level"], line["step"], line["exception"]) == ("error", step, "ZeroDivisionError")
    answer = Answer(Router(routes()), "/api/ready")
    reason = json.loads(answer.text)["reason"]
    assert answer.status == 503
    assert reason == f"{step} failed with ZeroDivisionError; the server log has the cause"
    # Visitors are served nevertheless, and the next warm-up forgets the failure.
    assert _app._LOADED.is_set()
    monkeypatch.setattr(_app, function, lambda: None)
    load = {**load, "workers": 2}
    _app._warm_up()
    assert Answer(Router(routes()), "/api/ready").status == 200


def test_jobs_that_a_page_started_later_are_ready(monkeypatch):
    monkeypatch.setattr(_app, "_load_pages", lambda: None)
    monkeypatch.setattr(_app, "_start_jobs", broken)
    _app._warm_up()
    load = {**IDLE, "workers": 1}
    monkeypatch.setattr(_app, "shared_jobs", lambda: SimpleNamespace(load=lambda: load))
    assert Answer(Router(routes()), "/api/ready").status == 200
    monkeypatch.setattr(_app, "_start_jobs", lambda: None)
    _app._warm_up()


def test_server_is_not_ready_while_it_loads_pages(monkeypatch):
    load = {**IDLE, "workers": 2}
    monkeypatch.setattr(_app, "shared_jobs", lambda: SimpleNamespace(load=lambda: load))
    _app._LOADED.clear()
    try:
        assert Answer(Router(routes()), "/api/ready").status == 503
    finally:
        _app._LOADED.set()
    assert Answer(Router(routes()), "/api/ready").status == 200


def test_unexpected_failure_of_jobs_is_not_ready(monkeypatch, logs):
    monkeypatch.setattr(_app, "shared_jobs", lambda: SimpleNamespace(load=broken))
    answer = Answer(Router(routes()), "/api/ready")
    assert answer.status == 503
    assert json.loads(answer.text)["reason"] == "jobs failed with ZeroDivisionError"
    assert json.loads(logs.getvalue())["exception"] == "ZeroDivisionError"


@pytest.fixture
def logs() -> Iterator[io.StringIO]:
    """JSON logs in a buffer; the process's loggers are restored."""
    loggers = [
        logging.root,
        *(each for each in logging.root.manager.loggerDict.values() if hasattr(each, "handlers")),
    ]
    before = [
        (logger, logger.handlers[:], logger.propagate, logger.__class__) for logger in loggers
    ]
    stream = io.StringIO()
    write_json_logs(stream)
    yield stream
    logging.captureWarnings(False)
    logging.setLoggerClass(logging.Logger)
    for logger, handlers, propagate, kind in before:
        logger.__class__ = kind
        logger.handlers[:] = handlers
        logger.propagate = propagate


def test_logs_are_json_without_user_data(logs):
    """Addresses, file names, settings and exception texts from libraries,
    in every way of logging.
    """
    secret = "192.0.2.7 marks.csv widths=987654321"
    logging.getLogger("linearity_lab.dashboard.jobs").warning(
        "a run failed: %s", secret, extra={"facts": {"experiment": "dag"}}
    )
    logging.getLogger("streamlit.web").error("upload of %s refused", secret)
    logging.getLogger("streamlit.web").error(f"upload of {secret} refused")
    late = logging.getLogger("streamlit.made_later")
    late.propagate = False
    late.addHandler(logging.StreamHandler(logs))
    late.warning(secret)
    logging.getLogger("uvicorn.error").info("%s - connection open", secret)
    try:
        raise ValueError(secret)
    except ValueError:
        logging.getLogger("streamlit.runtime").exception(secret)
        logging.getLogger("linearity_lab.runs.store").exception("the store failed")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(secret, stacklevel=1)
    lines = [json.loads(line) for line in logs.getvalue().splitlines()]
    assert len(lines) == 7
    assert "192.0.2.7" not in logs.getvalue()
    assert "marks" not in logs.getvalue()
    assert "987654321" not in logs.getvalue()  # long: a time or a line may hold any two digits
    assert lines[0]["event"] == "a run failed: %s"
    assert lines[0]["experiment"] == "dag"
    assert all(
        re.match(r"\d{4}-\d\d-\d\dT.*Z$", line["time"]) and line["level"] and line["place"]
        for line in lines
    )
    assert lines[4]["exception"] == lines[5]["exception"] == "ValueError"
    assert lines[4]["trace"][0].startswith("test_server.py:")


def test_logs_stay_json_when_streamlits_configuration_changes(logs, capsys):
    """Its handlers wrote requests with their addresses after an edit of config.toml."""
    logging.setLoggerClass(logging.Logger)  # as before the server writes JSON
    early = streamlit.logger.get_logger("uvicorn.of_this_test")
    write_json_logs(logs)
    streamlit.logger.update_formatter()
    late = streamlit.logger.get_logger("uvicorn.late_in_this_test")
    for logger in (early, late):
        logger.setLevel(logging.INFO)
        logger.info('192.0.2.7:0 - "GET /kernel_change HTTP/1.1" 200')
    assert logs.getvalue() == ""
    assert "192.0.2.7" not in "".join(capsys.readouterr())


STREAMLITS_PAGE = (Path(st.__file__).parent / "static" / "index.html").read_text()


def first_answer(
    path="/kernel_change", method="GET", accept="text/html,*/*", status=200, kind="text/html"
) -> Answer:
    """Streamlit's page behind the first paint."""
    app = FirstPaint(Response(STREAMLITS_PAGE, status, {"etag": '"1"'}, kind))
    return Answer(app, path, method=method, accept=accept)


def test_first_paint_has_text_before_the_scripts_of_streamlit():
    painted = first_answer()
    body = painted.text
    assert "wide neural network" in body
    assert "<title>Linearity Lab</title>" in body
    assert body.index(OWN_SCRIPT) < body.index('<script type="module"')
    # Pages with components do not wait for the script that mounts them.
    assert re.search(
        r'<link rel="modulepreload" crossorigin href="./static/js/BidiComponent.[^"]+"></head>',
        body,
    )
    assert "etag" not in painted.headers
    assert body.count("<script") == STREAMLITS_PAGE.count("<script") + 1
    assert all(line in body for line in STREAMLITS_PAGE.splitlines() if "script" in line)


def test_home_and_live_alone_begin_before_streamlits_scripts():
    scripts = Starlette(routes=[early.ROUTE])
    for path, page in EARLY_PAGES.items():
        text, script = first_answer(f"/{path}").text, EARLY_SCRIPT.format(page=page)
        assert text.index(f'src=".{script}"') < text.index("./static/js/index.")
        found = Answer(scripts, script)
        assert found.headers["content-type"].startswith("text/javascript")
        assert "beginEarly(" in found.text.splitlines()[-1]
    # The relative URLs of /live/ would refer to another folder.
    assert not any("/api/early" in first_answer(path).text for path in ("/kernel_change", "/live/"))
    assert Answer(scripts, EARLY_SCRIPT.format(page="lecture")).status == 404


@pytest.mark.parametrize(
    "asked", [{"kind": "text/javascript"}, {"method": "HEAD"}, {"status": 404}, {"accept": "*/*"}]
)
def test_first_paint_leaves_other_answers_alone(asked):
    found = first_answer(**asked)
    assert found.text == STREAMLITS_PAGE
    assert found.headers["etag"] == '"1"'
