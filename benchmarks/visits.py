"""First visits in headless Chromium: server, live component, static site.

``start``: from ``streamlit run app.py`` on a warm disk, with an empty store, to the first page.
``painted`` is the browser's own first contentful paint, the words in the page as it is served;
``titled`` the overview's title, drawn by Streamlit's scripts; ``done`` the whole page. ``live``:
frames and steps a second of the component in the page without a server, with twenty points, and the
wait from the title of the page *Live* of a server to the first frame. ``site``: time and size of
the static site, and the first paint of its pages, opened from a disk.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser

from benchmarks.browser import READY, fresh_app, headless, live_page, moment, new_page
from benchmarks.measure import ROOT, Row, Settings, spread
from linearity_lab.dashboard.live.settings import OWN, LiveSettings

REPEATS = 5
AIM_START_S = 2.0


def repeated(visit: Callable[[], dict[str, float]]) -> dict[str, Row]:
    """Return spreads of several visits, after one that only fills caches."""
    _, *found = (visit() for _ in range(1 + REPEATS))
    return {name: spread([each[name] for each in found]) for name in found[0]}


def started(browser: Browser) -> dict[str, float]:
    """Return seconds from the process's start to the whole page."""
    page = new_page(browser)
    began = time.time()
    with fresh_app() as (app, _), page:
        listening = time.time() - began
        page.goto(f"http://{app.address}", wait_until="commit")
        moment(page, "titled")
        page.wait_for_selector(READY)
        done = time.time() - began
        requested = page.evaluate("performance.timeOrigin") / 1000 - began
        moments = {name: requested + moment(page, name) for name in ("painted", "titled")}
    return {"listening": listening, **moments, "done": done}


def start(settings: Settings) -> Row:
    """Several starts of the server."""
    with headless() as browser:
        return {"aim_s": AIM_START_S, **repeated(lambda: started(browser))}


NUM_POINTS = 20
SECONDS = 5.0
# (m, layers, k).
CASES = (
    (64, 1, 0),
    (1024, 1, 0),
    (1024, 1, 3),
    (1024, 2, 0),
    (1024, 2, 3),
    (4096, 1, 0),
    (4096, 2, 0),
)
POINTS = tuple(
    (round(4 * at / (NUM_POINTS - 1) - 2, 2), round((-1) ** at * 0.5, 2))
    for at in range(NUM_POINTS)
)
PAINTED = "each => each.live.paintedAt ?? null"
COUNTED = "each => [each.live.frames, each.live.steps, performance.now()]"


def follow(browser: Browser, case: tuple[int, int, int], seconds: float) -> Row:
    """Return frames and steps of one network, and its first frame."""
    width, layers, bottleneck = case
    settings = LiveSettings(
        width=width, layers=layers, bottleneck=bottleneck, target=OWN, points=POINTS
    )
    with live_page(browser, settings) as page:
        page.wait_for_function("document.querySelector('.live')?.live.frames > 0")
        component = page.locator(".live")
        painted = component.evaluate(PAINTED)
        before = component.evaluate(COUNTED)
        page.wait_for_timeout(1000 * seconds)
        frames, steps, ms = (
            end - start for start, end in zip(before, component.evaluate(COUNTED), strict=True)
        )
    network = {"width": width, "hidden_layers": layers, "bottleneck": bottleneck}
    rates = {
        "frames_per_s": round(1000 * frames / ms, 1),
        "steps_per_s": round(1000 * steps / ms, 1),
    }
    return {
        **network,
        **rates,
        "steps_per_frame": round(steps / max(frames, 1), 2),
        "first_frame_ms": round(painted),
    }


def title_to_frame(browser: Browser, url: str) -> dict[str, float]:
    """Return seconds from *Live*'s title to the first frame."""
    with new_page(browser) as page:
        page.goto(f"{url}/live")
        component = page.locator(".live")
        component.wait_for()
        while (painted := component.evaluate(PAINTED)) is None:
            page.wait_for_timeout(50)
        return {"title_to_frame": painted / 1000 - moment(page, "headed")}


def live(settings: Settings) -> Row:
    """Measure each network alone in several visits, after an uncounted one."""
    with headless() as browser:
        follow(browser, CASES[0], 0.5)
        rows = [follow(browser, case, SECONDS) for case in CASES]
        with fresh_app() as (app, _):
            visits = repeated(lambda: title_to_frame(browser, f"http://{app.address}"))
    return {"num_points": NUM_POINTS, "seconds": SECONDS, "rows": rows, **visits}


AIM_BYTES = 15_000_000
AIM_PAINT_S = 1
AIM_BUILD_S = 120
PAGES = {
    "lecture": "index.html",
    "gallery": "gallery.html",
    "one figure": "figures/liu-fig1-left.html",
}
PAGES |= {"glossary": "glossary.html", "claims": "truth.html", "Live": "live.html"}
# Whether the first figure of a page has been drawn; on pages without any, whether its scripts have
# run.
DRAWN = """() => {
  if (!document.querySelector('.place[data-chart]'))
    return performance.timing.domContentLoadedEventEnd > 0;
  return Boolean(document.querySelector('.place[data-drawn]'));
}"""


def opened(browser: Browser, file: Path) -> dict[str, float]:
    """Return seconds from a page's request to paint and figure."""
    with new_page(browser) as page:
        page.goto(file.as_uri())
        page.wait_for_function(DRAWN)
        drawn = page.evaluate("performance.now()") / 1000
        return {"painted": moment(page, "painted"), "drawn": drawn}


def site(settings: Settings) -> Row:
    """Sizes and times of the site that the command line writes."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "site"
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "linearity_lab", "site", "--out", str(folder)],
            cwd=ROOT,
            check=True,
        )
        build_s = round(time.perf_counter() - began, 1)
        with headless() as browser:
            pages = {
                title: repeated(partial(opened, browser, folder / file))
                for title, file in PAGES.items()
            }
        sizes = {
            path.relative_to(folder): path.stat().st_size
            for path in folder.rglob("*")
            if path.is_file()
        }
    figures = [size for path, size in sizes.items() if path.parent.name == "data"]
    plotly = {"plotly_bytes": sizes[Path("plotly.js")], "figures": len(figures)}
    largest = {
        "median_figure_bytes": int(statistics.median(figures)),
        "largest_figure_bytes": max(figures),
    }
    rows = [{"page": title, **found} for title, found in pages.items()]
    return {
        "build_s": build_s,
        "bytes": sum(sizes.values()),
        "files": len(sizes),
        **plotly,
        **largest,
        "rows": rows,
    }
