"""Buttons that save a figure: each saves its format at the first click, in the browser alone."""

import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Page

from benchmarks.contrast import contrast
from tests.browser.conftest import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def exporting(page: Page) -> Page:
    """Open the page's menu once its figures are drawn."""
    page.wait_for_selector(".js-plotly-plot .main-svg")
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="PNG: ").first.wait_for()
    return page


def saved(page: Page, kind: str, number: int = 0) -> tuple[str, bytes]:
    """Name and content of the file saved by a figure's button."""
    with page.expect_download() as download:
        page.get_by_role("button", name=f"{kind}: ").nth(number).click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_first_click_saves_the_chosen_format(open_page, dashboard_url):
    first = {"/kernel_change": "kernel_change-against_width", "/dag": ""}
    page = open_page("/_stcore/health", ready=False)
    for path, begins in first.items():
        for kind in ("PNG", "SVG"):
            page.goto(dashboard_url + path)  # a new visit in a reused window, for half of the work
            exporting(page)
            name, content = saved(page, kind)  # the first click
            assert page.locator('[data-testid="stException"]').count() == 0
            assert name.endswith(f".{kind.lower()}")
            assert name.startswith(begins)
            width = page.evaluate("document.querySelector('.js-plotly-plot')._fullLayout.width")
            if kind == "PNG":
                assert content[:8] == b"\x89PNG\r\n\x1a\n"
                assert struct.unpack(">I", content[16:20])[0] == int(2 * width)
            else:
                assert ET.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"
                fills = re.findall(rb"<text[^>]*fill: rgb\((\d+), (\d+), (\d+)\)", content)
                words = {f"#{int(red):02X}{int(green):02X}{int(blue):02X}" for red, green, blue in fills}
                assert min(contrast(color, "#FFFFFF") for color in words) >= 4.5

        if path == "/kernel_change":
            with page.expect_download() as file:
                page.locator('[data-testid="stDownloadButton"] button').first.click()
            assert file.value.suggested_filename.startswith("kernel-change.")

    # The last page, of graphs: each figure has its buttons, and the camera keeps its format.
    rows = page.get_by_role("button", name="PNG: ").count()
    assert rows == page.get_by_role("button", name="SVG: ").count() > 1
    wait_until(page, f"document.querySelectorAll('.js-plotly-plot').length >= {rows}")
    names = {saved(page, kind, number)[0] for kind in ("PNG", "SVG") for number in range(rows)}
    assert len(names) == 2 * rows
    page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="PNG: ").first.wait_for(state="hidden")
    with page.expect_download() as picture:
        page.locator('.modebar-btn[data-title*="ownload"]').first.dispatch_event("click")
    assert picture.value.suggested_filename.endswith(".svg")
