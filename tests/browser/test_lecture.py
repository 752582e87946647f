"""The lecture: by keys and clicker, on a projector, in a poll of a class,
with drawn lines and speaker notes.
"""

import re

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from benchmarks.browser import READY
from linearity_lab.dashboard.pages.lecture.steps import STEPS
from tests.browser.conftest import Fingers, phone, wait_until
from tests.browser.test_accessibility import violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]
POLLED = STEPS[1]


def shows(page: Page, index: int) -> None:
    expect(page.get_by_role("heading", name=STEPS[index].asks)).to_be_visible()
    # the first button loads the code for all buttons and their keys
    expect(page.get_by_role("button", name="Back").last).to_be_visible()
    page.wait_for_selector(READY)


def sees(page: Page, *texts: str | re.Pattern[str]) -> None:
    """Wait for these texts on a page."""
    for text in texts:
        expect(page.get_by_text(text).first).to_be_visible()


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(re.escape(name)))


def box_of(element: Locator) -> FloatRect:
    expect(element).to_be_visible()
    box = element.bounding_box()
    assert box is not None
    return box


@pytest.mark.long
def test_keys_and_clicker_lead_through_the_lecture_and_its_notes(open_page):
    page = open_page("/lecture")
    shows(page, 0)
    for key, index in (("ArrowRight", 1), ("PageDown", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        shows(page, index)
    assert page.url.endswith("/lecture?step=hessian-and-ball")
    question = STEPS[1].question
    right = button(page, question.choices[question.answer])
    page.keyboard.press(right.locator("kbd").inner_text())  # its position differs between visits
    sees(page, "Right:")
    page.get_by_role("radio", name="R = 4").press("Space")
    wait_until(
        page, "document.querySelector('[role=radio][aria-checked=true]').innerText === 'R = 4'"
    )
    wait_until(page, "location.search.includes('show=4')")  # accepted by the page
    page.wait_for_selector(READY)
    page.keyboard.press("PageDown")  # the control has the focus, and the clicker continues
    shows(page, 2)

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("speaker notes in a second window")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(READY)).to_be_attached()  # earlier events would be ignored
    with page.expect_popup() as opened:
        for _ in range(4):
            page.keyboard.press("n")
            page.wait_for_timeout(1_500)
            if len(page.context.pages) > 1:
                break
    notes = opened.value
    expect(notes.get_by_role("heading", name=STEPS[2].title)).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(notes.get_by_role("heading", name=STEPS[3].title)).to_be_visible()


@pytest.mark.long
def test_presented_step_fits_on_one_screen(open_page):
    page = open_page("/lecture?step=nonlinear-output&present=1")
    page.wait_for_selector(".js-plotly-plot .main-svg")
    letters = (
        "parseFloat(getComputedStyle(document.querySelector('[data-testid=stMarkdown] "
        "p')).fontSize)"
    )
    assert page.evaluate(letters) >= 20
    for selector in (".katex", ".js-plotly-plot"):
        box = box_of(page.locator(selector).last)
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900
    page.keyboard.press("PageDown")
    sees(page, "Predicted.")
    page.wait_for_selector(READY)
    page.keyboard.press("p")
    expect(page.get_by_test_id("stHeader")).to_be_visible()


OUT_OF_PLACE = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  const foot = document.querySelector('.st-key-foot-step').getBoundingClientRect();
  const plot = document.querySelector('.js-plotly-plot'), drawn = plot.getBoundingClientRect();
  const words = document.querySelector('.st-key-words-step').getBoundingClientRect();
  const parts = [...document.querySelectorAll('.katex-html .base')];
  const right = Math.max(...parts.map((each) => each.getBoundingClientRect().right));
  const ticks = [...plot.querySelectorAll('[class$=tick] text')];
  const letters = ticks.map((each) => parseFloat(getComputedStyle(each).fontSize));
  const least = Math.min(...letters) * drawn.width / plot.offsetWidth;
  const found = {
    scrolls: main.scrollHeight - main.clientHeight > 1,
    foot: foot.bottom > innerHeight,
    figure: drawn.bottom > foot.top + 1,
    words: words.bottom > foot.top + 1,
    formulas: right > innerWidth,
    letters: least < 0.02 * innerHeight,
  };
  return Object.keys(found).filter((name) => found[name]).join(' ');
}"""


@pytest.mark.long_after(1)
@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1920, 1080)])
@pytest.mark.parametrize(
    "name", ["two-norms", "optimization-without-linearity", "deep-networks", "open-questions"]
)
def test_presented_steps_fit_and_letters_grow(open_page, name, width, height):
    """Long words, the widest formula, a line to draw, and the last step,
    before and after the answer.
    """
    page = open_page(f"/lecture?step={name}&present=1")
    page.set_viewport_size({"width": width, "height": height})
    button(page, "Show the answer").wait_for()
    page.wait_for_selector(".js-plotly-plot .main-svg")
    wait_until(page, f"({OUT_OF_PLACE})() === ''")
    button(page, "Show the answer").click()
    sees(page, "Predicted.")
    wait_until(page, f"({OUT_OF_PLACE})() === ''")


@pytest.mark.long
def test_earlier_urls_redirect_and_a_step_leads_to_its_figure(open_page, dashboard_url):
    page = open_page("/kernel_drift?widths=30,100")
    expect(page).to_have_url(re.compile(r"/kernel_change\?.*widths="))
    page.goto(f"{dashboard_url}/overview")
    expect(
        page.get_by_role("heading", name="When does a wide network become linear?")
    ).to_be_visible()
    assert page.get_by_text("Page not found").count() == 0
    page.goto(f"{dashboard_url}/lecture?step=open-questions")
    page.get_by_role("link", name="Try the methods yourself").click()
    # The preset opens on this figure, above the tabs of the others.
    expect(page.get_by_role("tab", name="How far they diverge")).to_be_attached()
    expect(page.get_by_role("tab", name="How far weights and kernel move")).to_have_count(0)
    expect(page.locator(".js-plotly-plot").first).to_be_in_viewport()


@pytest.mark.long
def test_three_browsers_in_one_poll(browser, dashboard_url, open_page):
    teacher = open_page(f"/lecture?step={POLLED.name}")
    button(teacher, "Poll").click()
    button(teacher, "Full screen").click()
    large = box_of(teacher.get_by_role("dialog").get_by_alt_text(re.compile("QR code")))
    assert min(large["width"], large["height"]) > 450, "readable from the back row"
    assert large["y"] + large["height"] <= 900
    link = teacher.get_by_role("dialog").locator("code").inner_text().strip()
    assert link.startswith(f"{dashboard_url}/lecture?poll=")
    teacher.keyboard.press("Escape")
    expect(teacher.get_by_role("dialog")).to_have_count(0)
    wrong, right = POLLED.question.choices[0], POLLED.question.choices[POLLED.question.answer]
    phones = [phone(browser, link, scheme) for scheme in ("light", "dark")]
    for each in phones:
        expect(button(each, right)).to_be_visible()
        assert POLLED.title not in each.inner_text("body")
    assert violations(phones[1]) == []
    for each in phones:
        button(each, wrong).click()
    sees(teacher, "2 of 2 phones have answered")
    button(phones[1], right).click()
    sees(phones[1], "Your answer is in")
    phones[1].reload()
    sees(phones[1], "Your answer is in")
    sees(teacher, "2 of 2 phones have answered")
    bars = teacher.get_by_role("progressbar")
    assert bars.count() == 1  # of the steps
    button(teacher, "Timer 60 s").click()
    sees(teacher, re.compile(r"\b[1-5]\d s left"))
    teacher.keyboard.press("b")
    expect(bars).to_have_count(4)
    sees(teacher, re.compile(f"{re.escape(right)} — 1"))
    assert violations(teacher) == []

    button(teacher, "Vote again").click()
    sees(phones[0], "Second round")
    expect(bars).to_have_count(1)
    button(phones[0], wrong).click()
    sees(teacher, "1 of 2 phones have answered")
    button(teacher, "Show the bars").click()
    for choice in (wrong, right):
        sees(teacher, re.compile(rf"{re.escape(choice)} — first vote 1"))
    sees(teacher, "second vote 1")
    teacher.keyboard.press("a")
    for each in phones:
        sees(each, f"The answer: {right}.")
        expect(button(each, wrong)).to_have_count(0)
    sees(phones[0], "Not right.", f"Your answer: {wrong}.")
    teacher.keyboard.press("ArrowRight")
    for each in phones:
        expect(each.get_by_role("heading", name="Step 3")).to_be_visible()
    button(teacher, "End the poll").click()
    for each in phones:
        sees(each, "This poll has ended")
    phones[0].goto(link)
    sees(phones[0], "There is no poll under this link")
    for each in phones:
        each.context.close()


def drawn_slope(page: Page) -> float:
    words = page.locator(".sketch output").inner_text()
    return float(words.partition("^")[2].replace("−", "-"))


@pytest.mark.long
def test_a_line_is_drawn_by_finger_and_by_keys(browser, dashboard_url):
    page = phone(browser, f"{dashboard_url}/lecture?step=attention")
    sheet = page.locator(".sketch-sheet")
    expect(sheet).to_be_visible()
    assert box_of(page.locator(".js-plotly-plot"))["y"] < 844, (
        "the figure begins on the first screen"
    )
    sheet.scroll_into_view_if_needed()
    box, finger = box_of(sheet), Fingers(page)
    start, compare = (box["x"] + 20, box["y"] + 80), page.get_by_role("button", name="Compare")
    finger.drag(start, (box["x"] + box["width"] / 2, box["y"] + 80))
    expect(page.get_by_role("status").filter(has_text="right edge")).to_be_visible()
    expect(compare).to_be_disabled()
    finger.drag(start, (box["x"] + box["width"] - 2, box["y"] + 200))
    wait_until(
        page,
        "!document.querySelector('.sketch-sheet polyline').getAttribute('points').includes('NaN')",
    )
    assert drawn_slope(page) < -0.1
    assert violations(page) == []
    page.get_by_role("button", name="Start over").click()
    expect(page.locator(".sketch output")).to_have_text("not set")
    page.get_by_role("slider", name="Slope").focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert drawn_slope(page) == pytest.approx(0.1, abs=0.011)
    assert page.url.endswith("step=attention"), "arrows belong to the slider while it has the focus"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    sees(page, "You drew")
    expect(page.locator(".js-plotly-plot .legendtext").filter(has_text="your line")).to_be_visible()
    page.context.close()
