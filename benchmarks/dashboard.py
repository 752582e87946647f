"""Waits in the browser: figures, answers to a setting, points of a run, Stop. In headless Chromium.

The worker is warm, as it is seconds after the server has started; each repetition asks for other seeds, so that nothing
is taken from the store. A streamed point's way is timed from its row in the store, which the worker writes right before
it reports ``PointFinished``, until the page shows it in its progress and its figure; both clocks are this machine's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page

from benchmarks.browser import READY, SCREEN, TIMEOUT_MS, fresh_app, headless, reason_to_skip
from benchmarks.drills.served_app import proxied
from benchmarks.measure import Row, Settings, spread
from hosting.start_nginx import find_nginx
from ntk_core import presets
from ntk_core.runs import Spec
from ntk_core.runs.store import Store
from ntk_core.settings.grammar import with_settings

PORT = 8597
URL = f"http://127.0.0.1:{PORT}"
WARM_UP_S = 15
REPEATS = 4
WAITS, SETTLE_S = 9, 8  # of what an aim is set for
# 10 Mbit/s both ways in bytes per second, and 40 ms.
LINE = {"offline": False, "latency": 40, "downloadThroughput": 10e6 / 8, "uploadThroughput": 10e6 / 8}
PRESET = "liu-fig1-left"
# A point counts when the progress line and the figure both show its width; the browser times the click itself.
WATCH = """() => {
  window.shownAt = {};
  document.addEventListener('click', event => {
    window.clickedAt ??= Date.now() / 1000;
    if (event.target.closest('button')?.textContent.includes('Stop')) window.stopAt ??= Date.now() / 1000;
  }, true);
  setInterval(() => {
    const hosts = Array.from(document.querySelectorAll('[data-testid="stBidiComponentIsolated"]'));
    const line = hosts.map(each => each.shadowRoot?.querySelector('[data-testid="job-progress"]')).find(Boolean);
    const done = line ? Number((line.textContent.match(/(\\d+) of \\d+ widths/) || [0, 0])[1]) : 0;
    const chart = document.querySelector('.js-plotly-plot');
    const seeds = chart && chart.data ? chart.data.filter(trace => trace.mode === 'markers') : [];
    const drawn = seeds.length ? new Set(Array.from(seeds[0].x, Number)).size : 0;
    const captions = Array.from(document.querySelectorAll('[data-testid="stCaptionContainer"]'));
    const stopped = captions.some(caption => caption.textContent.includes('Stopped:'));
    if (window.stopAt && stopped) window.stoppedAt ??= Date.now() / 1000;
    if (!window.clickedAt) window.before = drawn;
    if (window.clickedAt && drawn && drawn !== window.before) window.firstAt ??= Date.now() / 1000;
    const shown = drawn <= done ? drawn : 0; // before the first point the earlier figure is there, with more widths
    for (let count = 1; count <= shown; count++) window.shownAt[count] ??= Date.now() / 1000;
  }, 25);
}"""
# The end of the frame in which the figure is in the page for the first time; what drives the browser hears of it later.
PAINTED = """(() => {
  const look = () => document.querySelector('.js-plotly-plot .main-svg')
    ? requestAnimationFrame(() => setTimeout(() => { window.paintedAt = performance.now(); }))
    : requestAnimationFrame(look);
  requestAnimationFrame(look);
})()"""
LAST_STEPS = """() => {
  const charts = Array.from(document.querySelectorAll('.js-plotly-plot')).filter(chart => chart.data);
  return charts.length > 1 ? charts[1].data.map(trace => Array.from(trace.x ?? []).at(-1)).join() : null;
}"""


def skip(settings: Settings) -> str | None:
    """Return why there is nothing to measure here, or None."""
    return reason_to_skip(settings) or (None if find_nginx() else "there is no nginx: apt-get install nginx-light")


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def new_page(browser: Browser) -> Page:
    """Return a page that notes when its figure is painted; without a policy, which forbids waiting by eval."""
    page = browser.new_page(viewport=SCREEN, bypass_csp=True)
    page.add_init_script(PAINTED)
    return page


def first_figure(page: Page, url: str = URL) -> float:
    """Return seconds from the request of the page to a painted figure, by the browser's clock."""
    page.goto(f"{url}/kernel_change", wait_until="commit")
    page.wait_for_function("() => window.paintedAt !== undefined", polling=50, timeout=TIMEOUT_MS)
    return float(page.evaluate("() => window.paintedAt")) / 1000


def changed_setting(page: Page, widths: str) -> float:
    """Time from Enter in a setting to the page's answer: the whole script runs again."""
    first_figure(page)
    page.wait_for_selector(READY, timeout=TIMEOUT_MS)
    field = page.get_by_role("textbox", name="Widths m")
    panel = page.get_by_role("button", name="All settings")
    if not field.is_visible() and panel.is_visible():
        panel.click()
    field.fill(widths)

    def work() -> None:
        field.press("Enter")
        page.get_by_text("Settings changed").wait_for(timeout=TIMEOUT_MS)

    return seconds(work)


def changed_view(page: Page, axis: str) -> float:
    """Time from the choice of another axis to the redrawn figure: only the figures' fragment runs again."""
    tab = page.get_by_role("tab", name="Along training")
    if tab.count():
        tab.click()
    page.wait_for_function(f"() => ({LAST_STEPS})() !== null", timeout=TIMEOUT_MS)
    before = page.evaluate(LAST_STEPS)
    redrawn = f"before => ![null, before].includes(({LAST_STEPS})())"  # null while there is no figure

    def work() -> None:
        page.get_by_role("radio", name=axis).click()
        page.wait_for_function(redrawn, arg=before, timeout=TIMEOUT_MS)

    return seconds(work)


def first_point(page: Page, seed: int) -> float:
    """Time from the click on Run to the first marks; the worker is warm and idle again when this returns."""
    _run(page, seed, "window.firstAt")
    took = float(page.evaluate("() => window.firstAt - window.clickedAt"))
    _stop(page)
    page.wait_for_timeout(1000 * SETTLE_S)  # a worker that had to be killed is replaced
    return took


def run_and_stop(page: Page, store: Store, seed: int) -> tuple[list[float], float]:
    """Time from each point's end to its sight, and from Stop to the sentence that it stopped."""
    with finished_points(store, with_settings(presets()[PRESET], {"seed": seed})) as finished_at:
        _run(page, seed, "window.shownAt[3]")
        shown_at = {int(count): at for count, at in page.evaluate("() => window.shownAt").items()}
    streamed = [at - finished_at[count] for count, at in shown_at.items() if count in finished_at]
    if not streamed:
        raise RuntimeError("the store holds no point of the run that the page shows")
    return streamed, _stop(page)


def _run(page: Page, seed: int, until: str) -> None:
    """Run until the page knows this."""
    page.goto(f"{URL}/kernel_change?seed={seed}")
    page.wait_for_selector(READY, timeout=TIMEOUT_MS)
    page.wait_for_timeout(1000)
    page.evaluate(WATCH)
    page.get_by_role("button", name="Run", exact=False).click()
    page.wait_for_function(f"() => {until} !== undefined", polling=100, timeout=TIMEOUT_MS)


def _stop(page: Page) -> float:
    """Click on Stop; return seconds from the click to the sentence."""
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    page.wait_for_function("() => window.stoppedAt !== undefined", polling=50, timeout=TIMEOUT_MS)
    return float(page.evaluate("() => window.stoppedAt - window.stopAt"))


@contextmanager
def finished_points(store: Store, spec: Spec) -> Iterator[dict[int, float]]:
    """When the store first held this number of points, while the block runs; checked every 20 ms."""
    found: dict[int, float] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            for count in range(1, len(store.points(spec).finished()) + 1):
                found.setdefault(count, time.time())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield found
    finally:
        over.set()
        watching.join()


def visit_over_a_line(browser: Browser, url: str) -> tuple[float, int]:
    """Return seconds to a drawn figure and bytes for a new visitor over a slow line."""
    page = new_page(browser)
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", LINE)
    loaded: list[int] = []
    network.on("Network.loadingFinished", lambda event: loaded.append(event["encodedDataLength"]))
    took = first_figure(page, url)
    page.wait_for_timeout(1000)
    page.close()
    return took, sum(loaded)


def over_a_line(browser: Browser) -> Row:
    """Measure the same visit without nginx and with it, which compresses scripts, alternately."""
    with proxied(URL.removeprefix("http://")) as address:
        urls = {"plain": URL, "compressed": f"http://{address}"}
        turns = [{name: visit_over_a_line(browser, url) for name, url in urls.items()} for _ in range(REPEATS)]
    return {
        name: {**spread([turn[name][0] for turn in turns]), "bytes": max(turn[name][1] for turn in turns)}
        for name in urls
    }


def measure(settings: Settings) -> Row:
    """A server of its own, one browser, one wait after another."""
    began = time.perf_counter()
    with fresh_app(PORT) as (_, location):
        start_s = time.perf_counter() - began
        with headless() as browser:
            page = new_page(browser)
            first = first_figure(page)
            time.sleep(WARM_UP_S)
            figures = [first_figure(page) for _ in range(WAITS)]
            page.wait_for_selector(READY, timeout=TIMEOUT_MS)
            views = [changed_view(page, ("by time", "by step")[turn % 2]) for turn in range(REPEATS)]
            answers = [changed_setting(page, f"10,{20 + turn}") for turn in range(REPEATS)]
            firsts = [first_point(page, seed) for seed in range(100, 100 + WAITS)]
            store = Store(location)
            runs = [run_and_stop(page, store, seed) for seed in range(1000, 1000 * (REPEATS + 1), 1000)]
            line = over_a_line(browser)
    return {
        "server_start_s": start_s,
        "first_visit_to_figure_s": first,
        "visit_to_figure": spread(figures),
        "view_to_redrawn": spread(views),
        "setting_to_answer": spread(answers),
        "run_to_first_point": spread(firsts),
        "point_to_shown": spread([each for streamed, _ in runs for each in streamed]),
        "stop": spread([stop for _, stop in runs]),
        "over_10_mbit_s": line,
    }
