"""Every page draws its figures, and everything can be taken along, under the security policy of the server.

That no message of the browser speaks of the policy is checked wherever a page is opened.
"""

from __future__ import annotations

import pytest

from dashboard.navigation import PAGES

pytestmark = pytest.mark.browser
FIGURE = ".js-plotly-plot .main-svg"


def test_every_page_draws_a_figure_and_its_downloads_arrive(open_page):
    for entry in PAGES:
        page = open_page("/" if entry is PAGES[0] else f"/{entry.name}")
        page.wait_for_selector(FIGURE, timeout=30_000)
        if entry.name == "kernel_drift":
            with page.expect_download() as image:
                page.locator(".js-plotly-plot").first.hover()
                page.locator('.modebar-btn[data-title*="ownload"]').first.click()
            assert image.value.suggested_filename.endswith(".svg")
            page.get_by_role("button", name="Export").click()
            entries = page.locator('[data-testid="stDownloadButton"] button')
            entries.first.wait_for()
            with page.expect_download() as numbers:
                entries.first.click()
            assert numbers.value.suggested_filename == "kernel-change.csv"
        page.close()
