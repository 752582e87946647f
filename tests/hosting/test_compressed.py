"""Files that pages consist of are compressed once for whoever comes over a network, and are what they were."""

from __future__ import annotations

import asyncio
import gzip
import random

import pytest

from linearity_lab.server._compressed import CompressedScripts

SCRIPT = b"let width = 10_000;\n" * 500
FOREVER = (b"cache-control", b"public, immutable, max-age=31536000")
HEADERS = [(b"content-type", b"application/javascript"), (b"etag", b'"1"'), (b"accept-ranges", b"bytes"), FOREVER]
FAR, NEAR = ("192.0.2.7", 50_000), ("127.0.0.1", 50_000)


class Files:
    """An application that hands out one file in parts, and counts how often it is asked."""

    def __init__(self, body=SCRIPT, status=200, headers=HEADERS):
        self.body, self.status, self.headers, self.asked = body, status, headers, 0

    async def __call__(self, scope, receive, send):
        self.asked += 1
        await asyncio.sleep(0)  # others may ask meanwhile
        length = (b"content-length", str(len(self.body)).encode())
        await send({"type": "http.response.start", "status": self.status, "headers": [length, *self.headers]})
        half = len(self.body) // 2
        await send({"type": "http.response.body", "body": self.body[:half], "more_body": True})
        await send({"type": "http.response.body", "body": self.body[half:]})


async def answer(app, path="/static/js/a.1.js", *asked, client=FAR, method="GET", accepted=b"gzip, br"):
    """Status, headers and the whole body."""
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"accept-encoding", accepted), *asked]
    await app({"type": "http", "method": method, "path": path, "headers": headers, "client": client}, None, send)
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


def test_a_script_is_compressed_once_and_is_the_same_script():
    async def story():
        files = Files()
        app = CompressedScripts(files)
        answers = await asyncio.gather(*(answer(app) for _ in range(30)))
        assert files.asked == 1
        for status, headers, body in answers:
            assert status == 200
            assert gzip.decompress(body) == SCRIPT
            assert headers[b"content-encoding"] == b"gzip"
            assert headers[b"content-length"] == str(len(body)).encode()
            assert headers[b"vary"] == b"Accept-Encoding"
            assert headers[b"etag"] == b'W/"1"'
            assert headers[b"cache-control"] == FOREVER[1]
            assert b"accept-ranges" not in headers
        assert gzip.decompress((await answer(app, "/lab/static/css/a.2.css"))[2]) == SCRIPT
        assert files.asked == 2

    asyncio.run(story())


def test_what_is_added_to_an_answer_on_its_way_out_is_not_kept():
    async def story():
        app = CompressedScripts(Files())
        sent = []

        async def send(message):
            if "headers" in message:
                message["headers"].append((b"x-content-type-options", b"nosniff"))
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/static/a.js", "client": FAR}
        for _ in range(3):
            await app({**scope, "headers": [(b"accept-encoding", b"gzip")]}, None, send)
        assert [len(message["headers"]) for message in sent if "headers" in message] == [len(sent[0]["headers"])] * 3

    asyncio.run(story())


def test_names_count_towards_what_is_kept():
    """One file can be asked for in endlessly many ways, each of them as long as a request may be."""

    async def story():
        files = Files()
        app = CompressedScripts(files, most_bytes=100_000)
        names = ["/static/" + "long/" * 12_000 + f"{number}/a.js" for number in range(9)]
        for name in names * 2:
            await answer(app, name)
        assert sum(map(len, app._kept)) < 100_000
        assert files.asked == 2 * len(names) - 1  # one name is kept, and the second time only it is known

    asyncio.run(story())


def test_what_is_kept_is_bounded_and_beyond_that_files_come_as_they_are():
    async def story():
        files = Files()
        app = CompressedScripts(files, most_bytes=200)
        assert (await answer(app, "/static/js/a.js"))[1][b"content-encoding"] == b"gzip"
        kept = files.body
        for number in range(9):
            files.body = f"let other = {number};".encode() + random.Random(number).randbytes(300)
            _, told, body = await answer(app, f"/static/js/{number}.js")
            assert number == 0 or (body, told.get(b"content-encoding")) == (files.body, None)
        files.body = kept
        assert (await answer(app, "/static/js/a.js"))[1][b"content-encoding"] == b"gzip"
        assert len(app._files) == 2
        assert files.asked == 10

    asyncio.run(story())


@pytest.mark.parametrize(
    "asked",
    [
        {"client": NEAR},
        {"client": ("::1", 1)},
        {"accepted": b"identity"},
        {"method": "HEAD"},
        {"path": "/static/media/font.woff2"},
        {"path": "/media/points.js"},
        {"headers": (b"range", b"bytes=0-9")},
        {"headers": (b"if-none-match", b'"1"')},
    ],
    ids=["near", "near by IPv6", "not understood", "no body", "a font", "an upload", "a part", "known already"],
)
def test_all_else_passes_untouched(asked):
    headers = [asked.pop("headers")] if "headers" in asked else []
    path = asked.pop("path", "/static/js/a.1.js")
    status, told, body = asyncio.run(answer(CompressedScripts(Files()), path, *headers, **asked))
    assert (status, body) == (200, SCRIPT)
    assert b"content-encoding" not in told
    assert told[b"etag"] == b'"1"'


@pytest.mark.parametrize(
    "files",
    [
        {"status": 404, "body": b"no such file"},
        {"headers": [(b"cache-control", b"no-cache")]},
        {"headers": [FOREVER, (b"content-encoding", b"br")]},
    ],
    ids=["there is none", "may change", "is compressed already"],
)
def test_what_may_change_is_handed_on_and_not_kept(files):
    async def story():
        served = Files(**files)
        app = CompressedScripts(served)
        for count in (1, 2):
            status, told, body = await answer(app)
            assert (status, body) == (served.status, served.body)
            assert told.get(b"content-encoding") != b"gzip"
            assert served.asked == count

    asyncio.run(story())
