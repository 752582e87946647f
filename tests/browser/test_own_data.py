"""A file uploaded in a browser, and a run on its data at one press."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import READY, wait_until
from tests.data.uploads.files import flowers

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_one_press_runs_uploaded_data(open_page, tmp_path, data_directory):
    path = tmp_path / "flowers.csv"
    path.write_bytes(flowers())
    page = open_page("/own_data")
    page.wait_for_selector(READY)
    page.locator('input[type="file"]').set_input_files(path)
    expect(page.get_by_text("60 rows, 4 columns").first).to_be_attached()
    before = set((data_directory / "linearity-lab" / "uploads").glob("*.npz"))
    page.get_by_role("button", name="Watch its kernel move").click()
    page.wait_for_url("**/kernel_change?**")
    stop = page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Stop")  # Streamlit has another one
    expect(stop).to_be_visible()
    (kept,) = set((data_directory / "linearity-lab" / "uploads").glob("*.npz")) - before
    wait_until(page, f"location.search.includes('{kept.stem}')")
    stop.click()
    expect(page.get_by_text("Stopped:").first).to_be_visible()
