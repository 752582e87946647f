"""Security headers on every answer; the policy lets Streamlit and Plotly work and nothing else in."""

import base64
import functools
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from linearity_lab.server._first_paint import OWN_SCRIPT
from ntk_core.errors import InvalidInput

FRAMES_VARIABLE = "LINEARITY_LAB_FRAME_ANCESTORS"
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_FRAME_ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9.-]+(:\d{1,5})?\Z")
_UNUSED = (
    "accelerometer",
    "camera",
    "geolocation",
    "gyroscope",
    "magnetometer",
    "microphone",
    "midi",
    "payment",
    "usb",
)


class SecurityHeaders:
    """ASGI middleware that states, on every answer, what a browser may do with it.

    Args:
        policy: asked once, at the first answer: the headers, see :func:`security_headers`, and whether browsers are to
            come back by HTTPS only, which is said on answers that went out by HTTPS.
    """

    def __init__(self, app: ASGIApp, policy: Callable[[], tuple[Mapping[str, str], bool]]):
        self._app, self._policy = app, functools.cache(policy)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stated, strict_transport = self._policy()
        secure = scope.get("scheme") == "https"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in stated.items():
                    headers[name] = value
                if secure:  # browsers complain about it on a plain connection
                    headers["Cross-Origin-Opener-Policy"] = "same-origin"
                if secure and strict_transport:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        await self._app(scope, receive, send_with_headers)


def security_headers(frames: tuple[str, ...] = ()) -> Mapping[str, str]:
    """Name → value; ``frames`` are the origins whose pages may show this one inside them."""
    policy = {
        "default-src": "'self'",
        # Streamlit loads the scripts of a page's own components from memory, as blobs; one of them assembles its
        # products of large matrices as WebAssembly, which can reach nothing that its script could not.
        "script-src": " ".join(["'self'", "blob:", "'wasm-unsafe-eval'", *map(_hash, [OWN_SCRIPT, *inline_scripts()])]),
        # Streamlit, Plotly and app.py write style elements and attributes while a page is drawn.
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self' data:",
        "connect-src": "'self'",
        "worker-src": "'self' blob:",
        "object-src": "'none'",
        "base-uri": "'self'",
        "form-action": "'self'",
        "frame-ancestors": " ".join(["'self'", *frames]),
    }
    headers = {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",  # the URL holds settings
        "Permissions-Policy": ", ".join(f"{name}=()" for name in _UNUSED),
    }
    return headers if frames else {**headers, "X-Frame-Options": "SAMEORIGIN"}


def frame_origins() -> tuple[str, ...]:
    """The origins that ``LINEARITY_LAB_FRAME_ANCESTORS`` names, separated by spaces or commas.

    Raises:
        InvalidInput: for anything but an origin such as ``https://huggingface.co``.
    """
    given = re.split(r"[,\s]+", os.environ.get(FRAMES_VARIABLE, "").strip())
    for origin in filter(None, given):
        if not _FRAME_ORIGIN.match(origin):
            raise InvalidInput(FRAMES_VARIABLE, origin, "origins such as https://huggingface.co, separated by commas")
    return tuple(filter(None, given))


def inline_scripts() -> list[str]:
    """The scripts inside the one HTML page that Streamlit serves, as this version of it has them."""
    page = Path(st.__file__).parent / "static" / "index.html"
    return _INLINE_SCRIPT.findall(page.read_text(encoding="utf-8"))


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
