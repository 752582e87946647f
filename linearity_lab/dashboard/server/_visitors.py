"""Admission of visitors.

It checks host names, that the page is of this server, and the rate of messages per session.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime

from linearity_lab.dashboard.jobs.profile import PROFILES, Profile, profile
from linearity_lab.dashboard.server.garbage import collect_left
from linearity_lab.environment import environment_settings
from ntk_core.errors import InvalidInput

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
RELEASE_S = 30.0  # between two looks for closed sessions; our choice
# Streamlit keeps a disconnected session for 30 s (config.toml), for a page that reconnects.
LEFT_S = 60.0
MAX_MESSAGE_BYTES = 1_000_000  # as in .streamlit/config.toml; a drawn graph has some kilobytes
# A dragged slider sends a burst of messages; a page runs about three times a second.
BURST = 30.0
PER_S = 3.0
_LOG = logging.getLogger(__name__)
T = TypeVar("T")


def or_strict(setting: Callable[[], T], strict: T) -> T:
    """A setting of the server; the strict value if it is invalid, which the log reports."""
    try:
        return setting()
    except InvalidInput:
        return strict


def strict_profile() -> Profile:
    """The profile of the environment, ``hosted`` if that is invalid."""
    return or_strict(profile, PROFILES["hosted"])


def allowed_hosts() -> tuple[str, ...]:
    """Host names in ``LINEARITY_LAB_HOSTS``, or ``*``.

    By default loopback if the server listens there alone.

    Raises:
        InvalidInput: for a wrong environment.
    """
    given = environment_settings().host_names
    is_alone = st.get_option("server.address") in ("localhost", "127.0.0.1", "::1")
    return given or (LOOPBACK if is_alone else ("*",))


class AllowedHosts(TrustedHostMiddleware):
    """Refuse requests for other host names (DNS rebinding); loopback names always work."""

    def __init__(self, app: ASGIApp):
        hosts = {*or_strict(allowed_hosts, LOOPBACK), *LOOPBACK}  # type: ignore[arg-type]
        super().__init__(app, hosts, www_redirect=False)  # type: ignore[arg-type]


class WebSockets:
    """ASGI middleware for web sockets: own pages only, once modules are loaded, at a bounded rate.

    Two threads that import the same modules at the same time can see them half initialized, so
    pages wait for ``loaded``. On a shared server a session may send a burst of 30 messages and then
    three a second; further messages wait. A message of more than 1 MB ends the session.
    """

    def __init__(self, app: ASGIApp, loaded: threading.Event):
        self._app = app
        self._loaded = loaded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        if not is_own_page(Headers(scope=scope)):
            await send({"type": "websocket.close", "code": 1008})
            return
        await run_in_threadpool(self._loaded.wait)
        left = BURST
        since = time.monotonic()

        async def bounded() -> Message:
            nonlocal left, since
            message = await receive()
            if len(message.get("bytes") or message.get("text") or "") > MAX_MESSAGE_BYTES:
                await send({"type": "websocket.close", "code": 1009})
                return {"type": "websocket.disconnect", "code": 1009}
            if strict_profile().is_shared:
                now = time.monotonic()
                left = min(BURST, left + (now - since) * PER_S) - 1
                since = now
                await asyncio.sleep(max(0.0, -left / PER_S))
            return message

        await self._app(scope, bounded, send)


def is_own_page(headers: Headers) -> bool:
    """Whether the origin is this very host and port, or allowed by ``server.corsAllowedOrigins``.

    Streamlit alone accepts pages of any port of this machine. Programs state no origin.
    """
    if (origin := headers.get("origin")) is None:
        return True
    allowed = {
        each.rstrip("/").lower() for each in st.get_option("server.corsAllowedOrigins") or ()
    }
    return (
        urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
        or origin.lower() in allowed
    )


def is_connected(session: str) -> bool:
    """Whether the browser of this session is connected.

    Closed and reloaded pages are not, background tabs are.
    """
    return not runtime.exists() or runtime.get_instance().is_active_session(session)


async def bound_uploads(max_bytes: int) -> None:
    """Bound Streamlit's uploaded files by ``max_bytes`` as they arrive.

    Remove those of visitors who left.
    """
    left_s: dict[str, float] = {}
    is_bounded = False

    async def bound() -> None:
        nonlocal is_bounded
        if runtime.exists():
            uploads = runtime.get_instance().uploaded_file_mgr
            if not is_bounded:
                shrink_on_arrival(uploads, max_bytes)
                is_bounded = True
            remove_left(uploads, is_connected, left_s, time.monotonic())

    await repeat(bound, 1.0)


async def repeat(work: Callable[[], Awaitable[None]], every_s: float) -> None:
    """Repeat background work of the server until it is cancelled.

    An exception is logged, once until the work succeeds again, and does not end the repetition.
    """
    is_failing = False
    while True:
        await asyncio.sleep(every_s)
        try:
            await work()
            is_failing = False
        except Exception:
            if not is_failing:
                _LOG.exception("background work of the server failed")
            is_failing = True


async def release_left() -> None:
    """Collect the objects of closed sessions, since without visitors no page does.

    Streamlit keeps a closed session for 30 s (config.toml), and drops it only when another
    session opens or closes.
    """
    known = 0

    async def release() -> None:
        nonlocal known
        if runtime.exists():
            present = len(expire_sessions(runtime.get_instance()))
            if present < known:
                await run_in_threadpool(collect_left)
            known = present

    await repeat(release, RELEASE_S)


def expire_sessions(server: Any) -> list[object]:
    """Drop sessions that were closed 30 s ago; return the others, open and recently closed."""
    manager = getattr(server, "_session_mgr", None)
    storage = getattr(getattr(manager, "_session_storage", None), "_cache", None)
    if manager is None or storage is None:  # another version of Streamlit
        return []
    storage.expire()
    return list(manager.list_sessions())


def remove_left(
    uploads: Any, is_connected: Callable[[str], bool], left_s: dict[str, float], now_s: float
) -> None:
    """Remove the files of sessions without a browser for LEFT_S; ``left_s`` records since when.

    Streamlit itself removes them when a later session connects.
    """
    held = list(uploads.file_storage)
    for session in list(left_s):
        if session not in held:
            del left_s[session]
    for session in held:
        if is_connected(session):
            left_s.pop(session, None)
        elif now_s - left_s.setdefault(session, now_s) > LEFT_S:
            files = list(uploads.file_storage[session])
            uploads.remove_session_files(session)
            for file_id in files:
                _drop_file(file_id)
            del left_s[session]


def _drop_file(file_id: str) -> None:
    # Only now: this imports NumPy, and the server listens before. A page with uploads has imported
    # it.
    from linearity_lab.dashboard.jobs.uploads import drop_file

    drop_file(file_id)


def shrink_on_arrival(uploads: Any, max_bytes: int) -> None:
    """Let each file that Streamlit stores remove older ones, until all fit into ``max_bytes``."""
    store = uploads.add_file

    def add_file(session_id: str, file: Any) -> None:
        store(session_id, file)
        shrink(uploads, max_bytes)

    shrink(uploads, max_bytes)
    uploads.add_file = add_file


def shrink(uploads: Any, max_bytes: int) -> None:
    """Remove the oldest file of the largest session repeatedly, until the rest fits.

    Only bytes that have arrived count; the size that a request claims does not.
    """
    held = {session: list(files.values()) for session, files in list(uploads.file_storage.items())}

    def num_bytes(session: str) -> int:
        return sum(len(file.data) for file in held[session])

    while sum(map(num_bytes, held)) > max_bytes:
        heaviest = max(held, key=num_bytes)
        file_id = held[heaviest].pop(0).file_id
        uploads.remove_file(heaviest, file_id)
        _drop_file(file_id)
