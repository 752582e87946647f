"""Fifty runs as cards: import, search, compare; accessibility."""

import pytest
from playwright.sync_api import expect

from ntk_core.runs.store import Store, write_runs
from tests.browser.conftest import READY
from tests.browser.faults import faults
from tests.browser.test_accessibility import violations
from tests.dashboard.made_results import make_points, make_result

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def dashboard_url(new_server: str) -> str:
    """A server with fifty runs."""
    return new_server


def test_fifty_runs_are_cards_to_import_find_and_compare(open_page, tmp_path):
    store, file = Store(tmp_path / "made.sqlite"), tmp_path / "runs.jsonl"
    for seed in range(50):
        store.save_result(make_result(make_points(), seed=seed + 1))
    with file.open("wb") as out:
        write_runs(store, [run.digest for run in store.runs(limit=50).runs], out)
    store.close()
    page = open_page("/results")
    page.get_by_role("button", name="Import").click()
    page.locator('input[type="file"]').set_input_files(file)
    expect(page.get_by_text("50 runs imported.")).to_be_visible()
    page.keyboard.press("Escape")
    cards = page.locator(".st-key-results-cards > *")
    expect(cards).to_have_count(20)
    expect(cards.locator("img")).to_have_count(20)
    expect(page.get_by_text("1 to 20 of 50 runs")).to_be_visible()
    assert faults(page) == []

    page.get_by_label("Search").fill('"seed":17')
    page.keyboard.press("Enter")
    expect(cards).to_have_count(1)
    cards.get_by_text("First seed 17").click()
    expect(page.get_by_text("1 chosen")).to_be_visible()
    page.get_by_label("Search").fill("")
    page.keyboard.press("Enter")
    expect(cards).to_have_count(20)
    cards.filter(has_not_text="First seed 17").first.locator("[data-testid=stCheckbox] label").click()
    expect(page.get_by_role("table", name="Settings that differ")).to_contain_text("First seed")
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    page.wait_for_selector(READY)
    assert violations(page) == []
