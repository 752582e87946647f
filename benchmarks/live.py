"""The live component in headless Chromium: frames and steps a second, and the time to the first frame.

The component is in the page without a server, with twenty points; training is counted over some seconds from its first
frame on, while a worker computes beside the page. On the page *Live* of a server, visitors wait from its title to the
first frame: several visits, after one that is not counted.
"""

from playwright.sync_api import Browser

from benchmarks.browser import fresh_app, headless, live_page, moment, new_page
from benchmarks.measure import Row, Settings, spread
from linearity_lab.components.live.settings import OWN, LiveSettings

NUM_POINTS = 20
SECONDS = 5.0
AIM_FRAMES, AIM_STEPS = 30, 5
CASES = ((64, 1, 0), (1024, 1, 0), (1024, 1, 3), (1024, 2, 0), (1024, 2, 3), (4096, 1, 0), (4096, 2, 0))  # m, layers, k
AIMED = 1024
VISITS = 5
POINTS = tuple((round(4 * at / (NUM_POINTS - 1) - 2, 2), round((-1) ** at * 0.5, 2)) for at in range(NUM_POINTS))
PAINTED = "each => each.live.paintedAt ?? null"
COUNTED = "each => [each.live.frames, each.live.steps, performance.now()]"


def follow(browser: Browser, settings: LiveSettings, seconds: float) -> Row:
    """Return frames and steps of one network, and milliseconds to its first frame."""
    with live_page(browser, settings) as page:
        page.wait_for_function("document.querySelector('.live')?.live.frames > 0")
        component = page.locator(".live")
        painted = component.evaluate(PAINTED)
        before = component.evaluate(COUNTED)
        page.wait_for_timeout(1000 * seconds)
        frames, steps, ms = (end - start for start, end in zip(before, component.evaluate(COUNTED), strict=True))
    rates = {"frames_per_s": round(1000 * frames / ms, 1), "steps_per_s": round(1000 * steps / ms, 1)}
    return {
        "width": settings.width,
        "hidden_layers": settings.layers,
        "bottleneck": settings.bottleneck,
        **rates,
        "steps_per_frame": round(steps / max(frames, 1), 2),
        "first_frame_ms": round(painted),
    }


def visit(browser: Browser, url: str) -> float:
    """Return seconds from the title of the page *Live* to the first frame."""
    page = new_page(browser)
    page.goto(f"{url}/live")
    component = page.locator(".live")
    component.wait_for()
    while (painted := component.evaluate(PAINTED)) is None:
        page.wait_for_timeout(50)
    waited = painted / 1000 - moment(page, "headed")
    page.close()
    return float(waited)


def measure(settings: Settings) -> Row:
    """Each network alone, after one that is not counted."""
    cases = [
        LiveSettings(width=width, layers=layers, bottleneck=narrow, target=OWN, points=POINTS)
        for width, layers, narrow in CASES
    ]
    with headless() as browser:
        follow(browser, cases[0], 0.5)
        rows = [follow(browser, case, SECONDS) for case in cases]
        with fresh_app() as (app, _):
            _, *visits = (visit(browser, f"http://{app.address}") for _ in range(1 + VISITS))
    aimed = [row for row in rows if row["width"] == AIMED]
    within = all(row["frames_per_s"] >= AIM_FRAMES and row["steps_per_frame"] >= AIM_STEPS for row in aimed)
    found = {"num_points": NUM_POINTS, "seconds": SECONDS, "within": within, "rows": rows}
    return {**found, "title_to_frame": spread(visits)}
