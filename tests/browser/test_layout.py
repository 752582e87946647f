"""Few controls, the figure first, on a screen and on a phone; all settings, a chip, and what to try, by hand."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from benchmarks.first_sight import PAGE, PAGES, SCREENS, looked_at
from dashboard.charts.labels import MOST_CURVES
from dashboard.views.navigation import PAGES as ALL
from tests.browser.conftest import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 60_000
MAX_CONTROLS, MAX_SCREENS = 6, 5
KEYS = "[...document.querySelectorAll('button kbd')].filter(each => each.checkVisibility()).length"
# Labels of horizontal axes that are not level, or that touch the one beside.
TILTED = """() => [...document.querySelectorAll('.js-plotly-plot .xaxislayer-above')].filter(axis => {
  const words = [...axis.querySelectorAll('text')].filter(each => each.checkVisibility());
  const boxes = words.map(each => each.getBoundingClientRect()).sort((a, b) => a.left - b.left);
  return words.some(each => /rotate\\([^0]/.test(each.getAttribute('transform'))) ||
    boxes.slice(1).some((box, index) => box.left < boxes[index].right);
}).map(axis => axis.textContent)"""


@pytest.mark.parametrize("screen", SCREENS)
def test_every_page_has_few_controls_and_its_figure_first(browser, dashboard_url, screen):
    width, height = SCREENS[screen]
    is_phone = screen == "phone"
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=is_phone, is_mobile=is_phone, bypass_csp=True
    )
    page, found = context.new_page(), {}
    for name in (entry.name for entry in ALL):
        found[name] = looked_at(page, dashboard_url, name)
        assert (page.evaluate(KEYS) == 0) == is_phone or name not in PAGES, name
        assert page.evaluate(TILTED) == [], name
    context.close()
    asked = {name: (each["controls"], each["curves"]) for name, each in found.items()}
    assert {name: each for name, each in asked.items() if each[0] > MAX_CONTROLS or (each[1] or 0) > MOST_CURVES} == {}
    if not is_phone:
        assert {
            name: tuple("–" if each is None else str(each) for each in both) for name, both in asked.items()
        } == written()
    with_figure = {name: found[name] for name in PAGES}
    assert {name: each["figure"] for name, each in with_figure.items() if each["figure"] > height} == {}
    assert {
        name: each["before_tabs"] for name, each in with_figure.items() if each["before_tabs"] > MAX_SCREENS * height
    } == {}


def written() -> dict[str, tuple[str, ...]]:
    """Page → its controls and curves in the table."""
    *_, rows = PAGE.read_text().partition("| page | controls | curves |")
    return {
        cells[1]: (cells[2], cells[3]) for row in rows.splitlines()[2:] for cells in [row.replace(" ", "").split("|")]
    }


def test_a_setting_is_found_changed_seen_as_a_chip_and_put_back(open_page):
    page = open_page("/kernel_change")
    page.get_by_role("button", name="All settings").click()
    search = page.get_by_role("textbox", name="Search the settings")
    search.fill("noise")
    search.press("Enter")
    noise = page.get_by_role("spinbutton", name="Noise s")
    expect(noise).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_role("textbox", name="Widths m")).to_have_count(0)
    noise.fill("0.5")
    noise.press("Enter")
    wait_until(page, "location.search.includes('dataset.noise=0.5')")
    page.keyboard.press("Escape")
    chip = page.get_by_role("button", name="Noise s: 0.5")
    expect(chip).to_be_visible(timeout=TIMEOUT_MS)
    chip.click()
    expect(chip).to_have_count(0, timeout=TIMEOUT_MS)
    wait_until(page, "!location.search.includes('noise')")


def test_what_to_try_and_about_this_figure_open_by_a_click(open_page):
    page = open_page("/kernel_change")
    page.get_by_role("button", name="About this figure").first.click()
    expect(page.get_by_text("Why is finite width different?")).to_be_visible(timeout=TIMEOUT_MS)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="A narrow layer inside").click()
    wait_until(page, "location.search.includes('preset=liu-fig2')")
    expect(page.get_by_text("A narrow layer inside a wide network keeps the kernel moving")).to_be_visible(
        timeout=TIMEOUT_MS
    )
