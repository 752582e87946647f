"""Two networks side by side, in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
QUICK = "/architectures?widths=2,4&num_seeds=2&dataset.num_samples=6&training.max_steps=20"
TIMEOUT_MS = 120_000  # one worker computes all points, one after another
SHOWN = """(() => {
  const traces = Array.from(document.querySelectorAll('.js-plotly-plot')).flatMap(chart => chart.data || []);
  const seeds = name => traces.filter(t => t.mode === 'markers' && (t.name || '').startsWith(name + ':'));
  const widths = name => seeds(name).length ? new Set(Array.from(seeds(name)[0].x, Number)).size : 0;
  return {a: widths('A'), b: widths('B'), heatmaps: traces.filter(t => t.type === 'heatmap').length};
})()"""


def test_points_of_both_networks_arrive_with_their_kernels(open_page):
    page = open_page(QUICK)
    press_run(page)
    wait_until(page, f"(s => s.a === 2 && s.b === 2)({SHOWN})", timeout=TIMEOUT_MS)
    wait_until(page, f"{SHOWN}.heatmaps === 5", timeout=TIMEOUT_MS)  # A has one of infinite width
    expect(page.get_by_test_id("job-progress")).to_have_count(0, timeout=TIMEOUT_MS)
    address = page.url
    page.reload()
    wait_until(page, f"{SHOWN}.heatmaps === 5", timeout=TIMEOUT_MS)
    assert page.url == address
