"""A newcomer's path through the dashboard: overview, a page, Run with small settings, export."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import READY, press_run, wait_until

pytestmark = pytest.mark.browser
SMALL = {"widths": "2,4", "num_seeds": "2", "dataset.num_samples": "6", "training.max_steps": "20", "outputs": "linear"}
WIDTHS_SHOWN = """(() => {
  const chart = document.querySelector('.js-plotly-plot');
  const seeds = chart ? chart.data.filter(trace => trace.mode === 'markers') : [];
  return seeds.length ? [...new Set(Array.from(seeds[0].x, Number))].join() : '';
})()"""


def test_from_overview_to_a_custom_figure_and_its_export(open_page, dashboard_url):
    page = open_page("/")
    page.wait_for_selector(".early", state="detached")  # has the same heading as the page
    expect(page.get_by_role("heading", name="When does a wide network become linear?")).to_be_visible()
    page.get_by_test_id("stTopNavSection").filter(has_text="Measure").click()
    page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Kernel").first.click()
    page.wait_for_url("**/kernel_change*")
    page.wait_for_selector(".js-plotly-plot .main-svg")  # from the gallery, before any run

    page.goto(f"{dashboard_url}/kernel_change?" + "&".join(f"{name}={value}" for name, value in SMALL.items()))
    page.wait_for_selector(READY)
    press_run(page)
    wait_until(page, f"{WIDTHS_SHOWN} === '2,4'")
    expect(page.get_by_test_id("job-progress")).to_have_count(0)

    page.get_by_role("button", name="Export").click()
    with page.expect_download() as numbers:
        page.get_by_role("button", name="Result, JSON").click()
    result = json.loads(Path(numbers.value.path()).read_text(encoding="utf-8"))
    assert [point["width"] for point in result["points"]] == [2, 4]
