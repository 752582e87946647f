"""The page *Kernel* in use: run, watch, stop, reload, share."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from linearity_lab.view_modules import GROUPS
from linearity_lab.views.navigation import PAGES
from tests.browser.conftest import press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# Three quick widths, then a slow one to stop; no run reaches the threshold.
SWEEP = "/kernel_change?widths=2,3,4,30000&training.max_steps=2000&training.loss_threshold=1e-9&outputs=linear"
TIMEOUT_MS = 60_000
PLACES = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  const buttons = [...main.querySelectorAll('button')];
  const run = buttons.find(each => /Run|Resume|Stop/.test(each.innerText));
  const settings = buttons.find(each => /All settings/.test(each.innerText));
  return [run, settings, main.querySelector('.js-plotly-plot')].map(each => {
    const { x, y, width, height } = each.getBoundingClientRect();
    return [x, y + scrollY, width, height].map(Math.round);
  });
}"""
WIDTHS_SHOWN = """(() => {
  const chart = document.querySelector('.js-plotly-plot');
  const seeds = chart ? chart.data.filter(trace => trace.mode === 'markers') : [];
  return seeds.length ? new Set(Array.from(seeds[0].x, Number).filter(width => width < 5)).size : 0;
})()"""


@pytest.fixture(scope="module")
def dashboard_url(new_server: str) -> str:
    """A fresh server whose first visit is the page's own URL, without the menu."""
    return new_server


def job_of(page) -> str:
    return parse_qs(urlsplit(page.url).query)["job"][0]


def test_page_opened_by_url_has_the_whole_menu(open_page):
    page = open_page("/kernel_change")
    expect(page.get_by_test_id("stTopNavSection")).to_have_count(len(GROUPS))
    shown = []
    for group in GROUPS:
        page.get_by_test_id("stTopNavSection").filter(has_text=group).click()
        links = page.get_by_test_id("stTopNavDropdownLink")
        expect(links.first).to_be_visible()
        shown += links.all_inner_texts()
        page.keyboard.press("Escape")
        expect(links).to_have_count(0)
    assert [text.split("\n")[-1] for text in shown] == [entry.title for entry in PAGES]
    expect(page.get_by_role("heading", name="When does the tangent kernel stop moving?")).to_be_visible()


def test_points_arrive_and_one_of_two_stops_detaches(open_page):
    page = open_page(SWEEP)
    wait_until(page, "document.querySelector('.js-plotly-plot .main-svg')", timeout=TIMEOUT_MS)
    page.wait_for_timeout(1000)
    before = page.evaluate(PLACES)
    press_run(page)
    expect(page.get_by_test_id("job-progress")).to_be_visible(timeout=TIMEOUT_MS)
    assert page.evaluate(PLACES) == before, "a run moves nothing"
    seen = []
    for count in (1, 2, 3):
        wait_until(page, f"{WIDTHS_SHOWN} >= {count}", timeout=TIMEOUT_MS)
        seen.append(page.evaluate(WIDTHS_SHOWN))
    assert seen[0] < 3, "the first points were drawn before the last ones"
    assert page.evaluate(PLACES) == before
    expect(page.get_by_test_id("job-progress")).to_contain_text("3 of 4 widths")

    other = open_page(f"/kernel_change?job={job_of(page)}")
    expect(other.get_by_test_id("job-progress")).to_contain_text("of 4 widths", timeout=TIMEOUT_MS)
    other.get_by_role("button", name="All settings").click()
    expect(other.get_by_role("textbox", name="Widths m")).to_have_value("2, 3, 4, 30000")
    other.keyboard.press("Escape")
    other.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(other.get_by_text("Someone else is following this run too")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("job-progress")).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 3 of 4 widths are done.")).to_be_visible(timeout=TIMEOUT_MS)
    assert page.evaluate(PLACES) == before

    job = job_of(page)
    page.reload()
    expect(page.get_by_text("Stopped: 3 of 4 widths are done.")).to_be_visible(timeout=TIMEOUT_MS)
    assert job_of(page) == job
    wait_until(page, WIDTHS_SHOWN + " === 3", timeout=TIMEOUT_MS)
