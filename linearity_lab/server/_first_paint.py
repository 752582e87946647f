"""Something to read before Streamlit's scripts have been loaded and run."""

import functools
from pathlib import Path

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(__file__).parents[1]
# What stands in Streamlit's page, and what shall stand there; what is not found stays as it is.
_ROOT, _ROOT_END = b'<div id="root">', b"</div>"
_HEAD_END = b"</head>"
# Streamlit's scripts would look for their server below every page but the root first (`/lecture/_stcore/health`), in
# vain: it is where the page's own scripts come from.
OWN_SCRIPT = 'window.__streamlit = { BACKEND_BASE_URL: new URL(".", document.baseURI).href }'
_TITLE, _OWN_TITLE = (
    b"<title>Streamlit</title>",
    f"<title>Linearity Lab</title><script>{OWN_SCRIPT}</script>".encode(),
)
# They belong to the page as Streamlit wrote it.
_VALIDATORS = ("etag", "last-modified")


class FirstPaint:
    """ASGI middleware that puts the lab's name, what it is for and where its server is into Streamlit's empty page.

    The page's scripts put the dashboard in its place as soon as they run.
    """

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["method"] != "GET"
            or "text/html" not in Headers(scope=scope).get("accept", "")
        ):
            await self._app(scope, receive, send)
            return
        # Streamlit, further in, compresses pages that are opened by their name; a few kilobytes come as they are.
        plain = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
        start: Message = {}
        body = bytearray()

        async def send_painted(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_page(message):
                start = message
            elif not start:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    painted = _painted(bytes(body))
                    headers = MutableHeaders(scope=start)
                    headers["Content-Length"] = str(len(painted))
                    for name in _VALIDATORS:
                        del headers[name]
                    await send(start)
                    await send({"type": "http.response.body", "body": painted})

        await self._app({**scope, "headers": plain}, receive, send_painted)


def _is_page(message: Message) -> bool:
    headers = Headers(raw=message["headers"])
    return message["status"] == 200 and headers.get("content-type", "").startswith("text/html")


def _painted(page: bytes) -> bytes:
    page = page.replace(_HEAD_END, _preloads() + _HEAD_END, 1)
    return page.replace(_TITLE, _OWN_TITLE, 1).replace(_ROOT + _ROOT_END, _ROOT + _first_paint() + _ROOT_END, 1)


@functools.cache
def _preloads() -> bytes:
    """The script that mounts components of our own, which Streamlit would ask for only once a page has one."""
    found = (Path(st.__file__).parent / "static" / "static" / "js").glob("BidiComponent.*.js")
    links = (f'<link rel="modulepreload" crossorigin href="./static/js/{path.name}">' for path in found)
    return "".join(links).encode()


@functools.cache
def _first_paint() -> bytes:
    words = (FOLDER / "first_paint.html").read_text(encoding="utf-8")
    return words.replace("ICON", (FOLDER / "icon.svg").read_text(encoding="utf-8")).encode()
