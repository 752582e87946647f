"""Headless Chromium and a fresh dashboard, as every measurement in a browser starts."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from benchmarks.drills.served_app import ServedApp, served_app
from benchmarks.measure import Settings
from linearity_lab.components.live.settings import LiveSettings
from linearity_lab.site import write_site

READY = '[data-testid="stApp"][data-test-script-state="notRunning"][data-test-connection-state="CONNECTED"]'
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
SCREEN: ViewportSize = {"width": 1440, "height": 900}
TIMEOUT_MS = 180_000


@contextmanager
def headless() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), headless=True, args=FLAGS)
        yield browser
        browser.close()


def chromium() -> str | None:
    """Return the path of the browser, or None."""
    return os.environ.get("BROWSER_PATH") or shutil.which("chromium") or shutil.which("google-chrome")


def reason_to_skip(settings: Settings) -> str | None:
    """Return why there is nothing to measure in a browser here, or None."""
    if settings.quick:
        return "it has no quick form: it waits for a server, a worker and a browser"
    return None if chromium() else "there is no Chromium: set BROWSER_PATH to one"


@contextmanager
def fresh_app(port: int = 0) -> Iterator[tuple[ServedApp, Path]]:
    """A server of its own with an empty store, and the path of that store."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        with served_app(port=port, LINEARITY_LAB_STORE=str(store)) as app:
            yield app, store


@contextmanager
def live_page(browser: Browser, settings: LiveSettings, **options: Any) -> Iterator[Page]:
    """The page *Live* of the static site, opened from a disk."""
    with tempfile.TemporaryDirectory() as folder:
        next(write_site(Path(folder), lambda path, text: path.write_text(text, encoding="utf-8")))
        page = browser.new_page(**{"viewport": SCREEN, **options})
        page.goto(f"{(Path(folder) / 'live.html').as_uri()}?{urlencode(settings.query())}")
        page.locator(".live").wait_for()
        yield page
        page.close()
