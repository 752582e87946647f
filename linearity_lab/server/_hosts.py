"""The names under which the server answers."""

import functools
import os
import re
from collections.abc import Callable
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ntk_core.errors import InvalidInput

HOSTS_VARIABLE = "LINEARITY_LAB_HOSTS"
CLOSED = ("/_stcore/metrics", "/_stcore/script-health-check")  # for the operator of a server, not for its visitors
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_NAME = re.compile(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\Z|\[[0-9A-Fa-f:.]+\]\Z")


class AllowedHosts:
    """ASGI middleware that refuses requests for another host with one sentence.

    A page of another site whose name is made to lead here would otherwise pass for this one (DNS rebinding).

    Args:
        hosts: asked once, at the first request: names without ports, ``*.example.org`` for all below one; empty for
            any. The loopback names always work, since nobody can make a browser send them here but the one who
            sits at it.
    """

    def __init__(self, app: ASGIApp, hosts: Callable[[], tuple[str, ...]]):
        self._app, self._hosts = app, functools.cache(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] in ("http", "websocket") else None
        own_page = scope["type"] != "websocket" or headers is None or is_own_page(headers)
        if headers is None or (own_page and self._allows(headers.get("host", ""))):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            sentence = f"This host name is not served here; {HOSTS_VARIABLE} says which ones are.\n"
            await PlainTextResponse(sentence, status_code=400)(scope, receive, send)

    def _allows(self, given: str) -> bool:
        hosts = self._hosts()
        if not hosts:
            return True
        host = re.sub(r":\d*\Z", "", given).lower().rstrip(".")
        return host in LOOPBACK or any(
            host == allowed or (allowed.startswith("*.") and host.endswith(allowed[1:]))
            for allowed in map(str.lower, hosts)
        )


class ClosedPaths:
    """ASGI middleware that answers as if there were nothing at some paths.

    Args:
        closed: asked once, at the first request: how such paths end.
    """

    def __init__(self, app: ASGIApp, closed: Callable[[], tuple[str, ...]]):
        self._app, self._closed = app, functools.cache(closed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._closed() and scope["path"].rstrip("/").endswith(self._closed()):
            await PlainTextResponse("Not found\n", status_code=404)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def is_own_page(headers: Headers) -> bool:
    """Whether who asks is a page of this very host and port, or of one that Streamlit is told to allow.

    Programs, which are no pages, state no origin. Streamlit by itself lets pages of any port of this machine in.
    """
    origin = headers.get("origin")
    if origin is None:
        return True
    allowed = {each.rstrip("/").lower() for each in st.get_option("server.corsAllowedOrigins") or ()}
    return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() or origin.lower() in allowed


def allowed_hosts(address: str | None) -> tuple[str, ...]:
    """What ``LINEARITY_LAB_HOSTS`` names; without it, loopback alone where the server listens there alone.

    Args:
        address: where the server listens, None for everywhere.

    Raises:
        InvalidInput: for anything but names of hosts.
    """
    given = [name for name in re.split(r"[,\s]+", os.environ.get(HOSTS_VARIABLE, "").strip()) if name]
    for name in given:
        if name != "*" and not _NAME.match(name):
            raise InvalidInput(HOSTS_VARIABLE, name, "names such as lab.example.org, separated by commas, or *")
    if "*" in given:
        return ()
    if given:
        return tuple(given)
    return LOOPBACK if address in ("localhost", "127.0.0.1", "::1") else ()
