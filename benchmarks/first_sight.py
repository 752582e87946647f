"""First sight of each page in Chromium.

``python -m benchmarks.first_sight`` writes the table of docs/pages.md; with names of pages it
prints their rows alone.
"""

import random
import re
import sys
import time
from collections.abc import Sequence
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, TimeoutError

from benchmarks import words
from benchmarks.browser import READY, Theme, fresh_app, headless, new_page, script
from benchmarks.contrast import contrast
from benchmarks.measure import ROOT, Row
from linearity_lab.charts.style import GUIDE_COLOR
from linearity_lab.dashboard.page_table import PAGES as ALL
from linearity_lab.runs import EXPERIMENTS

PAGE = ROOT / "docs/pages.md"
# Those that show a figure immediately.
PAGES = tuple(entry.name for entry in ALL if entry.name in EXPERIMENTS)
Screen = Literal["desktop", "phone"]
THEMES: tuple[Theme, Theme] = ("light", "dark")
SCREENS = {"desktop": (1440, 900), "phone": (390, 844)}
TIMEOUT_MS = 120_000
STILL_MS = 300
FIGURE = ".js-plotly-plot .main-svg"
HOME = "overview"  # at the root of the server
MOVING = (HOME, "live")
# Left and top of the figure, of the controls, and of the element with Run.
PLACES = """() => ['.js-plotly-plot', '.st-key-controls', '[class*="-run_place"]']
  .map(each => document.querySelector(each).getBoundingClientRect())
  .flatMap(({ left, top }) => [
    left, top + document.querySelector('[data-testid="stMain"]').scrollTop])"""
RUN = '[class*="-run_place"] button'
# Settings without a precomputed answer, on pages that preview by themselves.
PREVIEWS = {"explore": "activation=gelu&seed={}"}
FOUND = ".finding .kind >> text=/^Found$/"  # above points of these settings, not of earlier ones
MEANT = '[class*="-run_long"] button'


def inspected(page: Page, name: str) -> Row:
    """Return findings of scripts/first_sight.js once the page has settled."""
    page.wait_for_selector(READY, timeout=TIMEOUT_MS)
    page.wait_for_selector('[data-testid="stSkeleton"]', state="detached", timeout=TIMEOUT_MS)
    if name in PAGES:
        page.wait_for_selector(f"{FIGURE} >> visible=true", timeout=TIMEOUT_MS)
    before = None
    found = page.evaluate(script("first_sight"), GUIDE_COLOR)
    while found != before:
        page.wait_for_timeout(STILL_MS)
        before = found
        found = page.evaluate(script("first_sight"), GUIDE_COLOR)
    return dict(found)


def moved_by_run(page: Page, url: str) -> int:
    """Return pixels by which figure, controls or Run move during a run."""
    page.goto(f"{url}?num_seeds=1&seed=1")
    inspected(page, url.rpartition("/")[2])
    places = [page.evaluate(PLACES)]
    for named in ("Stop", "Resume|Run"):
        page.locator(RUN).first.click()
        awaited = page.locator(RUN, has_text=re.compile(named))
        awaited.or_(page.locator(MEANT)).first.wait_for(timeout=TIMEOUT_MS)
        if page.locator(MEANT).count():  # long runs need a confirmation
            page.locator(MEANT).click()
            awaited.first.wait_for(timeout=TIMEOUT_MS)
        page.wait_for_timeout(STILL_MS)
        places.append(page.evaluate(PLACES))
    return round(
        max(abs(one - other) for each in places for one, other in zip(places[0], each, strict=True))
    )


def first_mark(page: Page, url: str, query: str) -> dict[str, float]:
    """Return seconds to the first point of a preview, and layout shift.

    The seconds begin with the request of the page.
    """
    began = time.perf_counter()
    page.goto(f"{url}?{query}")
    page.wait_for_selector(FOUND, timeout=TIMEOUT_MS)
    mark_s = round(time.perf_counter() - began, 1)
    shift = inspected(page, url.rpartition("/")[2])["shift"]
    return {"mark": mark_s, "mark_shift": shift}


def least_contrast(page: Page, found: Row) -> tuple[float, float]:
    """Return the least contrast of words and of lines; infinite without any."""
    rules = Axe().run(page, options={"runOnly": ["color-contrast"]}).response
    nodes = [
        node for kind in ("passes", "violations") for rule in rules[kind] for node in rule["nodes"]
    ]
    ratios = [check["data"].get("contrastRatio") for node in nodes for check in node["any"]]
    ground = _hexadecimal(found["ground"])
    of_words = [ratio for ratio in ratios if ratio]
    of_words += [contrast(_hexadecimal(color), ground) for color in found["words"]]
    lines = [contrast(_over(ground, color, share), ground) for color, share in found["lines"]]
    return min(of_words, default=float("inf")), min(lines, default=float("inf"))


def _over(ground: str, color: str, share: float) -> str:
    """Return a color of this opacity as it appears above the ground."""
    pairs = ((int(each[at : at + 2], 16) for each in (ground, color)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(below + share * (above - below)):02X}" for below, above in pairs)


def _hexadecimal(color: str) -> str:
    """``rgb(255, 255, 255)`` as ``#FFFFFF``."""
    return "#" + "".join(f"{int(channel):02X}" for channel in re.findall(r"\d+", color)[:3])


def first_visit(browser: Browser, url: str, name: str, screen: Screen, theme: Theme) -> Row:
    """Return a new visitor's findings on one screen in one theme."""
    width, height = SCREENS[screen]
    is_phone = screen == "phone"
    shape: Row = {
        "viewport": {"width": width, "height": height},
        "has_touch": is_phone,
        "is_mobile": is_phone,
    }
    context = browser.new_context(**shape, bypass_csp=True, color_scheme=theme)
    context.add_init_script(script("motion"))
    page = context.new_page()
    page.goto(f"{url}/{'' if name == HOME else name}")
    found = inspected(page, name) | {"moves": None, "moved": None, "mark": None}
    if name in MOVING:
        page.wait_for_function("window.movedAt", timeout=TIMEOUT_MS)
        found["moves"] = round(page.evaluate("window.movedAt") / 1000, 1)
    if not is_phone:
        found["words_contrast"], found["lines_contrast"] = least_contrast(page, found)
    context.close()
    return found


def measured(browser: Browser, url: str, name: str) -> dict[Screen, Row]:
    """Return findings by screen; on the desktop the worse theme."""
    light, dark = (first_visit(browser, url, name, "desktop", theme) for theme in THEMES)
    found: dict[Screen, Row] = {"desktop": worse(light, dark)}
    found["phone"] = first_visit(browser, url, name, "phone", "light")
    if name in PAGES:
        with new_page(browser) as page:
            found["desktop"]["moved"] = moved_by_run(page, f"{url}/{name}")
    if name in PREVIEWS:
        shape: Row = {"viewport": {"width": 1440, "height": 900}, "bypass_csp": True}
        with browser.new_context(**shape) as context:
            context.add_init_script(script("motion"))
            seed = random.randrange(1000)  # no earlier preview of these settings
            query = PREVIEWS[name].format(seed)
            previewed = first_mark(context.new_page(), f"{url}/{name}", query)
        found["desktop"]["mark"] = previewed["mark"]
        found["desktop"]["shift"] = max(found["desktop"]["shift"], previewed["mark_shift"])
    return found


def worse(one: Row, other: Row) -> Row:
    """Return the larger numbers and the lesser contrasts of two measurements."""
    found = {
        name: max(one[name], value) if isinstance(value, int | float) else value
        for name, value in other.items()
    }
    return found | {
        name: min(one[name], other[name]) for name in ("words_contrast", "lines_contrast")
    }


# Title, screen, and number of a column.
COLUMNS: tuple[tuple[str, Screen, str], ...] = (
    ("controls", "desktop", "controls"),
    ("curves", "desktop", "curves"),
    ("figure at", "desktop", "figure"),
    ("its bottom", "desktop", "bottom"),
    ("layout shift", "desktop", "shift"),
    ("height", "desktop", "height"),
    ("moves after, s", "desktop", "moves"),
    ("moved by a run", "desktop", "moved"),
    ("first mark of a preview, s", "desktop", "mark"),
    ("phone: figure at", "phone", "figure"),
    ("its bottom", "phone", "bottom"),
    ("layout shift", "phone", "shift"),
    ("before the tabs", "phone", "before_tabs"),
    ("height", "phone", "height"),
    ("contrast of words", "desktop", "words_contrast"),
    ("of lines", "desktop", "lines_contrast"),
)


def cell(name: str, value: float | None) -> str:
    """Format a number of the table; a dash for none."""
    if value is None or value == float("inf"):
        return "–"
    return f"{value:.1f}" if name.endswith("contrast") else f"{value:,}"


def table(found: dict[str, dict[Screen, Row]]) -> str:
    """Return one row per page."""
    rows = [
        [page, *(cell(name, seen[screen][name]) for _, screen, name in COLUMNS)]
        for page, seen in found.items()
    ]
    return words.table(["page", *(title for title, *_ in COLUMNS)], rows)


def main(names: Sequence[str]) -> None:
    """Print rows of these pages; without names, write the whole table."""
    found = {}
    with fresh_app() as (app, _), headless() as browser:
        url = f"http://{app.address}"
        measured(browser, url, HOME)  # the server's first visit imports its modules
        # *Results* first, because later it lists the runs of other pages.
        for name in sorted(names or [entry.name for entry in ALL], key="results".__ne__):
            try:
                found[name] = measured(browser, url, name)
            except TimeoutError:  # once more
                found[name] = measured(browser, url, name)
            print(table({name: found[name]}), flush=True)
    if not names:
        head, _, _ = PAGE.read_text(encoding="utf-8").rpartition("| page |")
        PAGE.write_text(
            f"{head}{table({entry.name: found[entry.name] for entry in ALL})}\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
