"""Accessibility of all pages in both themes: axe-core, few controls, the figure first.

One page by keyboard alone.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page, expect

from benchmarks.browser import READY, script
from benchmarks.first_sight import PAGE as FIRST_SIGHT
from benchmarks.first_sight import PAGES as WITH_FIGURE
from benchmarks.first_sight import PREVIEWS, SCREENS, first_mark, inspected
from linearity_lab.charts.labels import MOST_CURVES
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.runs.store import Store, write_runs
from tests.browser.conftest import PHONE, new_page, serving
from tests.browser.faults import faults
from tests.dashboard.made_results import make_points, make_result

pytestmark = [pytest.mark.browser, pytest.mark.slow]
MAX_CONTROLS, MAX_SCREENS = 12, 5
# The others are in the menu, also of a page opened by its URL.
BY_URL = (
    "overview",
    "kernel_change",
)
MAX_SHIFT = 0.05  # cumulative layout shift of a visit
MAX_BOTTOM = 860  # pixels: the figure with its axis titles is complete at 1440 × 900
# Streamlit's own faults: rule → where. On a phone the groups of its menu are boxes in a list.
NOT_OURS = {"list": '[data-testid="stSidebarNav"]', "listitem": '[data-testid="stSidebarNav"]'}
# The same elements as on a screen, in other colors and sizes.
PHONE_RULES = ("color-contrast", "target-size", "scrollable-region-focusable", "aria-hidden-focus")
# Pages of experiments have one frame: a phone opens the first one, and that of graphs,
# which has an editor.
ALIKE = {*WITH_FIGURE} - {"kernel_change", "dag"}
INSIDE = "([element, place]) => Boolean(document.querySelector(element)?.closest(place))"


@pytest.fixture(scope="module")
def dashboard_folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("empty")


@pytest.fixture(scope="module")
def dashboard_url(dashboard_folder) -> Iterator[str]:
    """An empty server, since cards of stored runs add controls to the page of results."""
    with serving(dashboard_folder) as url:
        yield url


@pytest.fixture(scope="module")
def opened(browser, dashboard_url) -> Iterator[Callable[[str, str], tuple[Page, dict[str, Any]]]]:
    """A settled page on one of the screens,
    with its measurements and without forbidden requests.
    """
    pages: dict[str, Page] = {}
    forbidden: list[str] = []

    def note(shown: ConsoleMessage) -> None:
        if "Content Security Policy" in shown.text:
            forbidden.append(shown.text)

    def open_page(name: str, screen: str) -> tuple[Page, dict[str, Any]]:
        if screen not in pages:
            options = {**PHONE, "color_scheme": "dark"} if screen == "phone" else {}
            pages[screen] = new_page(browser, **options)
            pages[screen].on("console", note)
        page = pages[screen]
        if name in BY_URL or page.url == "about:blank":
            page.goto(f"{dashboard_url}/{name}")
        else:
            choose_in_menu(page, name, screen)  # a third of the work of a new visit
        page.wait_for_selector(".early", state="detached")
        found = inspected(page, name)
        assert page.locator('[data-testid="stException"]').count() == 0
        assert forbidden == []
        return page, found

    yield open_page
    for page in pages.values():
        page.context.close()


def choose_in_menu(page: Page, name: str, screen: str) -> None:
    """Follow a page's link in the top bar, or on a phone in the side menu, which stays closed."""
    if screen == "phone":
        page.locator(f'[data-testid="stSidebarNavLink"][href$="/{name}"]').dispatch_event("click")
    else:
        group = next(each.group for each in PAGES if each.name == name)
        page.get_by_test_id("stTopNavSection").filter(has_text=group).click()
        page.locator(f'[data-testid="stTopNavDropdownLink"][href$="/{name}"]').click()
    expect(page).to_have_url(re.compile(rf"/{name}(\?|$)"))


def violations(page: Page, *rules: str, **options: object) -> list[str]:
    """Serious and critical violations of these rules or of all, one per line,
    except Streamlit's own.
    """
    found = []
    # For passed rules, axe lists one element each.
    options = {
        "resultTypes": ["violations"],
        **options,
    }
    if rules:
        options["runOnly"] = list(rules)
    for rule in Axe().run(page, options=options).response["violations"]:
        if rule["impact"] not in ("serious", "critical"):
            continue
        for node in rule["nodes"]:
            where = " ".join(map(str, node["target"])) + " " + node["html"]
            place = NOT_OURS.get(rule["id"])
            if place is None or not page.evaluate(INSIDE, [str(node["target"][-1]), place]):
                found.append(f"{rule['id']}: {where[:300]} {node['failureSummary'][:200]}")
    return found


@pytest.mark.long_after(1)
@pytest.mark.parametrize(
    ("entry", "screen"),
    [
        pytest.param(entry, screen, id=f"{entry.name}-{screen}")
        for entry in PAGES
        for screen in SCREENS
        if screen == "desktop" or entry.name not in ALIKE
    ],
)
def test_every_page_is_accessible_and_shows_its_figure_first(opened, entry, screen):
    """At 1440 pixels in light, on a phone in dark."""
    page, found = opened(entry.name, screen)
    is_phone, height, has_figure = screen == "phone", SCREENS[screen][1], entry.name in WITH_FIGURE
    assert violations(page, *(PHONE_RULES if is_phone else ())) == []
    assert faults(page) == []
    assert found["controls"] <= MAX_CONTROLS
    # Logits of three classes, of the network and of its linear model.
    assert (found["curves"] or 0) <= (6 if entry.name == "explore" else MOST_CURVES)
    if not is_phone:
        counts = [
            "–" if found[each] is None else str(found[each]) for each in ("controls", "curves")
        ]
        assert counts == written(entry.name)
    # Its entries are open, so that the browser's search finds every word.
    if entry.name != "glossary":
        assert found["before_tabs"] <= MAX_SCREENS * height
    if has_figure or entry.name == "own_data":
        assert found["figure"] <= height
    if has_figure and not is_phone:
        assert found["bottom"] <= MAX_BOTTOM


@pytest.mark.parametrize("screen", SCREENS)
def test_explore_shows_the_first_mark_and_nothing_moves(browser, dashboard_url, screen):
    options = PHONE if screen == "phone" else {}
    page = new_page(browser, **options, bypass_csp=True)
    page.add_init_script(script("motion"))
    seed = 900 + list(SCREENS).index(screen)  # no earlier preview of these settings
    first_mark(page, f"{dashboard_url}/explore", PREVIEWS["explore"].format(seed))
    found = inspected(page, "explore")
    page.context.close()
    assert found["shift"] <= MAX_SHIFT
    if screen == "desktop":
        assert found["bottom"] <= MAX_BOTTOM


def written(name: str) -> list[str]:
    """Controls and curves of a page according to the table in the docs."""
    *_, rows = FIRST_SIGHT.read_text().partition("| page | controls | curves |")
    cells = (row.replace(" ", "").split("|") for row in rows.splitlines()[2:])
    return next([controls, curves] for _, page, controls, curves, *_ in cells if page == name)


@pytest.mark.long
def test_fifty_runs_are_cards_to_import_find_and_compare(open_page, tmp_path):
    store, file = Store(tmp_path / "made.sqlite"), tmp_path / "runs.jsonl"
    for seed in range(50):
        store.save_result(make_result(make_points(first_seed=seed + 1), seed=seed + 1, num_seeds=3))
    with file.open("wb") as out:
        write_runs(store, [run.digest for run in store.runs(limit=50).runs], out)
    store.close()
    page = open_page("/results")
    page.get_by_role("button", name="Import").click()
    page.locator('input[type="file"]').set_input_files(file)
    expect(page.get_by_text("50 runs imported.")).to_be_visible()
    page.keyboard.press("Escape")
    cards = page.locator(".st-key-results-cards > *")
    expect(cards.locator("img")).to_have_count(20)
    expect(page.get_by_text("1 to 20 of 50 runs")).to_be_visible()
    assert faults(page) == []
    page.get_by_label("Search").fill('"seed":17')
    page.keyboard.press("Enter")
    expect(cards).to_have_count(1)
    cards.get_by_text("First seed 17").click()
    expect(page.get_by_text("1 chosen")).to_be_visible()
    page.get_by_label("Search").fill("")
    page.keyboard.press("Enter")
    expect(cards).to_have_count(20)
    cards.filter(has_not_text="First seed 17").first.locator(
        "[data-testid=stCheckbox] label"
    ).click()
    expect(page.get_by_role("table", name="Settings that differ")).to_contain_text("First seed")
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    page.wait_for_selector(READY)
    assert violations(page) == []


def press_tab_until(page: Page, is_there: str, most: int = 200) -> None:
    """Press Tab until the JavaScript condition on ``at``, the focused element, is true."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(
            f"(() => {{ const at = document.activeElement; return Boolean({is_there}) }})()"
        ):
            return
    pytest.fail(f"the keyboard does not get to {is_there}")


@pytest.mark.long
def test_one_page_is_used_by_the_keyboard_alone(open_page):
    page = open_page(
        "/kernel_change?num_seeds=1&training.max_steps=5000&training.loss_threshold=1e-9"
        "&outputs=linear"
    )
    press_tab_until(page, "at.tagName === 'BUTTON' && at.innerText.includes('All settings')")
    page.keyboard.press("Enter")
    field = "at.tagName === 'INPUT' && at.getAttribute('aria-label') === 'Widths m'"
    press_tab_until(page, field)
    page.keyboard.press("Control+A")
    page.keyboard.type("2,3,30000")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("widths=2%2C3%2C30000"))

    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("job-progress")).to_contain_text("2 of 3 widths")

    press_tab_until(
        page,
        "at.tagName === 'BUTTON' && at.innerText.includes('Stop') && "
        "at.closest('[data-testid=stMain]')",
    )
    page.keyboard.press("Enter")
    expect(page.get_by_text("Stopped: 2 of 3 widths are done.")).to_be_visible()

    press_tab_until(page, "at.tagName === 'BUTTON' && at.innerText.includes('Export')")
    page.keyboard.press("Enter")
    press_tab_until(page, "at.tagName === 'BUTTON' && at.innerText.includes('Settings, JSON')", 40)
    assert violations(page) == []
    for name in ("kernel-change-spec.json", "kernel_change-against_width.svg"):
        with page.expect_download() as saved:
            page.keyboard.press("Enter")
        assert saved.value.suggested_filename == name
        page.keyboard.press("Escape")
        press_tab_until(page, "at.dataset.title?.startsWith('Download plot')")
