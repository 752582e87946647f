"""Hessian norms in a browser: points arrive network by network, and the table grows with them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import READY, press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
QUICK = (
    "/hessian?networks=2&networks.1.kind=bottleneck&networks.1.output=linear&widths=4,8&num_seeds=2&num_trained=1"
    "&num_inputs=1&dataset.num_samples=6"
)
TIMEOUT_MS = 90_000
WIDTHS = """(() => {
  const chart = document.querySelector('.js-plotly-plot');
  const seeds = chart ? chart.data.filter(trace => trace.mode === 'markers') : [];
  return seeds.map(trace => new Set(Array.from(trace.x, Number)).size);
})()"""


def test_points_arrive_and_the_run_is_found_again_after_a_reload(open_page):
    page = open_page(QUICK)
    press_run(page)
    expect(page.get_by_test_id("job-progress")).to_be_visible(timeout=TIMEOUT_MS)
    wait_until(page, f"(w => w.length === 2 && w.every(n => n === 2))({WIDTHS})", timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("job-progress")).to_have_count(0, timeout=TIMEOUT_MS)
    expect(page.get_by_text("bottleneck", exact=False).first).to_be_visible()
    address = page.url
    page.reload()
    wait_until(page, f"(w => w.length === 2 && w.every(n => n === 2))({WIDTHS})", timeout=TIMEOUT_MS)
    assert page.url == address


def test_width_axis_starts_at_the_first_visible_value(open_page):
    page = open_page("/hessian")
    first = "10 ** (document.querySelector('.js-plotly-plot')?._fullLayout?.xaxis?.range?.[0] ?? 0)"
    wait_until(page, f"{first} > 80", timeout=TIMEOUT_MS)
    page.wait_for_selector(READY, timeout=TIMEOUT_MS)  # a chart that is drawn again forgets the click
    page.locator(".js-plotly-plot").first.locator(".traces", has_text="CNN").first.locator(".legendtoggle").click()
    wait_until(page, f"{first} > 4 && {first} < 8")
