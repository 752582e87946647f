"""Everything can be exported under the security policy of the server.

That no message of the browser speaks of the policy is checked wherever a page is opened.
"""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FIGURE = ".js-plotly-plot .main-svg"


def test_a_picture_and_a_file_arrive(open_page):
    page = open_page("/kernel_change")
    page.wait_for_selector(FIGURE, timeout=60_000)
    with page.expect_download() as picture:
        page.locator(".js-plotly-plot").first.hover()
        page.locator('.modebar-btn[data-title*="ownload"]').first.click()
    assert picture.value.suggested_filename.endswith(".svg")
    page.get_by_role("button", name="Export").click()
    entries = page.locator('[data-testid="stDownloadButton"] button')
    entries.first.wait_for()
    with page.expect_download() as file:
        entries.first.click()
    assert file.value.suggested_filename.startswith("kernel-change.")
