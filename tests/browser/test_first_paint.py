"""There is something to read before the page's scripts have been loaded."""

from __future__ import annotations

import pytest

from tests.browser.conftest import READY
from tests.browser.test_live import until

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
            page.wait_for_selector(".early", state="detached", timeout=60_000)
            assert page.locator(".first-paint").count() == 0
            assert page.locator("h1").count() == 1
        page.wait_for_timeout(1000)
        assert len(asked) - before > 5
    ours = (dashboard_url, "ws" + dashboard_url[4:], "data:", "blob:")
    assert [url for url in asked if not url.startswith(ours)] == []
    assert [each for each in answers if each[0] >= 400] == []
    assert sum(url == f"{dashboard_url}/_stcore/health" for _, url in answers) == 3


@pytest.fixture
def early(open_page, dashboard_url):
    """Home in a window of this size while Streamlit's script is held; the page, the held request, the panel."""

    def opened(width: int, height: int):
        page = open_page("/_stcore/health", ready=False, alone=True)
        page.set_viewport_size({"width": width, "height": height})
        held: list = []
        page.route("**/static/js/react-dom.*.js", lambda route: held.append(route))
        page.goto(dashboard_url, wait_until="commit")
        home = page.locator(".live[data-form=home]")
        until(home, "each => each.home.sides.every(side => side.now?.time > 50)")
        return page, held[0], home

    return opened


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)], ids=str)
def test_home_trains_before_streamlit_loads_and_stays_in_place(early, size):
    page, script, home = early(*size)
    heading = page.locator("h1")
    words, places = heading.inner_text(), (heading.bounding_box(), home.bounding_box())
    home.evaluate("each => { each.dataset.first = 'yes' }")
    script.continue_()
    page.wait_for_selector(READY, timeout=60_000)
    page.wait_for_selector(".early", state="detached", timeout=60_000)
    assert heading.inner_text() == words
    for before, after in zip(places, (heading.bounding_box(), home.bounding_box()), strict=True):
        assert after == pytest.approx(before, abs=1)
    assert home.get_attribute("data-first") == "yes", "the component took the panel over"
    until(home, "each => each.home.sides.every(side => side.points.size > 1)")


def test_a_click_beside_early_home_removes_it(early):
    page, *_ = early(1440, 900)
    page.mouse.click(700, 20)
    assert page.locator(".early").count() == 0
