"""From the start of the server to what a person sees first: ``streamlit run app.py`` on a warm disk, headless Chromium.

The browser runs already, and asks for the page as soon as the server listens; each start is a process of its own with a
store of its own. ``painted`` is the browser's own first contentful paint, the words in the page as it is served;
``titled`` the overview's title, which Streamlit's scripts draw, ``done`` the whole page.
"""

from __future__ import annotations

import time

from playwright.sync_api import Browser

from benchmarks.browser import READY, SCREEN, TIMEOUT_MS, fresh_app, headless
from benchmarks.measure import Row, Settings, spread

AIM_S = 2.0
REPEATS = 5
# When the first heading of the page itself appeared; the browser itself reports its first paint.
WATCH = """(() => {
  const look = () => {
    if (document.querySelector('[data-testid="stMain"] h1')) window.titledAt ??= Date.now() / 1000;
    else requestAnimationFrame(look);
  };
  look();
})()"""
PAINTED = "() => (performance.timeOrigin + performance.getEntriesByName('first-contentful-paint')[0].startTime) / 1000"


def start(browser: Browser) -> dict[str, float]:
    """Return seconds from the start of the process until it listens, the page is painted, has a title, and is done."""
    page = browser.new_page(viewport=SCREEN, bypass_csp=True)
    page.add_init_script(WATCH)
    began = time.time()
    with fresh_app() as (app, _):
        at = {"listening": time.time()}
        page.goto(f"http://{app.address}", wait_until="commit")
        page.wait_for_function("() => window.titledAt !== undefined", timeout=TIMEOUT_MS)
        page.wait_for_selector(READY, timeout=TIMEOUT_MS)
        done = time.time()
        at |= {"painted": page.evaluate(PAINTED), "titled": page.evaluate("titledAt"), "done": done}
        page.close()
    return {name: when - began for name, when in at.items()}


def measure(settings: Settings) -> Row:
    """Several starts, after one that is not counted: it fills the disk's memory and Python's."""
    with headless() as browser:
        _, *starts = (start(browser) for _ in range(1 + REPEATS))
    return {"aim_s": AIM_S, **{name: spread([each[name] for each in starts]) for name in starts[0]}}
