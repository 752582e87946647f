"""Readable text before the page's scripts are loaded."""

import re

import pytest
from playwright.sync_api import expect

from benchmarks.browser import READY
from tests.browser.test_live import until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WORDS = "See when and why a wide neural network becomes a linear model."


def test_the_name_shows_before_scripts_arrive(open_page):
    page = open_page("/kernel_change", ready=False, scripts=False)
    first = page.get_by_role("status")
    assert WORDS in first.inner_text()
    assert page.title() == "Linearity Lab"
    ground = first.evaluate("element => getComputedStyle(element).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert first.evaluate("element => getComputedStyle(element).backgroundColor") != ground


@pytest.mark.long
def test_first_paint_requests_no_missing_file_or_other_host(open_page, dashboard_url):
    page = open_page("/_stcore/health", ready=False)
    asked: list[str] = []
    answers: list[tuple[int, str]] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("response", lambda answer: answers.append((answer.status, answer.url)))
    for path in ("/", "/lecture"):
        before = len(asked)
        page.goto(dashboard_url + path)
        page.wait_for_selector(READY)
        if path == "/":
            page.wait_for_selector(".early", state="detached")
            assert page.locator(".first-paint").count() == 0
            assert page.locator("h1").count() == 1
        page.wait_for_timeout(1000)
        assert len(asked) - before > 5
    ours = (dashboard_url, "ws" + dashboard_url[4:], "data:", "blob:")
    assert [url for url in asked if not url.startswith(ours)] == []
    assert [each for each in answers if each[0] >= 400] == []
    assert sum(url == f"{dashboard_url}/_stcore/health" for _, url in answers) == 2


# Path of a page → whether its panel has trained for a moment.
TRAINS = {
    "/": "each => each.home.sides.every(side => side.now?.time > 50)",
    "/live": "each => each.live.now?.time > 5",
}


@pytest.fixture
def early(open_page, dashboard_url):
    """Open a page while Streamlit's script is held back; return page, held request and panel."""

    def opened(url: str, width: int = 1440, height: int = 900):
        page = open_page("/_stcore/health", ready=False, alone=True)
        page.set_viewport_size({"width": width, "height": height})
        held: list = []
        page.route("**/static/js/react-dom.*.js", lambda route: held.append(route))
        page.goto(dashboard_url + url, wait_until="commit")
        panel = page.locator(".live")
        until(panel, TRAINS[url.partition("?")[0]])
        return page, held[0], panel

    return opened


def take_over(page, script) -> None:
    script.continue_()
    page.wait_for_selector(READY)
    page.wait_for_selector(".early", state="detached")


@pytest.mark.long_after(1)
@pytest.mark.parametrize("url", ["/", "/live?width=16&embed=true"])
def test_a_page_trains_before_streamlit_loads_and_stays_in_place(early, url):
    page, script, panel = early(url, 390, 844)
    heading = page.locator("h1")
    words, places = heading.inner_text(), (heading.bounding_box(), panel.bounding_box())
    panel.evaluate("each => { each.dataset.first = 'yes' }")
    take_over(page, script)
    assert heading.inner_text() == words
    for before, after in zip(places, (heading.bounding_box(), panel.bounding_box()), strict=True):
        assert after == pytest.approx(before, abs=1)
    assert panel.get_attribute("data-first") == "yes", "the component took the panel over"
    if url == "/":
        until(panel, "each => each.home.sides.every(side => side.points.size > 1)")


def test_a_click_beside_an_early_page_removes_it(early):
    page, *_ = early("/")
    page.mouse.click(700, 20)
    assert page.locator(".early").count() == 0


def test_early_live_keeps_the_url_and_choices_of_the_visitor(early):
    page, script, panel = early("/live?width=16&seed=5")
    assert panel.evaluate("each => [each.live.begun.width, each.live.settings.seed]") == [16, 5]
    page.get_by_label("Target").select_option("step")
    assert page.url.endswith("/live?width=16&target=step&seed=5")
    page.get_by_label("Target").focus()
    begun = panel.evaluate("each => each.live.asked.id")
    take_over(page, script)
    page.wait_for_timeout(500)
    assert panel.evaluate("each => [each.live.asked.id, each.live.settings.target]") == [
        begun,
        "step",
    ]
    assert page.get_by_label("Target").evaluate("each => each.matches(':focus')")
    page.get_by_label("Target").select_option("bump")
    expect(page).to_have_url(re.compile(r"/live\?(?=.*width=16)(?=.*target=bump)"))


def test_a_choice_after_the_server_has_read_the_url_reaches_it(early):
    page, script, panel = early("/live?width=16")
    # as if the server has just read the URL
    panel.evaluate(
        "each => { each.live.data.send = () => {}; each.live.choose({ width: 32 }, true) }"
    )
    take_over(page, script)
    expect(page).to_have_url(re.compile("/live[?]width=32$"))
    assert panel.evaluate("each => each.live.begun.width") == 32


def test_early_live_follows_the_server_on_a_wrong_url(early):
    page, script, panel = early("/live?points=9:0")
    take_over(page, script)
    expect(page.get_by_text("In the URL, points")).to_be_visible()
    until(
        panel,
        "each => each.live.settings.points === null && each.live.begun.id === each.live.asked.id",
    )


@pytest.mark.long
def test_only_the_opened_page_starts_early(early):
    page, script, _ = early("/live")
    take_over(page, script)
    page.evaluate("window.isSameVisit = true")
    page.locator('[data-testid="stHeaderLogo"], [data-testid="stLogoLink"]').first.click()
    home = page.locator(".live[data-form=home]")
    until(home, TRAINS["/"])
    assert page.locator(".live").count() == page.locator("h1").count() == 1
    assert page.evaluate("[window.isSameVisit, Object.keys(window.early)]") == [True, []]


@pytest.mark.parametrize("width", [390, 900, 1440])
def test_no_sentence_of_home_moves_what_stands_below(open_page, width):
    page = open_page("/", ready=False)
    page.set_viewport_size({"width": width, "height": 900})
    panel = page.locator(".live")
    until(panel, "each => each.home.sides.every(side => side.now)")
    heights = panel.evaluate(
        """each => {
          const { home } = each, { verdicts, home: words } = home.data.words;
          const numbers = {
            width: "1,024", change: "0.031%", gap: "0.012%", outside: "110%", place: "−2.9",
            rate: "2.85", output: "swish", first: "4", last: "4,096",
            from0: "134%", to0: "0.021%", from1: "177%", to1: "53%",
          };
          const fill = (text) => text.replace(/\\{(\\w+)\\}/g, (_, name) => numbers[name]);
          const { near, beyond, same } = verdicts;
          const long = [`${near} ${beyond}`, `${same} ${beyond}`, verdicts.output];
          home.playing = false;
          home.draw = () => {};
          return ["", ...long].map((text) => {
            for (const side of home.sides) side.verdict.text = fill(text);
            home.sentence.text = text && fill(words.seen);
            return each.getBoundingClientRect().height;
          });
        }"""
    )
    assert heights == [heights[0]] * 4
