"""Few controls, the figure first, on a screen and on a phone; all settings, a chip, and what to try, by hand."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from benchmarks.first_sight import MEASURE, PAGES, SCREENS
from tests.browser.conftest import READY, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 60_000
MAX_CONTROLS, MAX_SCREENS = 6, 5
FIRST_BELOW = ("dag",)  # its drawn graph stands between Run and what is measured of it
KEYS = "[...document.querySelectorAll('button kbd')].filter(each => each.checkVisibility()).length"


@pytest.mark.parametrize("screen", SCREENS)
def test_every_page_has_few_controls_and_its_figure_first(browser, dashboard_url, screen):
    width, height = SCREENS[screen]
    is_phone = screen == "phone"
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=is_phone, is_mobile=is_phone, bypass_csp=True
    )
    page, found = context.new_page(), {}
    for name in PAGES:
        page.goto(f"{dashboard_url}/{name}")
        page.wait_for_selector(READY, timeout=TIMEOUT_MS)
        page.wait_for_selector(".js-plotly-plot .main-svg >> visible=true", timeout=TIMEOUT_MS)
        page.wait_for_timeout(500)
        found[name] = page.evaluate(MEASURE)
        assert (page.evaluate(KEYS) == 0) == is_phone, name
    context.close()
    assert {name: each["controls"] for name, each in found.items() if each["controls"] > MAX_CONTROLS} == {}
    assert {name: each["figure"] for name, each in found.items() if each["figure"] > height} == {}
    assert {
        name: each["before_tabs"] for name, each in found.items() if each["before_tabs"] > MAX_SCREENS * height
    } == {}


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
