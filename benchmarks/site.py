"""The site without a server: how long writing takes, how large it is, and when its pages show something.

Each page is opened from a disk in a fresh context of headless Chromium; times count from the request.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browser import headless, moment, new_page
from benchmarks.measure import ROOT, Row, Settings, spread

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
# Whether the first figure of a page has been drawn; on pages without any, whether its scripts have run.
DRAWN = """() => {
  if (!document.querySelector('.place[data-chart]')) return performance.timing.domContentLoadedEventEnd > 0;
  return Boolean(document.querySelector('.place[data-drawn]'));
}"""


def measure(settings: Settings) -> Row:
    """Sizes in bytes and times in seconds of what the command line writes."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "site"
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "ntk_core", "site", "--out", str(folder)], cwd=ROOT, check=True)
        build_s = time.perf_counter() - began
        with headless() as browser:
            rows = [_page(browser, folder / file, title) for title, file in PAGES.items()]
        return {"build_s": round(build_s, 1), **_sizes(folder), "rows": rows}


def _sizes(folder: Path) -> Row:
    sizes = {path.relative_to(folder): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    figures = [size for path, size in sizes.items() if path.parent.name == "data"]
    largest = {"median_figure_bytes": int(statistics.median(figures)), "largest_figure_bytes": max(figures)}
    plotly = {"plotly_bytes": sizes[Path("plotly.js")], "figures": len(figures)}
    return {"bytes": sum(sizes.values()), "files": len(sizes), **plotly, **largest}


def _page(browser: Browser, file: Path, title: str) -> Row:
    painted, drawn = [], []
    for _ in range(REPEATS):
        page = new_page(browser)
        page.goto(file.as_uri())
        page.wait_for_function(DRAWN)
        drawn.append(page.evaluate("performance.now()") / 1000)
        painted.append(moment(page, "painted"))
        page.close()
    return {"page": title, "painted": spread(painted), "drawn": spread(drawn)}
