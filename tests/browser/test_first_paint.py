"""There is something to read before the page's scripts have been loaded."""

from __future__ import annotations

import pytest

from tests.browser.conftest import READY

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WORDS = "See when and why a wide neural network becomes a linear model."


@pytest.mark.parametrize("path", ["/", "/kernel_change"])
def test_the_name_shows_before_scripts_arrive(open_page, path):
    page = open_page(path, ready=False, scripts=False)
    first = page.get_by_role("status")
    assert WORDS in first.inner_text()
    assert page.title() == "Linearity Lab"
    ground = first.evaluate("element => getComputedStyle(element).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert first.evaluate("element => getComputedStyle(element).backgroundColor") != ground


def test_first_paint_requests_no_missing_file_or_other_host(open_page, dashboard_url):
    page = open_page("/_stcore/health", ready=False)
    asked: list[str] = []
    answers: list[tuple[int, str]] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda answer: answers.append((answer.status, answer.url)))
    for path in ("/", "/lecture", "/kernel_change"):
        before = len(asked)
        page.goto(dashboard_url + path)
        page.wait_for_selector(READY, timeout=60_000)
        if path == "/":
            assert page.locator(".first-paint").count() == 0
            assert page.locator("h1").count() == 1
        page.wait_for_timeout(1000)
        assert len(asked) - before > 5
    ours = (dashboard_url, "ws" + dashboard_url[4:], "data:", "blob:")
    assert [url for url in asked if not url.startswith(ours)] == []
    assert [each for each in answers if each[0] >= 400] == []
    assert sum(url == f"{dashboard_url}/_stcore/health" for _, url in answers) == 3
