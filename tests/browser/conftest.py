"""Fixtures: a running dashboard and a Chromium that opens its pages."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from benchmarks.browser import FLAGS, READY, SCREEN
from benchmarks.drills.served_app import served_app
from tests.compiler_flags import QUICK_ENVIRONMENT

LOG_SHOWN = 4_000  # letters of the server's log beside a page with an exception
PATIENCE_MS = 120_000  # one worker computes all points, one after another; the machine may be busy
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}

expect.set_options(timeout=PATIENCE_MS)


# Scope module, because an open Playwright keeps an event loop running in this process.
@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
        yield opened
        opened.close()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Start a server with an empty store in a folder and yield its URL."""
    settings = {
        **QUICK_ENVIRONMENT,
        "LINEARITY_LAB_STORE": str(folder / "store"),
        "LINEARITY_LAB_WORKERS": "1",
    }
    with log_of(folder).open("w") as log, served_app(log=log, **settings) as app:
        yield f"http://{app.address}"


def log_of(folder: Path) -> Path:
    """The file with what a server in this folder has printed."""
    return folder / "server.log"


@pytest.fixture(scope="session")
def dashboard_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dashboard")


@pytest.fixture(scope="session")
def dashboard_url(dashboard_folder: Path) -> Iterator[str]:
    """URL of one server for all modules, since starting one takes as long as most tests.

    Its store may hold runs.
    """
    with serving(dashboard_folder) as url:
        yield url


def new_page(browser: Browser, **options) -> Page:
    """A page of its own context, by default on a screen, that waits for a busy machine."""
    context = browser.new_context(**{"viewport": SCREEN, **options})
    context.set_default_timeout(PATIENCE_MS)
    return context.new_page()


@pytest.fixture(scope="module")
def window(browser) -> Iterator[Page]:
    """One reused page per module,
    since a new one compiles all scripts again (half of a visit's work).
    """
    page = new_page(browser)
    yield page
    page.context.close()


def forget(page: Page, url: str) -> None:
    """Leave the page, close others of its context, restore its size, clear storage and cookies."""
    for other in page.context.pages:
        if other != page:
            other.close()
    page.set_viewport_size(SCREEN)
    page.mouse.move(0, 0)
    page.goto(url + "/_stcore/health")  # another site would start another browser process
    page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.context.clear_cookies()


@pytest.fixture
def open_page(
    browser, window: Page, dashboard_url: str, dashboard_folder: Path
) -> Iterator[Callable]:
    """Open a path as a new visitor: first in the cleared window, then in separate browser contexts.

    Fail on exceptions in the page and on requests that the server's security policy forbids.
    """
    free, contexts, forbidden = [window], [window.context], []

    def note(message) -> None:
        if "Content Security Policy" in message.text:
            forbidden.append(message.text)

    def opened(path: str, *, ready: bool = True, scripts: bool = True, alone: bool = False):
        if scripts and not alone and free:
            page = free.pop()
        else:
            page = new_page(browser, java_script_enabled=scripts)
            contexts.append(page.context)
            page.on("console", note)
        page.goto(dashboard_url + path)
        if ready:
            page.wait_for_selector(READY)
        return page

    window.on("console", note)
    yield opened
    pages = [page for context in contexts for page in context.pages]
    failed = [page.url for page in pages if page.locator('[data-testid="stException"]').count()]
    for context in contexts[1:]:
        context.close()
    window.remove_listener("console", note)
    forget(window, dashboard_url)
    printed = log_of(dashboard_folder).read_text(errors="replace")
    assert failed == [], printed[-LOG_SHOWN:]
    assert forbidden == []


def wait_until(page, expression: str, timeout: float = PATIENCE_MS) -> None:
    """Poll a JavaScript expression from outside until it is true,
    since the security policy forbids eval.
    """
    deadline = time.monotonic() + timeout / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"never true: {expression}"
        page.wait_for_timeout(200)


def wait_for(page, condition: Callable[[], bool], timeout: float = PATIENCE_MS) -> None:
    """Let a page continue until a condition of this process is true."""
    deadline = time.monotonic() + timeout / 1000
    while not condition():
        assert time.monotonic() < deadline, "never true"
        page.wait_for_timeout(200)


def phone(browser, url: str, color_scheme: str = "light"):
    """Open a page on a phone and wait until it is ready."""
    page = new_page(browser, **PHONE, color_scheme=color_scheme)
    page.goto(url)
    page.wait_for_selector(READY)
    return page


class Fingers:
    """Touch input on a phone's page."""

    def __init__(self, page) -> None:
        self._session = page.context.new_cdp_session(page)

    def trace(self, *moves: Sequence[tuple[float, float]]) -> None:
        """Touch at each place of the first move, drag along the others, and release."""
        kinds = ("touchStart", *("touchMove" for _ in moves[1:]), "touchEnd")
        for kind, places in zip(kinds, (*moves, ()), strict=True):
            points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
            self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        (a, b), (c, d) = start, end
        self.trace(*([(a + part * (c - a) / 4, b + part * (d - b) / 4)] for part in range(5)))


def run_button(page):
    """The button Run or Resume of the page's settings."""
    return page.locator('[class*="-run_place"] button').first


def press_run(page) -> None:
    """Press Run, retry until the page responds, and confirm a long run."""
    before = page.url
    for _ in range(4):
        run_button(page).click()
        for _ in range(75):
            page.wait_for_timeout(200)
            if "job=" in page.url and page.url != before:
                return
            if (meant := page.get_by_role("button", name="Run everything")).count():
                meant.click()
    pytest.fail("Run did not start a run")
