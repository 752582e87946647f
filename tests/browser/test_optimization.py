"""Convergence without linearity, computed for a person who waits."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import press_run

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 90_000
QUICK = (
    "/optimization?widths=8,9&num_seeds=1&rates=2,100000&outputs=leaky_softplus&dataset.num_samples=4"
    "&training.max_steps=30"
)


def test_run_replaces_the_precomputed_figure_and_survives_reload(open_page):
    page = open_page(QUICK)
    expect(page.get_by_text("2 widths, about")).to_be_visible(timeout=TIMEOUT_MS)
    press_run(page)
    page.wait_for_url("**job=*", timeout=TIMEOUT_MS)
    expect(page.get_by_text("Precomputed figure")).to_have_count(0, timeout=TIMEOUT_MS)
    expect(page.locator(".js-plotly-plot")).to_have_count(4, timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("job-progress")).to_have_count(0, timeout=TIMEOUT_MS)
    page.reload()
    expect(page.locator(".js-plotly-plot")).to_have_count(4, timeout=TIMEOUT_MS)
    expect(page.get_by_text("Precomputed figure")).to_have_count(0)
    page.get_by_text(re.compile("^Details")).first.click()
    expect(page.get_by_text("diverged, last finite step").first).to_be_visible(timeout=TIMEOUT_MS)
