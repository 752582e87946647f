"""Waits in headless Chromium: figures, settings, points of a run, Stop.

The worker is warm, as it is seconds after the start of a server; each repetition has other seeds,
so that no result is stored. A streamed point's delay counts from its row in the store, which the
worker writes right before it reports ``PointFinished``, until the page shows it in its progress and
its figure; both clocks are this machine's.
"""

import time
from collections.abc import Callable

from playwright.sync_api import Page

from benchmarks.browser import READY, fresh_app, headless, moment, new_page, script
from benchmarks.drills.served_app import repeated
from benchmarks.measure import Row, Settings, spread
from benchmarks.peers.side import timed
from linearity_lab import presets
from linearity_lab.runs.store import Store
from linearity_lab.settings.grammar import with_settings

PORT = 8597
URL = f"http://127.0.0.1:{PORT}"
WARM_UP_S = 15
REPEATS = 4
# Of waits with a stated goal.
WAITS = 9
SETTLE_S = 8
PRESET = "liu-fig1-left"


def seconds(work: Callable[[], object]) -> float:
    return timed(work, weigh=False)[1]


def first_figure(page: Page, url: str = URL) -> float:
    """Return seconds from the page's request to a painted figure."""
    page.goto(f"{url}/kernel_change", wait_until="commit")
    return moment(page, "figure")


def changed_setting(page: Page, widths: str) -> float:
    """Time the page's answer to Enter in a setting."""
    first_figure(page)
    page.wait_for_selector(READY)
    field = page.get_by_role("textbox", name="Widths m")
    panel = page.get_by_role("button", name="All settings")
    if not field.is_visible() and panel.is_visible():
        panel.click()
    field.fill(widths)

    def work() -> None:
        field.press("Enter")
        page.get_by_text("Settings changed").wait_for()

    return seconds(work)


def first_point(page: Page, seed: int) -> float:
    """Time the first marks after Run; leave an idle worker."""
    _run(page, seed, "window.firstAt")
    took = float(page.evaluate("() => window.firstAt - window.clickedAt"))
    _stop(page)
    page.wait_for_timeout(1000 * SETTLE_S)  # a worker that had to be killed is replaced
    return took


def run_and_stop(page: Page, store: Store, seed: int) -> tuple[list[float], float]:
    """Time each point's display after its end, and Stop."""
    points = store.points(with_settings(presets()[PRESET], {"seed": seed}))
    finished_at: dict[int, float] = {}

    def note() -> None:
        for count in range(1, len(points.finished()) + 1):
            finished_at.setdefault(count, time.time())

    with repeated(note, every_s=0.02):
        _run(page, seed, "window.shownAt[3]")
        shown_at = {int(count): at for count, at in page.evaluate("() => window.shownAt").items()}
    streamed = [at - finished_at[count] for count, at in shown_at.items() if count in finished_at]
    if not streamed:
        raise RuntimeError("the store holds no point of the run that the page shows")
    return streamed, _stop(page)


def _run(page: Page, seed: int, until: str) -> None:
    """Run until an expression of the page is defined."""
    page.goto(f"{URL}/kernel_change?seed={seed}")
    page.wait_for_selector(READY)
    page.wait_for_timeout(1000)
    page.evaluate(script("run"))
    page.get_by_role("button", name="Run", exact=False).click()
    page.wait_for_function(f"() => {until} !== undefined", polling=100)


def _stop(page: Page) -> float:
    """Click on Stop; return seconds from the click to the sentence."""
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    page.wait_for_function("() => window.stoppedAt !== undefined", polling=50)
    return float(page.evaluate("() => window.stoppedAt - window.stopAt"))


def measure(settings: Settings) -> Row:
    """Measure all waits sequentially, with a fresh server and one browser."""
    with fresh_app(PORT) as (_, location), headless() as browser:
        page = new_page(browser)
        first = first_figure(page)
        time.sleep(WARM_UP_S)
        waits = {"visit_to_figure": [first_figure(page) for _ in range(WAITS)]}
        page.wait_for_selector(READY)
        waits["setting_to_answer"] = [
            changed_setting(page, f"10,{20 + turn}") for turn in range(REPEATS)
        ]
        waits["run_to_first_point"] = [first_point(page, seed) for seed in range(100, 100 + WAITS)]
        store = Store(location)
        runs = [run_and_stop(page, store, seed) for seed in range(1000, 1000 * (REPEATS + 1), 1000)]
        waits["point_to_shown"] = [each for streamed, _ in runs for each in streamed]
        waits["stop"] = [stop for _, stop in runs]
    spreads = {name: spread(each) for name, each in waits.items()}
    return {"first_visit_to_figure_s": first, **spreads}
