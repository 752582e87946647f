"""What a page asks of whoever opens it: controls at first sight, where the figure begins, how long it is. In Chromium.

``python -m benchmarks.first_sight`` writes the table of docs/pages.md.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from benchmarks.dashboard import FLAGS, READY, chromium

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/pages.md"
PAGES = (
    "kernel_change", "hessian", "architectures", "depth_width", "dag", "dynamics", "learning_rate", "lazy",
    "optimization", "early_time",
)  # fmt: skip
SCREENS = {"desktop": (1440, 900), "phone": (390, 844)}
TIMEOUT_MS = 120_000
# Whatever takes a value and is seen without a click, the sidebar included, but for what lies in a tab.
MEASURE = """() => {
  const kinds = ['stSelectbox', 'stMultiSelect', 'stNumberInput', 'stTextInput', 'stTextArea', 'stSlider', 'stCheckbox',
                 'stButtonGroup', 'stFileUploader'];
  const seen = each => each.checkVisibility() && each.getBoundingClientRect().height > 0 &&
    !each.closest('details:not([open])');
  const widgets = kinds.flatMap(kind => [...document.querySelectorAll(`[data-testid="${kind}"]`)]);
  const top = each => each ? Math.round(each.getBoundingClientRect().top) : null;
  const main = document.querySelector('[data-testid="stMain"]');
  const figure = [...document.querySelectorAll('.js-plotly-plot')].find(seen);
  const tabs = [...document.querySelectorAll('[data-testid="stTabs"]')].find(each => top(each) > top(figure));
  return {
    controls: widgets.filter(each => seen(each) && !each.closest('[data-testid="stTabs"]')).length,
    figure: top(figure) + main.scrollTop,
    before_tabs: tabs ? top(tabs) + main.scrollTop : main.scrollHeight,
    height: main.scrollHeight,
  };
}"""


@contextmanager
def served(root: Path) -> Iterator[str]:
    """The address of a server of the checkout at ``root``."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", "--server.headless=true"],
            cwd=root,
            env={**os.environ, "LINEARITY_LAB_STORE": f"{folder}/store", "PYTHONPATH": str(root)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            for _ in range(600):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=20)


def measured(browser: Browser, url: str) -> dict[str, dict[str, dict[str, int]]]:
    """Page → screen → what :data:`MEASURE` finds."""
    found: dict[str, dict[str, dict[str, int]]] = {page: {} for page in PAGES}
    for screen, (width, height) in SCREENS.items():
        is_phone = screen == "phone"
        context = browser.new_context(
            viewport={"width": width, "height": height}, has_touch=is_phone, is_mobile=is_phone, bypass_csp=True
        )
        page = context.new_page()
        for name in PAGES:
            page.goto(f"{url}/{name}")
            page.wait_for_selector(READY, timeout=TIMEOUT_MS)
            page.wait_for_selector(".js-plotly-plot .main-svg >> visible=true", timeout=TIMEOUT_MS)
            page.wait_for_timeout(1000)
            found[name][screen] = page.evaluate(MEASURE)
        context.close()
    return found


def table(found: dict[str, dict[str, dict[str, int]]]) -> list[str]:
    """One row per page."""
    columns = (
        ("controls", "desktop", "controls"), ("figure at", "desktop", "figure"), ("height", "desktop", "height"),
        ("phone: figure at", "phone", "figure"), ("before the tabs", "phone", "before_tabs"),
        ("height", "phone", "height"),
    )  # fmt: skip
    rows = [f"| page | {' | '.join(title for title, *_ in columns)} |", "|---|" + "---|" * len(columns)]
    return rows + [
        f"| {page} | {' | '.join(f'{found[page][screen][name]:,}' for _, screen, name in columns)} |" for page in PAGES
    ]


def main() -> None:
    """Measure every page, and write the table."""
    with sync_playwright() as playwright, served(ROOT) as url:
        browser = playwright.chromium.launch(executable_path=chromium(), headless=True, args=FLAGS)
        found = measured(browser, url)
        browser.close()
    head, _, _ = PAGE.read_text(encoding="utf-8").partition("| page |")
    PAGE.write_text(head + "\n".join(table(found)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
