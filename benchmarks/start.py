"""From the start of the server to what a person sees first: ``streamlit run app.py`` on a warm disk, headless Chromium.

The browser runs already, and asks for the page as soon as the server listens; each start is a process of its own with a
store of its own. ``painted`` is the browser's own first contentful paint, the words in the page as it is served;
``titled`` the overview's title, which Streamlit's scripts draw, ``done`` the whole page.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from benchmarks import dashboard
from benchmarks.dashboard import FLAGS, READY, ROOT, TIMEOUT_MS, chromium
from benchmarks.measure import Settings, spread

PORT = 8596
URL = f"http://127.0.0.1:{PORT}"
AIM_S = 2.0
REPEATS = 5
PATIENCE_S = 60.0
# When the first heading of the page itself appeared; what the browser painted first, it tells by itself.
WATCH = """() => {
  const look = () => {
    if (document.querySelector('[data-testid="stMain"] h1')) window.titledAt ??= Date.now() / 1000;
    else requestAnimationFrame(look);
  };
  look();
}"""
PAINTED = "() => (performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime) / 1000"

reason_to_skip = dashboard.reason_to_skip


def start(browser: Browser) -> dict[str, float]:
    """Seconds from the start of the process until it listens, the page is painted, has a title, and is done."""
    with tempfile.TemporaryDirectory() as folder:
        page = browser.new_page(viewport={"width": 1440, "height": 900}, bypass_csp=True)
        page.add_init_script(f"({WATCH})()")
        began = time.time()
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={PORT}", "--server.headless=true"],
            cwd=ROOT,
            env={**os.environ, "LINEARITY_LAB_STORE": str(Path(folder) / "store")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_until_it_listens(began + PATIENCE_S)
            listening = time.time()
            page.goto(URL, wait_until="commit")
            page.wait_for_function("() => window.titledAt !== undefined", timeout=TIMEOUT_MS)
            page.wait_for_selector(READY, timeout=TIMEOUT_MS)
            done = time.time()
            at = {"listening": listening, "painted": page.evaluate(PAINTED), "titled": page.evaluate("titledAt")}
            return {name: when - began for name, when in {**at, "done": done}.items()}
        finally:
            page.close()
            server.terminate()
            server.wait(timeout=30)


def _wait_until_it_listens(deadline: float) -> None:
    while time.time() < deadline:
        try:
            with urllib.request.urlopen(URL + "/_stcore/health", timeout=1):
                return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"the server did not listen within {PATIENCE_S:.0f} s")


def measure(settings: Settings) -> dict[str, Any]:
    """Starts in turn, after one that is not counted: it fills the disk's memory and Python's."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), headless=True, args=FLAGS)
        start(browser)
        starts = [start(browser) for _ in range(REPEATS)]
        browser.close()
    return {"aim_s": AIM_S, **{name: spread([each[name] for each in starts]) for name in starts[0]}}
