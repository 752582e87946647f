"""The live component in headless Chromium: frames and steps a second, and the time to the first frame.

The component is in the page that needs no server, with twenty points; training is counted over some seconds from
its first frame on, in which a worker computes beside the page. What a visitor waits for on the page *Live* of a server,
between the page's title and the first frame, is taken from some visits after one that is not counted.
"""

from __future__ import annotations

from playwright.sync_api import Browser

from benchmarks.browser import SCREEN, TIMEOUT_MS, fresh_app, headless, live_page
from benchmarks.measure import Row, Settings, spread
from linearity_lab.components.live.settings import OWN, LiveSettings

NUM_POINTS = 20
SECONDS = 5.0
AIM_FRAMES, AIM_STEPS = 30, 5
CASES = ((64, 1, 0), (1024, 1, 0), (1024, 1, 3), (1024, 2, 0), (1024, 2, 3), (4096, 1, 0), (4096, 2, 0))  # m, layers, k
AIMED = 1024
VISITS = 5
POINTS = tuple((round(4 * at / (NUM_POINTS - 1) - 2, 2), round((-1) ** at * 0.5, 2)) for at in range(NUM_POINTS))
# Notes when the page's title is there; scripts of the page's own policy may do so.
WATCH = """new MutationObserver((_, observer) => {
  if (!document.querySelector('h1')) return;
  window.titledAt = performance.now();
  observer.disconnect();
}).observe(document, { subtree: true, childList: true })"""
WAITED = """each => each.live.paintedAt === undefined ? null : each.live.paintedAt - window.titledAt"""
COUNTED = "each => [each.live.frames, each.live.steps, performance.now()]"


def follow(browser: Browser, settings: LiveSettings, seconds: float) -> Row:
    """Return frames and steps of one network, and the milliseconds from the navigation to its first frame."""
    with live_page(browser, settings) as page:
        page.wait_for_function("document.querySelector('.live')?.live.frames > 0")
        component = page.locator(".live")
        painted = component.evaluate("each => each.live.paintedAt")
        before = component.evaluate(COUNTED)
        page.wait_for_timeout(1000 * seconds)
        frames, steps, ms = (end - start for start, end in zip(before, component.evaluate(COUNTED), strict=True))
    return {
        "width": settings.width,
        "hidden_layers": settings.layers,
        "bottleneck": settings.bottleneck,
        "frames_per_s": round(1000 * frames / ms, 1),
        "steps_per_s": round(1000 * steps / ms, 1),
        "steps_per_frame": round(steps / max(frames, 1), 2),
        "first_frame_ms": round(painted),
    }


def visit(browser: Browser, url: str) -> float:
    """Return seconds from the title of the page *Live* to the first frame."""
    page = browser.new_page(viewport=SCREEN)
    page.add_init_script(WATCH)
    page.goto(f"{url}/live")
    component = page.locator(".live")
    component.wait_for(timeout=TIMEOUT_MS)
    while (waited := component.evaluate(WAITED)) is None:
        page.wait_for_timeout(50)
    page.close()
    return float(waited) / 1000


def measure(settings: Settings) -> Row:
    """Each network on its own, after one that is not counted."""
    cases = [
        LiveSettings(width=width, layers=layers, bottleneck=narrow, target=OWN, points=POINTS)
        for width, layers, narrow in CASES
    ]
    with headless() as browser:
        follow(browser, cases[0], 0.5)
        rows = [follow(browser, case, SECONDS) for case in cases]
        with fresh_app() as (app, _):
            _, *visits = (visit(browser, f"http://{app.address}") for _ in range(1 + VISITS))
    within = all(
        row["frames_per_s"] >= AIM_FRAMES and row["steps_per_frame"] >= AIM_STEPS
        for row in rows
        if row["width"] == AIMED
    )
    found = {"num_points": NUM_POINTS, "seconds": SECONDS, "within": within, "rows": rows}
    return {**found, "title_to_frame": spread(visits)}
