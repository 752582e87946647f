"""Streamlit's scripts and styles, compressed once for all who come over a network."""

import asyncio
import gzip
import hashlib
import posixpath
from ipaddress import ip_address

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 16 * 2**20  # all that Streamlit ships has 7 MB
_FOLDER = "/static/"
_SUFFIXES = (".js", ".css")
# Such a request asks for less than the whole file, or knows it already.
_PARTLY = ("range", "if-none-match", "if-modified-since")


class CompressedScripts:
    """ASGI middleware that hands out the files that Streamlit's pages consist of at a third of their size.

    A first visit loads 10 MB of them. Streamlit does not compress them, since it would do so again for everybody. Here
    each is compressed when the first one asks for it and kept: three megabytes in all. One file can be asked for in
    many ways (``/static/./js/…``): it is kept once, by its content, under its shortest path. What is kept is
    bounded, and beyond that files come as they are. Browsers on the same machine get them so, too.
    """

    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BYTES):
        self._app, self._room = app, most_bytes
        self._files: dict[bytes, tuple[Headers, bytes]] = {}  # by content
        self._kept: dict[str, tuple[Headers, bytes]] = {}  # by path
        self._compressing = asyncio.Lock()  # a class that arrives at once waits for the first of them

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_for_us(scope):
            await self._app(scope, receive, send)
            return
        status, path = 200, scope["path"]
        async with self._compressing:
            answer = self._kept.get(path)
            if answer is None:
                status, headers, body = await self._asked_for(scope, receive)
                answer = headers, body
                if status == 200 and _stays(headers):
                    answer = await self._compressed_once(headers, body)
                    if path == posixpath.normpath(path) and self._room > len(path) and "Content-Encoding" in answer[0]:
                        self._kept[path] = answer
                        self._room -= len(path)
        headers, body = answer
        await send({"type": "http.response.start", "status": status, "headers": list(headers.raw)})
        await send({"type": "http.response.body", "body": body})

    async def _compressed_once(self, headers: Headers, body: bytes) -> tuple[Headers, bytes]:
        """The file of this content, as it was compressed first; as it is where there is no room for more."""
        content = hashlib.sha256(body).digest()
        if content not in self._files and self._room > 0:
            self._files[content] = await run_in_threadpool(_compressed, headers, body)
            self._room -= len(self._files[content][1])
        return self._files.get(content, (headers, body))

    async def _asked_for(self, scope: Scope, receive: Receive) -> tuple[int, Headers, bytes]:
        start: Message = {}
        body = bytearray()

        async def collect(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                body.extend(message.get("body", b""))

        await self._app({**scope, "extensions": {}}, receive, collect)  # no server may send the file by itself
        return start["status"], Headers(raw=start["headers"]), bytes(body)


def _stays(headers: Headers) -> bool:
    return "immutable" in headers.get("cache-control", "") and "content-encoding" not in headers


def _compressed(headers: Headers, body: bytes) -> tuple[Headers, bytes]:
    small = gzip.compress(body, compresslevel=6, mtime=0)
    told = headers.mutablecopy()
    told["Content-Encoding"] = "gzip"
    told["Content-Length"] = str(len(small))
    told.add_vary_header("Accept-Encoding")
    if "etag" in told:
        told["ETag"] = f"W/{told['etag'].removeprefix('W/')}"  # the same content in other bytes
    del told["accept-ranges"]
    return told, small


def _is_for_us(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    if _FOLDER not in scope["path"] or not scope["path"].endswith(_SUFFIXES) or _is_near(scope):
        return False
    headers = Headers(scope=scope)
    return "gzip" in headers.get("accept-encoding", "") and not any(name in headers for name in _PARTLY)


def _is_near(scope: Scope) -> bool:
    host = (scope.get("client") or ("",))[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:  # no address, such as a local socket
        return False
