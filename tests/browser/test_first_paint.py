"""There is something to read before the page's scripts have been loaded."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WORDS = "See when and why a wide neural network becomes a linear model."


@pytest.mark.parametrize("path", ["/", "/kernel_change"])
def test_the_lab_says_what_it_is_before_its_scripts_arrive(open_page, path):
    page = open_page(path, ready=False, scripts=False)
    first = page.get_by_role("status")
    assert WORDS in first.inner_text()
    assert page.title() == "Linearity Lab"
    ground = first.evaluate("element => getComputedStyle(element).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert first.evaluate("element => getComputedStyle(element).backgroundColor") != ground


def test_the_page_takes_its_place(open_page):
    page = open_page("/")
    assert page.locator(".first-paint").count() == 0
    assert page.locator("h1").count() == 1
