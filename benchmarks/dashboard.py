"""What a person waits for in the browser: first figure, first point after Run, Stop. In headless Chromium.

Run: ``python -m benchmarks.dashboard`` (a minute; needs Chromium and playwright). The worker is warm, as it is seconds
after the server has started; each repetition asks for other seeds, so that nothing is taken from the store.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from benchmarks.measure import environment, save

ROOT = Path(__file__).parents[1]
PORT = 8597
URL = f"http://127.0.0.1:{PORT}"
READY = '[data-testid="stApp"][data-test-script-state="notRunning"][data-test-connection-state="CONNECTED"]'
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
WARM_UP_S = 15


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def first_figure(page: Page) -> float:
    """From the request of the page to a drawn figure."""

    def work() -> None:
        page.goto(f"{URL}/kernel_drift")
        page.wait_for_selector(".js-plotly-plot .main-svg", timeout=60_000)

    return seconds(work)


def first_point_and_stop(page: Page, seed: int) -> tuple[float, float]:
    """From the click on Run to "1 of 6 widths", and from the click on Stop to the sentence that it has stopped."""
    page.goto(f"{URL}/kernel_drift?seed={seed}")
    page.wait_for_selector(READY, timeout=60_000)
    page.wait_for_timeout(1000)

    def run() -> None:
        page.get_by_role("button", name="Run", exact=False).click()
        progress = page.get_by_test_id("stProgress")
        progress.filter(has_text="1 of 6 widths").or_(progress.filter(has_text="2 of 6 widths")).wait_for(
            timeout=60_000
        )

    def stop() -> None:
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("Stopped:").wait_for(timeout=60_000)

    return seconds(run), seconds(stop)


def spread(values: list[float]) -> dict[str, Any]:
    return {"median_s": statistics.median(values), "min_s": min(values), "max_s": max(values), "repeats": len(values)}


def main() -> None:
    began = environment(("jax", "numpy", "streamlit", "plotly"))
    chromium = os.environ.get("BROWSER_PATH") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium: set BROWSER_PATH to one")
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={PORT}", "--server.headless=true"],
            cwd=ROOT,
            env={**os.environ, "LINEARITY_LAB_STORE": str(Path(folder) / "store")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            start_s = seconds(_wait_until_healthy)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=FLAGS)
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                figures = [first_figure(page)]
                time.sleep(WARM_UP_S)
                figures += [first_figure(page) for _ in range(4)]
                pairs = [first_point_and_stop(page, seed) for seed in range(1000, 5000, 1000)]
                browser.close()
        finally:
            server.terminate()
            server.wait(timeout=20)
    save(
        "dashboard",
        {
            "environment": began,
            "server_start_s": start_s,
            "first_visit_to_figure_s": figures[0],
            "visit_to_figure": spread(figures[1:]),
            "run_to_first_point": spread([point for point, _ in pairs]),
            "stop": spread([stop for _, stop in pairs]),
        },
    )


def _wait_until_healthy() -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(URL + "/_stcore/health", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    sys.exit("the server did not start within 30 s")


if __name__ == "__main__":
    main()
