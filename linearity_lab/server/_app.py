"""What app.py hands to Streamlit's server."""

import asyncio
import contextlib
import importlib
import logging
import platform
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from importlib.metadata import version
from typing import Any, TypeVar

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.routing import Route
from streamlit import config

from linearity_lab.jobs import shared_jobs
from linearity_lab.jobs.profile import PROFILES, Profile, profile
from linearity_lab.server._compressed import CompressedScripts
from linearity_lab.server._first_paint import FirstPaint
from linearity_lab.server._headers import SecurityHeaders, frame_origins, security_headers
from linearity_lab.server._held_uploads import HeldUploads
from linearity_lab.server._hosts import CLOSED, LOOPBACK, AllowedHosts, ClosedPaths, allowed_hosts
from linearity_lab.server._lines import ForwardedAddress, trusted_hops
from linearity_lab.server._loading import OnceLoaded
from linearity_lab.server._logs import write_json_logs
from linearity_lab.server._operator import ROUTES, operator_token
from linearity_lab.server._ready import READY_PATH, ready
from linearity_lab.server._refreshes import OneRefreshAtATime
from linearity_lab.server._sessions import BoundedSessions
from ntk_core.environment import keep_memory_returnable
from ntk_core.errors import InvalidInput

# What the first page needs besides; loaded while the browser still loads what every page of Streamlit needs.
_FIRST_PAGE = ("linearity_lab.views.overview.parts", "pandas")
T = TypeVar("T")
IMPORT_SLICE_S = 2e-4  # how long an import may keep Python from answering
_LOADED = threading.Event()
_LOADED.set()  # unless somebody is at it
_LOG = logging.getLogger(__name__)


def routes() -> list[Route]:
    """Answers beside the pages."""
    return [Route(READY_PATH, ready, methods=["GET"]), *ROUTES]


def middleware() -> list[Middleware]:
    """Outermost first. They read their settings at the first request: by then Streamlit has set those in secrets."""
    return [
        Middleware(ForwardedAddress, hops=_hops),
        Middleware(SecurityHeaders, policy=_policy),
        Middleware(AllowedHosts, hosts=_hosts),
        Middleware(ClosedPaths, closed=lambda: CLOSED if _profile().is_shared else ()),
        Middleware(BoundedSessions, chosen=_profile),
        Middleware(HeldUploads, chosen=_profile),
        Middleware(OnceLoaded, loaded=_LOADED),
        Middleware(FirstPaint),
        Middleware(CompressedScripts),
        Middleware(OneRefreshAtATime),
    ]


def _policy() -> tuple[Mapping[str, str], bool]:
    return security_headers(_or_strict(frame_origins, ())), _profile().is_shared


def _hosts() -> tuple[str, ...]:
    return _or_strict(lambda: allowed_hosts(st.get_option("server.address")), LOOPBACK)


def _hops() -> int:
    return _or_strict(trusted_hops, 0)


def _profile() -> Profile:
    return _or_strict(profile, PROFILES["hosted"])


def _or_strict(setting: Callable[[], T], strict: T) -> T:
    """A setting of the server; one that cannot be used, of which lifespan has told, is taken as strict."""
    try:
        return setting()
    except InvalidInput:
        return strict


@contextlib.asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[None]:
    """The server listens at once and gets warm meanwhile; at the end running jobs keep their finished points."""
    chosen = _profile()
    keep_memory_returnable()
    if chosen.name == "hosted":
        write_json_logs()
    _limit_uploads(chosen)
    facts = {"profile": chosen.name, "workers": chosen.num_workers, "python": platform.python_version()}
    facts |= {name: version(name) for name in ("jax", "streamlit")}
    _LOG.info("started", extra={"facts": facts})
    for check in (profile, frame_origins, operator_token, trusted_hops, lambda: allowed_hosts(None)):
        _tell_what_is_wrong(check)
    _LOADED.clear()
    warming = asyncio.create_task(run_in_threadpool(_warm_up))
    _open_browser()
    try:
        yield
    finally:
        _LOG.info("stopping")
        await warming  # or workers would be started that nobody ends
        with contextlib.suppress(InvalidInput):
            await run_in_threadpool(lambda: shared_jobs().shutdown())
        _LOG.info("stopped")


def _warm_up() -> None:
    """What the first page waits for, in the order in which it does; the workers last, which keep a core busy."""
    patience = sys.getswitchinterval()
    sys.setswitchinterval(IMPORT_SLICE_S)  # the browser asks for some fifty files meanwhile
    try:
        with contextlib.suppress(InvalidInput):  # told below
            shared_jobs()
        for name in _FIRST_PAGE:
            importlib.import_module(name)
    finally:
        sys.setswitchinterval(patience)
        _LOADED.set()
    _tell_what_is_wrong(lambda: shared_jobs().warm_up())


def _tell_what_is_wrong(check: Callable[[], object]) -> None:
    """One line in the log for a setting of the server that cannot be used."""
    try:
        check()
    except InvalidInput as error:
        facts = {"setting": error.field, "allowed": error.allowed}
        _LOG.error("a setting of the server is wrong: %s", error, extra={"facts": facts})


def _limit_uploads(chosen: Profile) -> None:
    """What the server's door lets in: the largest file and the form around it; to the byte is the page's to say."""
    config.set_option("server.maxUploadSize", chosen.max_upload_bytes // 2**20 + 1)


def _open_browser() -> None:
    """As ``streamlit run`` does it for a script without an app of its own; a moment later, when the server answers."""
    if not st.get_option("server.headless"):
        url = f"http://{st.get_option('server.address') or 'localhost'}:{st.get_option('server.port')}"
        opening = threading.Timer(0.5, webbrowser.open, (url,))
        opening.daemon = True
        opening.start()
