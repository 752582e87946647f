"""Early time as a person watches it: curves grow while the one point is computed."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# One point that takes long enough to be watched.
SLOW = (
    "/early_time?preset=hu-fig2&values=512&dataset.num_samples=1000&training.max_steps=20000&training.learning_rate=0.5"
)
TIMEOUT_MS = 90_000
STEPS_SHOWN = """Math.max(0, ...(document.querySelector('.js-plotly-plot')?.data ?? [])
  .filter(trace => !trace.meta?.ghost).flatMap(trace => Array.from(trace.x ?? [])))"""


def test_curves_grow_within_a_point_and_stop_ends_the_run(open_page):
    page = open_page(SLOW)
    press_run(page)
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point", timeout=TIMEOUT_MS)
    wait_until(page, f"{STEPS_SHOWN} > 0 && {STEPS_SHOWN} < 250", timeout=TIMEOUT_MS)
    first = page.evaluate(STEPS_SHOWN)
    wait_until(page, f"{STEPS_SHOWN} > {first} && {STEPS_SHOWN} < 20000", timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point")
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 0 of 1 point are done. Run begins again")).to_be_visible(timeout=TIMEOUT_MS)
