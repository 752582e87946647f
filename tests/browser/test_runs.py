"""Runs while they compute: points that arrive or grow, embedded figures, Stop by one of several visitors."""

import re

import pytest
from playwright.sync_api import expect

from benchmarks.first_sight import PLACES
from tests.browser.conftest import SCREEN, press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# One point, slow enough to watch.
SLOW = "preset=hu-fig2&values=512&dataset.num_samples=1000&training.max_steps=20000&training.learning_rate=0.5"
STEPS_SHOWN = """Math.max(0, ...(document.querySelector('.js-plotly-plot')?.data ?? [])
  .filter(trace => !trace.meta?.ghost).flatMap(trace => Array.from(trace.x ?? [])))"""


def test_curves_grow_within_a_point_also_where_embedded(open_page):
    page = open_page(f"/early_time?{SLOW}")
    press_run(page)
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point")
    wait_until(page, f"{STEPS_SHOWN} > 0 && {STEPS_SHOWN} < 250")
    first = page.evaluate(STEPS_SHOWN)
    wait_until(page, f"{STEPS_SHOWN} > {first} && {STEPS_SHOWN} < 20000")
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point")

    job = page.evaluate("new URLSearchParams(location.search).get('job')")
    embedded = open_page(f"/early_time?embed=true&job={job}", alone=True, ready=False)
    wait_until(embedded, f"{STEPS_SHOWN} > 0")
    first = embedded.evaluate(STEPS_SHOWN)
    wait_until(embedded, f"{STEPS_SHOWN} > {first}")
    embedded.close()
    page.wait_for_timeout(1_000)  # Stop does not end a job that two sessions follow
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 0 of 1 point are done. Run begins again")).to_be_visible()


# Three quick widths, then a slow one to stop; no run reaches the threshold.
SWEEP = "/kernel_change?widths=2,3,4,30000&training.max_steps=2000&training.loss_threshold=1e-9&outputs=linear"
WIDTHS_SHOWN = """(() => {
  const chart = document.querySelector('.js-plotly-plot');
  const seeds = chart ? chart.data.filter(trace => trace.mode === 'markers') : [];
  return seeds.length ? new Set(Array.from(seeds[0].x, Number).filter(width => width < 5)).size : 0;
})()"""


def test_points_arrive_in_place_and_the_last_of_two_stops(open_page):
    """The other visitor's Stop detaches; the last one's, in the tray of a phone beside its menu, ends the run."""
    page = open_page(SWEEP)
    wait_until(page, "document.querySelector('.js-plotly-plot .main-svg')")
    page.wait_for_timeout(1000)
    before = page.evaluate(PLACES)
    press_run(page)
    progress, stopped = page.get_by_test_id("job-progress"), page.get_by_text("Stopped: 3 of 4 widths are done.")
    expect(progress).to_be_visible()
    wait_until(page, f"{WIDTHS_SHOWN} >= 1")
    assert page.evaluate(WIDTHS_SHOWN) < 3, "the first points were drawn before the last ones"
    wait_until(page, f"{WIDTHS_SHOWN} === 3")
    assert page.evaluate(PLACES) == pytest.approx(before, abs=1), "a run moves nothing"
    expect(progress).to_contain_text("3 of 4 widths")

    job = page.evaluate("new URLSearchParams(location.search).get('job')")
    other = open_page(f"/kernel_change?job={job}", alone=True)
    expect(other.get_by_test_id("job-progress")).to_contain_text("of 4 widths")
    other.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(other.get_by_text("Someone else is following this run too")).to_be_visible()
    expect(progress).to_be_visible()

    page.set_viewport_size({"width": 360, "height": 740})
    tray = page.locator(".st-key-job_tray")
    expect(tray.get_by_role("button", name="1 running")).to_be_visible()
    page.get_by_test_id("stExpandSidebarButton").click(timeout=5_000)  # fails if another element is on top
    page.get_by_test_id("stSidebarCollapseButton").click()
    tray.get_by_role("button", name="1 running").click()
    tray.get_by_role("button", name=re.compile("^Stop")).click()
    expect(tray.get_by_text("stopped, 3 of 4 widths done")).to_be_visible()
    page.set_viewport_size(SCREEN)
    page.reload()
    expect(stopped).to_be_visible()
    wait_until(page, f"{WIDTHS_SHOWN} === 3")
