"""First sight of each page in Chromium: controls, curves, contrast, place of the figure, layout shift, length, motion.

``python -m benchmarks.first_sight`` writes the table of docs/pages.md; names of pages behind it print their rows alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, TimeoutError

from benchmarks import words
from benchmarks.browser import READY, SCREEN, fresh_app, headless
from benchmarks.contrast import contrast
from benchmarks.measure import ROOT
from linearity_lab.charts.style import GUIDE_COLOR
from linearity_lab.views.navigation import PAGES as ALL
from ntk_core.runs import EXPERIMENTS

PAGE = ROOT / "docs/pages.md"
PAGES = tuple(entry.name for entry in ALL if entry.name in EXPERIMENTS)  # those that show a figure immediately
SCREENS = {"desktop": (1440, 900), "phone": (390, 844)}
VIEWPORTS: tuple[tuple[str, Literal["light", "dark"]], ...] = (
    ("desktop", "light"),
    ("desktop", "dark"),
    ("phone", "light"),
)
TIMEOUT_MS = 120_000
STILL_MS = 300
FIGURE = ".js-plotly-plot .main-svg"
# Controls visible without a click, except in tabs; curves by name in each panel, without bands and guides.
MEASURE = """guide => {
  const kinds = ['stSelectbox', 'stMultiSelect', 'stNumberInput', 'stTextInput', 'stTextArea', 'stSlider', 'stCheckbox',
                 'stRadio', 'stButtonGroup', 'stFileUploader'];
  const seen = each => each.checkVisibility() && each.getBoundingClientRect().height > 0 &&
    !each.closest('details:not([open])');
  const ours = [...document.querySelectorAll('*')].filter(each => each.shadowRoot)
    .flatMap(each => [...each.shadowRoot.querySelectorAll('.live input, .live select')]);
  const widgets = [...kinds.flatMap(kind => [...document.querySelectorAll(`[data-testid="${kind}"]`)]), ...ours];
  const top = each => each ? Math.round(each.getBoundingClientRect().top) : null;
  const main = document.querySelector('[data-testid="stMain"]');
  const plots = [...document.querySelectorAll('.js-plotly-plot')].filter(each => each._fullData);
  const drawing = [...document.querySelectorAll('*')].map(each => each.shadowRoot?.querySelector('.graph .frame'));
  const figure = drawing.find(Boolean) ?? plots.find(seen);
  const tabs = [...document.querySelectorAll('[data-testid="stTabs"]')].find(each => top(each) > top(figure));
  const isCurve = ({ type, visible, mode, fill, x, line }) => type === 'scatter' && visible === true &&
    mode.includes('lines') && !mode.includes('text') && fill !== 'toself' && x[0] !== null && line.color !== guide;
  const curves = plots.map(plot => plot._fullData.filter(isCurve));
  const counted = curves.flatMap(each => Object.values(Object.groupBy(each, curve => curve.yaxis ?? 'y')))
    .map(each => new Set(each.map(({ legendgroup, name, line }) => `${legendgroup || name} ${line.dash}`)).size);
  return {
    controls: widgets.filter(each => seen(each) && !each.closest('[data-testid="stTabs"]')).length,
    curves: plots.length ? Math.max(0, ...counted) : null,
    lines: curves.flatMap(each => Object.values(Object.groupBy(each, curve => curve.legendgroup || curve.name)))
      .map(each => [each[0].line.color, Math.max(...each.map(curve => curve.opacity ?? 1))]),
    words: [...document.querySelectorAll('.js-plotly-plot :is(.cartesianlayer, .infolayer) text, [role="tab"] p')]
      .filter(each => seen(each) && !each.closest('.heatmap-label'))
      .map(each => getComputedStyle(each)[each.tagName === 'text' ? 'fill' : 'color']),
    ground: getComputedStyle(document.querySelector('[data-testid="stApp"]')).backgroundColor,
    figure: figure ? top(figure) + main.scrollTop : null,
    bottom: figure ? Math.round(Math.max(...[figure, plots.find(seen)].filter(Boolean)
      .map(each => each.getBoundingClientRect().bottom))) + main.scrollTop : null,
    shift: Math.round(1000 * (window.layoutShift ?? 0)) / 1000,
    before_tabs: tabs ? top(tabs) + main.scrollTop : main.scrollHeight,
    height: main.scrollHeight,
  };
}"""

# Cumulative layout shift since the first paint, as https://web.dev/cls counts it for one visit without input.
SHIFTS = """new PerformanceObserver(list => list.getEntries().filter(each => !each.hadRecentInput)
  .forEach(each => window.layoutShift = (window.layoutShift ?? 0) + each.value))
  .observe({ type: 'layout-shift', buffered: true })"""

# When a canvas is drawn for the third time: then something moves.
MOVES = """{
  let frames = 0, last = -1;
  const { stroke } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.stroke = function (...path) {
    if (document.timeline.currentTime !== last && ++frames === 3) window.movedAt = performance.now();
    last = document.timeline.currentTime;
    return stroke.apply(this, path);
  };
}"""
HOME = "overview"  # at the root of the server
MOVING = (HOME, "live")
# Left and top of the figure, of the controls, and of what holds Run.
PLACES = """() => ['.js-plotly-plot', '.st-key-controls', '[class*="-run_place"]']
  .map(each => document.querySelector(each).getBoundingClientRect())
  .flatMap(({ left, top }) => [left, top + document.querySelector('[data-testid="stMain"]').scrollTop])"""
RUN = '[class*="-run_place"] button'
MEANT = '[class*="-run_long"] button'


Found = dict[str, Any]


def looked_at(page: Page, name: str) -> Found:
    """Return what :data:`MEASURE` finds on the requested page of this name, once it has settled."""
    page.wait_for_selector(READY, timeout=TIMEOUT_MS)
    page.wait_for_selector('[data-testid="stSkeleton"]', state="detached", timeout=TIMEOUT_MS)
    if name in PAGES:
        page.wait_for_selector(f"{FIGURE} >> visible=true", timeout=TIMEOUT_MS)
    before, found = None, page.evaluate(MEASURE, GUIDE_COLOR)
    while found != before:
        page.wait_for_timeout(STILL_MS)
        before, found = found, page.evaluate(MEASURE, GUIDE_COLOR)
    return dict(found)


def moved_by_run(page: Page, url: str) -> int:
    """Return pixels by which figure, controls or Run move while a run begins, continues and is stopped."""
    page.goto(f"{url}?num_seeds=1&seed=1")
    looked_at(page, url.rpartition("/")[2])
    places = [page.evaluate(PLACES)]
    for named in ("Stop", "Resume|Run"):
        page.locator(RUN).first.click()
        awaited = page.locator(RUN, has_text=re.compile(named))
        awaited.or_(page.locator(MEANT)).first.wait_for(timeout=TIMEOUT_MS)
        if page.locator(MEANT).count():  # a long run asks first
            page.locator(MEANT).click()
            awaited.first.wait_for(timeout=TIMEOUT_MS)
        page.wait_for_timeout(STILL_MS)
        places.append(page.evaluate(PLACES))
    return round(max(abs(one - other) for each in places for one, other in zip(places[0], each, strict=True)))


def least_contrast(page: Page, found: Found) -> tuple[float, float]:
    """(words, lines): the least contrast of what is seen on a page, infinite where there is none of it."""
    rules = Axe().run(page, options={"runOnly": ["color-contrast"]}).response
    checks = [
        check for kind in ("passes", "violations") for rule in rules[kind] for node in rule["nodes"]
        for check in node["any"]
    ]  # fmt: skip
    ground = _hexadecimal(found["ground"])
    of_words = [check["data"]["contrastRatio"] for check in checks if check["data"].get("contrastRatio")]
    of_words += [contrast(_hexadecimal(color), ground) for color in found["words"]]
    lines = [contrast(_over(ground, color, share), ground) for color, share in found["lines"]]
    return min(of_words, default=float("inf")), min(lines, default=float("inf"))


def _over(ground: str, color: str, share: float) -> str:
    """Return a color of this opacity as it is seen above the ground."""
    pairs = ((int(each[at : at + 2], 16) for each in (ground, color)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(below + share * (above - below)):02X}" for below, above in pairs)


def _hexadecimal(color: str) -> str:
    """``rgb(255, 255, 255)`` as ``#FFFFFF``."""
    return "#" + "".join(f"{int(channel):02X}" for channel in re.findall(r"\d+", color)[:3])


def one_look(browser: Browser, url: str, name: str, screen: str, theme: Literal["light", "dark"]) -> Found:
    """Return what a new visitor sees of a page on one screen in one theme."""
    width, height = SCREENS[screen]
    is_phone = screen == "phone"
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=is_phone, is_mobile=is_phone, bypass_csp=True,
        color_scheme=theme,
    )  # fmt: skip
    context.add_init_script(SHIFTS + ";" + MOVES)
    page = context.new_page()
    page.goto(f"{url}/{'' if name == HOME else name}")
    found = looked_at(page, name) | {"moves": None, "moved": None}
    if name in MOVING:
        page.wait_for_function("window.movedAt", timeout=TIMEOUT_MS)
        found["moves"] = round(page.evaluate("window.movedAt") / 1000, 1)
    if not is_phone:
        found["least"] = least_contrast(page, found)
    context.close()
    return found


def measured(browser: Browser, url: str, name: str) -> dict[str, Found]:
    """Screen → what is found of this page; on the desktop the worse of light and dark."""
    found: dict[str, Found] = {}
    for screen, theme in VIEWPORTS:
        seen = one_look(browser, url, name, screen, theme)
        found[screen] = worse(found.get(screen, seen), seen)
    if name in PAGES:
        page = browser.new_page(viewport=SCREEN, bypass_csp=True)
        found["desktop"]["moved"] = moved_by_run(page, f"{url}/{name}")
        page.close()
    return found


def worse(one: Found, other: Found) -> Found:
    """Return the larger numbers of two measurements of a page, and the lesser contrasts."""
    found = {name: max(one[name], value) if isinstance(value, int | float) else value for name, value in other.items()}
    return found | ({"least": tuple(map(min, one["least"], other["least"]))} if "least" in other else {})


COLUMNS = (
    ("controls", "desktop", "controls"), ("curves", "desktop", "curves"), ("figure at", "desktop", "figure"),
    ("its bottom", "desktop", "bottom"), ("layout shift", "desktop", "shift"), ("height", "desktop", "height"),
    ("moves after, s", "desktop", "moves"), ("moved by a run", "desktop", "moved"),
    ("phone: figure at", "phone", "figure"), ("its bottom", "phone", "bottom"), ("layout shift", "phone", "shift"),
    ("before the tabs", "phone", "before_tabs"), ("height", "phone", "height"),
)  # fmt: skip


def table(found: dict[str, dict[str, Found]]) -> str:
    """Return one row per page."""
    rows = []
    for page, screens in found.items():
        cells = ["–" if (value := screens[screen][name]) is None else f"{value:,}" for _, screen, name in COLUMNS]
        least = ["–" if least == float("inf") else f"{least:.1f}" for least in screens["desktop"]["least"]]
        rows.append([page, *cells, *least])
    return words.table(["page", *(title for title, *_ in COLUMNS), "contrast of words", "of lines"], rows)


def main(names: Sequence[str]) -> None:
    """Measure these pages and print a row of each; without names, measure every page and write the table."""
    found = {}
    with fresh_app() as (app, _), headless() as browser:
        url = f"http://{app.address}"
        measured(browser, url, HOME)  # the server's first visit imports its modules
        # *Results* comes first: later it lists the runs of the other pages.
        for name in sorted(names or [entry.name for entry in ALL], key="results".__ne__):
            try:
                found[name] = measured(browser, url, name)
            except TimeoutError:  # once more
                found[name] = measured(browser, url, name)
            print(table({name: found[name]}), flush=True)
    if not names:
        head, _, _ = PAGE.read_text(encoding="utf-8").rpartition("| page |")
        PAGE.write_text(f"{head}{table({entry.name: found[entry.name] for entry in ALL})}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
