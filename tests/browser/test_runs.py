"""Runs of pages for a person who waits: points arrive, the run is found again, and Stop ends it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SCREEN, press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 120_000  # one worker computes all points, one after another
TRACES = "Array.from(document.querySelectorAll('.js-plotly-plot')).flatMap(chart => chart.data || [])"
# How many widths each curve of the first figure has; charts on the page; heatmaps.
WIDTHS = """(document.querySelector('.js-plotly-plot')?.data ?? []).filter(trace => trace.mode === 'markers')
  .map(trace => new Set(Array.from(trace.x, Number)).size)"""
BOTH = f"""['A:', 'B:'].every(name => {TRACES}.some(t => t.mode === 'markers' && (t.name || '').startsWith(name)
  && new Set(Array.from(t.x, Number)).size === 2))"""
RUNS = {
    "architectures": (
        "widths=2,4&num_seeds=2&dataset.num_samples=6&training.max_steps=20",
        f"{BOTH} && {TRACES}.filter(t => t.type === 'heatmap').length === 5",  # A has one of infinite width
        "Against width, with the linear output",
    ),
    "hessian": (
        "networks=2&networks.1.kind=bottleneck&networks.1.output=linear&widths=4,8&num_seeds=2&num_trained=1"
        "&num_inputs=1&dataset.num_samples=6",
        f"(w => w.length === 2 && w.every(n => n === 2))({WIDTHS})",
        "bottleneck",
    ),
    "optimization": (
        "widths=8,9&num_seeds=1&rates=2,100000&outputs=leaky_softplus&dataset.num_samples=4&training.max_steps=30",
        "document.querySelectorAll('.js-plotly-plot').length === 4",
        "diverged, last finite step",
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_points_arrive_and_the_run_is_found_again(open_page, name):
    query, drawn, words = RUNS[name]
    page = open_page(f"/{name}?{query}")
    press_run(page)
    wait_until(page, drawn, timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("job-progress")).to_have_count(0, timeout=TIMEOUT_MS)
    address = page.url
    page.reload()
    wait_until(page, drawn, timeout=TIMEOUT_MS)
    assert page.url == address
    expect(page.get_by_text("Precomputed figure")).to_have_count(0)
    details = page.get_by_text(re.compile("^Details"))
    if details.count():
        details.first.click()
    expect(page.get_by_text(words, exact=False).first).to_be_visible(timeout=TIMEOUT_MS)


# One point that takes long enough to be watched.
SLOW = "preset=hu-fig2&values=512&dataset.num_samples=1000&training.max_steps=20000&training.learning_rate=0.5"
STEPS_SHOWN = """Math.max(0, ...(document.querySelector('.js-plotly-plot')?.data ?? [])
  .filter(trace => !trace.meta?.ghost).flatMap(trace => Array.from(trace.x ?? [])))"""


def test_curves_grow_within_a_point_and_stop_ends_the_run(open_page):
    page = open_page(f"/early_time?{SLOW}")
    press_run(page)
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point", timeout=TIMEOUT_MS)
    wait_until(page, f"{STEPS_SHOWN} > 0 && {STEPS_SHOWN} < 250", timeout=TIMEOUT_MS)
    first = page.evaluate(STEPS_SHOWN)
    wait_until(page, f"{STEPS_SHOWN} > {first} && {STEPS_SHOWN} < 20000", timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point")
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 0 of 1 point are done. Run begins again")).to_be_visible(timeout=TIMEOUT_MS)


def test_an_embedded_page_follows_a_running_job(open_page):
    page = open_page(f"/early_time?{SLOW}&seed=7")
    press_run(page)
    wait_until(page, "location.search.includes('job=')", timeout=TIMEOUT_MS)
    job = page.evaluate("new URLSearchParams(location.search).get('job')")
    embedded = open_page(f"/early_time?embed=true&job={job}", alone=True, ready=False)
    wait_until(embedded, f"{STEPS_SHOWN} > 0", timeout=TIMEOUT_MS)
    first = embedded.evaluate(STEPS_SHOWN)
    wait_until(embedded, f"{STEPS_SHOWN} > {first}", timeout=TIMEOUT_MS)
    embedded.close()
    page.wait_for_timeout(1_000)  # while two sessions follow a job, Stop ends none
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 0 of 1 point are done. Run begins again")).to_be_visible(timeout=TIMEOUT_MS)


def test_tray_stops_a_run_and_leaves_the_menu_of_a_phone_free(open_page):
    page = open_page(f"/early_time?{SLOW}&seed=8")
    press_run(page)
    page.set_viewport_size({"width": 360, "height": 740})
    tray = page.locator(".st-key-job_tray")
    expect(tray.get_by_role("button", name="1 running")).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_test_id("stExpandSidebarButton").click(timeout=5_000)  # fails if something else is hit there
    page.get_by_test_id("stSidebarCollapseButton").click()
    tray.get_by_role("button", name="1 running").click()
    tray.get_by_role("button", name=re.compile("^Stop")).click()
    expect(tray.get_by_text("stopped, 0 of 1 point done")).to_be_visible(timeout=TIMEOUT_MS)
    page.set_viewport_size(SCREEN)
