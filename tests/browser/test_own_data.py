"""A file uploaded in a browser, and a run on its data at one press."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import READY, wait_until
from tests.data.uploads.files import arrays, flowers

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 60_000


def upload(page, path: Path) -> None:
    page.wait_for_selector(READY, timeout=TIMEOUT_MS)
    page.locator('input[type="file"]').set_input_files(path)


def numbers() -> bytes:
    """Arrays with a numeric target."""
    x = np.random.default_rng(2).normal(size=(40, 3))
    return arrays(x=x, y=np.sin(x[:, 0]))


@pytest.mark.parametrize(
    ("name", "data", "seen", "button", "to"),
    [
        ("flowers.csv", flowers(), "60 rows, 4 columns", "Watch its kernel move", "kernel_change"),
        ("numbers.npz", numbers(), "No classes: the target is a number", "Train it with its linear model", "dynamics"),
    ],
    ids=["classes", "numbers"],
)
def test_one_press_runs_uploaded_data(open_page, tmp_path, data_directory, name, data, seen, button, to):
    path = tmp_path / name
    path.write_bytes(data)
    page = open_page("/own_data")
    upload(page, path)
    expect(page.get_by_text(seen).first).to_be_attached(timeout=TIMEOUT_MS)
    before = set((data_directory / "linearity-lab" / "uploads").glob("*.npz"))
    page.get_by_role("button", name=button).click()
    page.wait_for_url(f"**/{to}?**", timeout=TIMEOUT_MS)
    stop = page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Stop")  # Streamlit has another one
    expect(stop).to_be_visible(timeout=TIMEOUT_MS)
    (kept,) = set((data_directory / "linearity-lab" / "uploads").glob("*.npz")) - before
    wait_until(page, f"location.search.includes('{kept.stem}')", timeout=TIMEOUT_MS)
    stop.click()
    expect(page.get_by_text("Stopped:").first).to_be_visible(timeout=TIMEOUT_MS)
