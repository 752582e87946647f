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
    settings = {**QUICK_ENVIRONMENT, "LINEARITY_LAB_STORE": str(folder / "store"), "LINEARITY_LAB_WORKERS": "1"}
    with served_app(**settings) as app:
        yield f"http://{app.address}"


@pytest.fixture(scope="session")
def dashboard_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of one server for all modules, since starting one takes as long as most tests; its store may hold runs."""
    with serving(tmp_path_factory.mktemp("dashboard")) as url:
        yield url


def new_page(browser: Browser, **options) -> Page:
    """A page of its own context, by default on a screen, that waits for a busy machine."""
    context = browser.new_context(**{"viewport": SCREEN, **options})
    context.set_default_timeout(PATIENCE_MS)
    return context.new_page()


class Window:
    """A reused browser page, since a new one compiles all scripts again (half of a visit's work)."""

    def __init__(self, browser, url: str) -> None:
        self._url = url
        self.page = new_page(browser)

    def forget(self) -> None:
        """Leave the page and clear its storage and cookies."""
        for other in self.page.context.pages:
            if other != self.page:
                other.close()
        self.page.mouse.move(0, 0)
        self.page.goto(self._url + "/_stcore/health")  # another site would start another browser process
        self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.context.clear_cookies()


@pytest.fixture(scope="module")
def window(browser, dashboard_url: str) -> Iterator[Window]:
    """One reused page per module."""
    opened = Window(browser, dashboard_url)
    yield opened
    opened.page.context.close()


@pytest.fixture
def open_page(request: pytest.FixtureRequest, browser, dashboard_url: str) -> Iterator[Callable]:
    """Open a path as a new visitor: first in the cleared window, then in separate browser contexts.

    Fail on exceptions in the page and on requests that the server's security policy forbids.
    """
    windows: list[Window] = []
    contexts, forbidden = [], []

    def note(message) -> None:
        if "Content Security Policy" in message.text:
            forbidden.append(message.text)

    def opened(path: str, *, ready: bool = True, scripts: bool = True, alone: bool = False):
        if scripts and not alone and not windows:
            windows.append(request.getfixturevalue("window"))
            page = windows[0].page
        else:
            page = new_page(browser, java_script_enabled=scripts)
            contexts.append(page.context)
        page.on("console", note)
        page.goto(dashboard_url + path)
        if ready:
            page.wait_for_selector(READY)
        return page

    yield opened
    seen = [page for context in (*contexts, *(each.page.context for each in windows)) for page in context.pages]
    failed = [page.url for page in seen if page.locator('[data-testid="stException"]').count()]
    for context in contexts:
        context.close()
    for each in windows:
        each.page.remove_listener("console", note)
        each.forget()
    assert failed == []
    assert forbidden == []


def wait_until(page, expression: str, timeout: float = PATIENCE_MS) -> None:
    """Poll a JavaScript expression from outside until it is true, since the security policy forbids eval."""
    deadline = time.monotonic() + timeout / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"never true: {expression}"
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
    return page.locator('[class*="st-key-"][class$="-run"] button, [class*="-run "] button').first


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
