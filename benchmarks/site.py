"""The site without a server: how long it takes to be written, how large it is, and when its pages show something.

Each page is opened from a disk in a fresh context of headless Chromium, in turn; times are counted from the request.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from benchmarks import dashboard
from benchmarks.dashboard import headless
from benchmarks.drills.report import ROOT
from benchmarks.measure import Settings, spread

AIM_BYTES, AIM_PAINT_S, AIM_BUILD_S = 15_000_000, 1, 120
PAGES = {
    "lecture": "index.html",
    "gallery": "gallery.html",
    "one figure": "figures/liu-fig1-left.html",
    "glossary": "glossary.html",
    "claims": "truth.html",
    "Live": "live.html",
}
REPEATS = 5
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# When the first figure of a page has been drawn; on pages without any, when its scripts have run.
DRAWN = """() => {
  if (!document.querySelector('.place[data-chart]')) return performance.timing.domContentLoadedEventEnd > 0;
  return Boolean(document.querySelector('.place[data-drawn]'));
}"""

reason_to_skip = dashboard.reason_to_skip


def measure(settings: Settings) -> dict[str, Any]:
    """Sizes in bytes, times in seconds; the folder is written by the command that people type."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "site"
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "ntk_core", "site", "--out", str(folder)], cwd=ROOT, check=True)
        build_s = time.perf_counter() - began
        with headless() as browser:
            rows = [_page(browser, folder, title, settings) for title in PAGES]
        return {"build_s": round(build_s, 1), **_sizes(folder), "rows": rows}


def _sizes(folder: Path) -> dict[str, Any]:
    sizes = {path.relative_to(folder): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    figures = [size for path, size in sizes.items() if path.parent.name == "data"]
    return {
        "bytes": sum(sizes.values()),
        "files": len(sizes),
        "plotly_bytes": sizes[Path("plotly.js")],
        "figures": len(figures),
        "median_figure_bytes": int(statistics.median(figures)),
        "largest_figure_bytes": max(figures),
    }


def _page(browser: Browser, folder: Path, title: str, settings: Settings) -> dict[str, Any]:
    painted, drawn = [], []
    for _ in range(1 if settings.quick else REPEATS):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.goto((folder / PAGES[title]).as_uri())
        page.wait_for_function(DRAWN)
        drawn.append(page.evaluate("performance.now()") / 1000)
        page.wait_for_function(PAINTED)
        painted.append(page.evaluate(PAINTED) / 1000)
        context.close()
    return {"page": title, "painted": spread(painted), "drawn": spread(drawn)}
