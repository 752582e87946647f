"""Partial results of long points: on their page, embedded, and in the tray."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SCREEN, press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 120_000  # one worker computes all points, one after another
# One point, slow enough to watch.
SLOW = "preset=hu-fig2&values=512&dataset.num_samples=1000&training.max_steps=20000&training.learning_rate=0.5"
STEPS_SHOWN = """Math.max(0, ...(document.querySelector('.js-plotly-plot')?.data ?? [])
  .filter(trace => !trace.meta?.ghost).flatMap(trace => Array.from(trace.x ?? [])))"""


def test_curves_grow_within_a_point_also_where_embedded(open_page):
    page = open_page(f"/early_time?{SLOW}")
    press_run(page)
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point", timeout=TIMEOUT_MS)
    wait_until(page, f"{STEPS_SHOWN} > 0 && {STEPS_SHOWN} < 250", timeout=TIMEOUT_MS)
    first = page.evaluate(STEPS_SHOWN)
    wait_until(page, f"{STEPS_SHOWN} > {first} && {STEPS_SHOWN} < 20000", timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point")

    job = page.evaluate("new URLSearchParams(location.search).get('job')")
    embedded = open_page(f"/early_time?embed=true&job={job}", alone=True, ready=False)
    wait_until(embedded, f"{STEPS_SHOWN} > 0", timeout=TIMEOUT_MS)
    first = embedded.evaluate(STEPS_SHOWN)
    wait_until(embedded, f"{STEPS_SHOWN} > {first}", timeout=TIMEOUT_MS)
    embedded.close()
    page.wait_for_timeout(1_000)  # Stop does not end a job that two sessions follow
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 0 of 1 point are done. Run begins again")).to_be_visible(timeout=TIMEOUT_MS)


def test_tray_stops_a_run_and_leaves_the_menu_of_a_phone_free(open_page):
    page = open_page(f"/early_time?{SLOW}&seed=8")
    press_run(page)
    page.set_viewport_size({"width": 360, "height": 740})
    tray = page.locator(".st-key-job_tray")
    expect(tray.get_by_role("button", name="1 running")).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_test_id("stExpandSidebarButton").click(timeout=5_000)  # fails if another element is on top
    page.get_by_test_id("stSidebarCollapseButton").click()
    tray.get_by_role("button", name="1 running").click()
    tray.get_by_role("button", name=re.compile("^Stop")).click()
    expect(tray.get_by_text("stopped, 0 of 1 point done")).to_be_visible(timeout=TIMEOUT_MS)
    page.set_viewport_size(SCREEN)
