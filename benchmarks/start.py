"""From the start of the server to the first page: ``streamlit run app.py`` on a warm disk, headless Chromium.

The browser runs already, and requests the page as soon as the server listens; each start is a new process with an
empty store. ``painted`` is the browser's own first contentful paint, the words in the page as it is served; ``titled``
the overview's title, drawn by Streamlit's scripts; ``done`` the whole page.
"""

import time

from playwright.sync_api import Browser

from benchmarks.browser import READY, fresh_app, headless, moment, new_page
from benchmarks.measure import Row, Settings, spread

AIM_S = 2.0
REPEATS = 5


def start(browser: Browser) -> dict[str, float]:
    """Return seconds from the start of the process to listening, paint, title and the whole page."""
    page = new_page(browser)
    began = time.time()
    with fresh_app() as (app, _):
        listening = time.time() - began
        page.goto(f"http://{app.address}", wait_until="commit")
        moment(page, "titled")
        page.wait_for_selector(READY)
        done = time.time() - began
        requested = page.evaluate("performance.timeOrigin") / 1000 - began
        moments = {name: requested + moment(page, name) for name in ("painted", "titled")}
        page.close()
    return {"listening": listening, **moments, "done": done}


def measure(settings: Settings) -> Row:
    """Several starts, after one that only fills caches of the disk and of Python."""
    with headless() as browser:
        _, *starts = (start(browser) for _ in range(1 + REPEATS))
    return {"aim_s": AIM_S, **{name: spread([each[name] for each in starts]) for name in starts[0]}}
