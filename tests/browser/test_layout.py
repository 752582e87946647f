"""Explanations, suggestions to try, and the glossary, used by mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 60_000


def test_explanations_open_and_links_to_try_lead_on(open_page):
    page = open_page("/kernel_change")
    page.get_by_role("button", name="About this figure").first.click()
    expect(page.get_by_text("Why is finite width different?")).to_be_visible(timeout=TIMEOUT_MS)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="A narrow layer inside").click()
    wait_until(page, "location.search.includes('preset=liu-fig2')")
    expect(page.get_by_text("A narrow layer inside a wide network keeps the kernel moving")).to_be_visible(
        timeout=TIMEOUT_MS
    )


def test_glossary_entry_opens_in_place_and_in_the_url(open_page):
    page = open_page("/glossary?term=kappa")
    lines = page.get_by_test_id("stExpander")
    expect(lines.locator("details[open]")).to_have_count(1)
    expect(lines.first).to_contain_text("See it")
    page.get_by_role("textbox", name="Search").fill("kernel")
    page.get_by_role("textbox", name="Search").press("Enter")
    wait_until(page, "location.search.includes('search=kernel')")
    word = lines.filter(has_text="kernel change")
    word.locator("summary").click()
    expect(word).to_contain_text("See it: Kernel", timeout=TIMEOUT_MS)
    wait_until(page, "location.search.includes('term=kernel-change')")
