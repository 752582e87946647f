"""What Streamlit's page holds before its scripts run, and that nothing else is touched."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import streamlit

from linearity_lab.server._first_paint import OWN_SCRIPT, FirstPaint

PAGE = (Path(streamlit.__file__).parent / "static" / "index.html").read_bytes()
HTML = (b"content-type", b"text/html; charset=utf-8")


def answered(body, *headers, method="GET", status=200, parts=3, accept=b"text/html,*/*"):
    """The head and the whole body of an answer that comes in parts."""
    sent = []
    asked = [(b"accept", accept), (b"accept-encoding", b"gzip")]

    async def app(scope, receive, send):
        if accept.startswith(b"text/html") and method == "GET":
            assert b"accept-encoding" not in dict(scope["headers"])  # or its parts could not be read
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
        step = -(-len(body) // parts)
        for index in range(parts):
            more = index < parts - 1
            await send({"type": "http.response.body", "body": body[index * step :][:step], "more_body": more})

    async def send(message):
        sent.append(message)

    asyncio.run(FirstPaint(app)({"type": "http", "method": method, "headers": asked}, None, send))
    start, *bodies = sent
    assert [message["type"] for message in sent] == ["http.response.start", *["http.response.body"] * len(bodies)]
    assert not bodies[-1].get("more_body", False)
    return dict(start["headers"]), b"".join(message["body"] for message in bodies)


def test_the_page_of_this_streamlit_is_painted():
    headers, body = answered(
        PAGE, HTML, (b"etag", b'"1"'), (b"last-modified", b"then"), (b"cache-control", b"no-cache")
    )
    assert b"wide neural network" in body
    assert b"<title>Linearity Lab</title>" in body
    assert body.index(OWN_SCRIPT.encode()) < body.index(b'<script type="module"')  # which reads what it says
    assert body.count(b'<div id="root">') == 1
    # Where a page has a component of its own, nothing waits for the script that mounts it.
    assert re.search(rb'<link rel="modulepreload" crossorigin href="./static/js/BidiComponent.[^"]+"></head>', body)
    assert headers[b"content-length"] == str(len(body)).encode()
    assert headers[b"cache-control"] == b"no-cache"
    assert not {b"etag", b"last-modified"} & set(headers)  # they are those of another text


def test_its_scripts_stay_what_they_were():
    _, body = answered(PAGE, HTML)
    assert body.count(b"<script") == PAGE.count(b"<script") + 1
    for line in PAGE.splitlines():
        if b"script" in line:
            assert line in body


@pytest.mark.parametrize(
    "what",
    [
        {"headers": [(b"content-type", b"text/javascript"), (b"etag", b'"1"')]},
        {"headers": [HTML, (b"etag", b'"1"')], "method": "HEAD"},
        {"headers": [HTML, (b"etag", b'"1"')], "status": 404},
        {"headers": [HTML, (b"etag", b'"1"')], "accept": b"*/*"},
    ],
    ids=["a script", "no body wanted", "an error", "not opened by a browser"],
)
def test_all_else_passes_untouched(what):
    headers, body = answered(PAGE, *what.pop("headers"), **what)
    assert body == PAGE
    assert headers[b"etag"] == b'"1"'


def test_a_page_without_the_empty_root_stays_readable():
    other = b"<html><body>another version</body></html>"
    assert answered(other, HTML)[1] == other
