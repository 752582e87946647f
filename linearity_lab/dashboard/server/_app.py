"""Lifespan, middleware and routes that app.py gives to Streamlit's server."""

import asyncio
import contextlib
import importlib
import logging
import os
import platform
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import version

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit import config, net_util
from streamlit.runtime import runtime_util
from streamlit.web.server import server_util

from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.jobs.profile import profile
from linearity_lab.dashboard.server._first_paint import FirstPaint
from linearity_lab.dashboard.server._headers import SecurityHeaders
from linearity_lab.dashboard.server._logs import write_json_logs
from linearity_lab.dashboard.server._visitor_cookie import VisitorCookie, signing_key
from linearity_lab.dashboard.server._visitors import (
    AllowedHosts,
    WebSockets,
    bound_uploads,
    is_connected,
    release_left,
    strict_profile,
)
from linearity_lab.dashboard.server.garbage import settle
from linearity_lab.environment import environment_settings
from linearity_lab.exit_codes import BAD_INPUT
from linearity_lab.memory import keep_memory_returnable
from linearity_lab.page_modules import page_folders, page_module, pages_outside
from ntk_core.errors import InvalidInput
from ntk_core.markup import printable

# Modules of the first page, imported while the browser loads Streamlit's scripts.
_FIRST_PAGE = (
    "linearity_lab.dashboard.jobs.limits",
    "linearity_lab.dashboard.pages.overview.page",
    "pandas",
)
# Loaded by others on first use: tables on pages, and the fit of the machine's speeds after the
# first finished point.
_LATE = ("pyarrow.compute", "plotly.subplots", "scipy.optimize")
EVERY_ADDRESS = ("0.0.0.0", "::")
# Megabytes of one message to a browser, such as a figure of many lines; our choice.
MAX_SENT_MB = 32
# Threads alternate after this time; after Python's 5 ms, the loop that sends to browsers waits for
# each page's thread.
SWITCH_S = 5e-4
_LOADED = threading.Event()
_LOADED.set()  # cleared during warm-up
PAGES_STEP = "loading pages"
JOBS_STEP = "starting jobs"
_FAILED_STEPS: dict[str, str] = {}  # step of the warm-up → class name of its exception
_LOG = logging.getLogger(__name__)


def routes() -> list[Route]:
    """Routes beside the pages."""
    return [Route("/api/ready", ready, methods=["GET"])]


def middleware() -> list[Middleware]:
    """Middleware, outermost first.

    Built after Streamlit has copied its secrets into the environment.
    """
    outer = [Middleware(SecurityHeaders), Middleware(AllowedHosts)]
    outer += [Middleware(VisitorCookie), Middleware(FirstPaint)]
    return [*outer, Middleware(WebSockets, loaded=_LOADED)]


async def ready(_: Request) -> JSONResponse:
    """Answer 200 if pages are loaded and a new job would be accepted, else 503 with the reason."""
    answer = await run_in_threadpool(_readiness)
    return JSONResponse(
        answer, status_code=200 if answer["ready"] else 503, headers={"Cache-Control": "no-store"}
    )


def _readiness() -> dict[str, object]:
    if not _LOADED.is_set():
        return {"ready": False, "reason": "the server is loading its pages"}
    if PAGES_STEP in _FAILED_STEPS:
        return {"ready": False, "reason": _failure(PAGES_STEP)}
    try:
        load = shared_jobs().load()
    except InvalidInput as error:
        return {"ready": False, "reason": f"a setting of the server is wrong: {error.field}"}
    except Exception as error:
        _LOG.exception("the jobs of the server cannot be read")
        return {"ready": False, "reason": f"jobs failed with {type(error).__name__}"}
    # Each page tries to start the jobs again, so an earlier failure counts only without workers.
    if load["workers"] == 0 and JOBS_STEP in _FAILED_STEPS:
        return {"ready": False, "reason": _failure(JOBS_STEP), **load}
    return {"ready": load["workers"] > 0 and load["waiting"] < load["max_waiting"], **load}


def _failure(step: str) -> str:
    return f"{step} failed with {_FAILED_STEPS[step]}; the server log has the cause"


@contextlib.asynccontextmanager
async def lifespan(_: object) -> AsyncIterator[None]:
    """Serve immediately and warm up in the background.

    At shutdown, running jobs keep their finished points.
    """
    stop_if_misconfigured()
    chosen = strict_profile()
    sys.setswitchinterval(SWITCH_S)
    keep_memory_returnable()
    if chosen.is_public:
        write_json_logs()
    # one file with its form data; pages check the exact size
    config.set_option("server.maxUploadSize", chosen.max_upload_bytes // 2**20 + 1)
    allow_large_figures()
    versions = {name: version(name) for name in ("jax", "streamlit")} | {
        "python": platform.python_version()
    }
    _LOG.info(
        "started",
        extra={"facts": {"profile": chosen.name, "workers": chosen.num_workers, **versions}},
    )
    _LOADED.clear()
    warming = asyncio.create_task(run_in_threadpool(_warm_up))
    background = [
        asyncio.create_task(bound_uploads(chosen.max_held_bytes)),
        asyncio.create_task(release_left()),
    ]
    if not chosen.is_public:  # its standard output has JSON lines only
        print_addresses()
    _open_browser()
    try:
        yield
    finally:
        _LOG.info("stopping")
        for task in background:
            task.cancel()
        await warming  # the warm-up may still start workers
        with contextlib.suppress(InvalidInput):
            await run_in_threadpool(lambda: shared_jobs().shutdown())
        _LOG.info("stopped")


def allow_large_figures() -> None:
    """Raise ``server.maxMessageSize`` for messages to browsers.

    Messages from browsers keep the limit of config.toml.

    One option limits both directions. uvicorn has taken it as the limit of received messages before
    this app is loaded. Streamlit caches it on that occasion, so its cache is emptied.
    """
    config.set_option("server.maxMessageSize", MAX_SENT_MB)
    runtime_util._max_message_size_bytes = None
    # Cached, also if the configuration file changes later.
    runtime_util.get_max_message_size_bytes()


def stop_if_misconfigured() -> None:
    """End the process before it serves if the environment is wrong, with one sentence on stderr."""
    from linearity_lab.runs.store import check_location  # loads SQLAlchemy and the specs

    try:
        if profile().is_shared:
            signing_key()
        check_location(environment_settings().store)
    except InvalidInput as error:
        print(printable(str(error)), file=sys.stderr, flush=True)
        # An exception would pass through uvicorn, which prints tracebacks instead of the sentence.
        # No worker, file or database of the lab is open yet.
        os._exit(BAD_INPUT)


def _warm_up() -> None:
    """Load the first page, then open the store and start the workers, which keep a core busy.

    A failed step is logged and reported by the readiness probe; the server still serves what works.
    """
    _FAILED_STEPS.clear()
    try:
        with _reported(PAGES_STEP):
            _load_pages()
    finally:
        _LOADED.set()
    with _reported(JOBS_STEP):
        _log_if_wrong(_start_jobs)


@contextlib.contextmanager
def _reported(step: str) -> Iterator[None]:
    """Log an exception of this step of the warm-up, and note it for the readiness probe."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        _FAILED_STEPS[step] = name
        facts = {"step": step, "cause": name}
        _LOG.exception("a step of the warm-up failed: %s: %s", step, name, extra={"facts": facts})


def _load_pages() -> None:
    """Import the first page, on a shared server all pages."""
    for name in _FIRST_PAGE:
        importlib.import_module(name)
    if strict_profile().is_shared:
        _load_every_page()
    settle()


def _load_every_page() -> None:
    """Load the modules of all pages, some 60 MiB.

    A shared server then has its memory from the start instead of growing with its first visitors.
    A local server starts earlier instead.
    """
    for name in _LATE:
        importlib.import_module(name)
    for page in [*(folder.name for folder in page_folders()), *pages_outside()]:
        page_module(page, "page")


def _start_jobs() -> None:
    jobs = shared_jobs()
    jobs.is_connected = is_connected
    jobs.warm_up()


def _log_if_wrong(setting: Callable[[], object]) -> None:
    try:
        setting()
    except InvalidInput as error:
        facts = {"setting": error.field, "allowed": error.allowed}
        _LOG.error("a setting of the server is wrong: %s", error, extra={"facts": facts})


def print_addresses() -> None:
    """Print where the dashboard is, if ``streamlit run`` started it.

    Streamlit itself would print this before it loads the app, also when a wrong environment
    then prevents the start.
    """
    if getattr(config, "_server_mode", None) != "starlette-app":
        return  # other ASGI servers print their own address
    address = st.get_option("server.address")
    if address and address not in EVERY_ADDRESS:
        print(f"\n  Linearity Lab: {server_util.get_url(address)}\n", flush=True)
        return
    print(f"\n  Linearity Lab: {server_util.get_url('localhost')}", flush=True)
    own = net_util.get_internal_ip()
    if own:
        print(f"  Other machines: {server_util.get_url(own)}\n", flush=True)


def _open_browser() -> None:
    """Open the dashboard as ``streamlit run`` does for a plain script, once the server answers."""
    if not st.get_option("server.headless"):
        host = st.get_option("server.address") or "localhost"
        url = f"http://{host}:{st.get_option('server.port')}"
        opening = threading.Timer(0.5, webbrowser.open, (url,))
        opening.daemon = True
        opening.start()
