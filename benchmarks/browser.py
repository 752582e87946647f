"""Headless Chromium, a fresh dashboard, and moments of a page."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.measure import Settings
from linearity_lab.dashboard.live.settings import LiveSettings
from linearity_lab.site import write_site

READY = (
    '[data-testid="stApp"][data-test-script-state="notRunning"]'
    '[data-test-connection-state="CONNECTED"]'
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]
SCREEN: ViewportSize = {"width": 1440, "height": 900}
TIMEOUT_MS = 180_000
Theme = Literal["light", "dark"]


def script(name: str) -> str:
    """Return the text of a script in ``benchmarks/scripts``."""
    return (Path(__file__).parent / "scripts" / f"{name}.js").read_text(encoding="utf-8")


@contextmanager
def headless() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), headless=True, args=FLAGS)
        yield browser
        browser.close()


def chromium() -> str | None:
    """Return the path of the browser, or None."""
    return (
        os.environ.get("BROWSER_PATH") or shutil.which("chromium") or shutil.which("google-chrome")
    )


def reason_to_skip(settings: Settings) -> str | None:
    """Return why no browser can be measured here, or None."""
    if settings.quick:
        return "it has no quick form: it waits for a server, a worker and a browser"
    return None if chromium() else "there is no Chromium: set BROWSER_PATH to one"


def new_page(browser: Browser) -> Page:
    """Open a page that records its moments, in a new context.

    It ignores content security policies, which forbid waiting by eval.
    """
    page = browser.new_page(viewport=SCREEN, bypass_csp=True)
    page.set_default_timeout(TIMEOUT_MS)
    page.add_init_script(script("moments"))
    return page


def moment(page: Page, name: str) -> float:
    """Return seconds from a page's request to a moment (scripts/moments.js)."""
    page.wait_for_function("name => window.shown[name] !== undefined", arg=name, polling=50)
    return float(page.evaluate("name => window.shown[name]", name)) / 1000


@contextmanager
def fresh_app(port: int = 0) -> Iterator[tuple[ServedApp, Path]]:
    """A server with an empty store, and the path of that store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        with served_app(port=port, LINEARITY_LAB_STORE=str(store)) as app:
            yield app, store


@contextmanager
def live_page(
    browser: Browser, settings: LiveSettings, screen: ViewportSize = SCREEN, theme: Theme = "light"
) -> Iterator[Page]:
    """The page *Live* of the static site, opened from a disk."""
    with tempfile.TemporaryDirectory() as folder:
        next(write_site(Path(folder), lambda path, text: path.write_text(text, encoding="utf-8")))
        with browser.new_page(viewport=screen, color_scheme=theme) as page:
            page.goto(f"{(Path(folder) / 'live.html').as_uri()}?{urlencode(settings.query())}")
            page.locator(".live").wait_for()
            yield page
