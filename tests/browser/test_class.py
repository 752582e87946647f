"""A class: three browsers in one poll, lines drawn by mouse and by touch, the speaker's second window."""

import re

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from linearity_lab.views.lecture.steps import STEPS
from tests.browser.conftest import READY, Fingers, phone, wait_until
from tests.browser.test_accessibility import violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]
POLLED = STEPS[1]


def sees(page: Page, *texts: str | re.Pattern[str]) -> None:
    """Wait for these texts on a page."""
    for text in texts:
        expect(page.get_by_text(text).first).to_be_visible()


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=re.compile(re.escape(name)))


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
    again = phones[1].context.new_page()
    again.goto(link)
    for each in (phones[1], again):
        sees(each, "Your answer is in")
    again.close()
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


def box_of(found: Locator) -> FloatRect:
    expect(found).to_be_visible()
    box = found.bounding_box()
    assert box is not None
    return box


def drawn_slope(page: Page) -> float:
    words = page.locator(".sketch output").inner_text()
    return float(words.partition("^")[2].replace("−", "-"))


def test_a_line_is_drawn_by_finger_and_by_keys(browser, dashboard_url):
    page = phone(browser, f"{dashboard_url}/lecture?step=attention")
    sheet = page.locator(".sketch-sheet")
    expect(sheet).to_be_visible()
    assert box_of(page.locator(".js-plotly-plot"))["y"] < 844, "the figure begins on the first screen"
    sheet.scroll_into_view_if_needed()
    box, finger = box_of(sheet), Fingers(page)
    start, compare = (box["x"] + 20, box["y"] + 80), page.get_by_role("button", name="Compare")
    finger.drag(start, (box["x"] + box["width"] / 2, box["y"] + 80))
    expect(page.get_by_role("status").filter(has_text="right edge")).to_be_visible()
    expect(compare).to_be_disabled()
    finger.drag(start, (box["x"] + box["width"] - 2, box["y"] + 200))
    wait_until(page, "!document.querySelector('.sketch-sheet polyline').getAttribute('points').includes('NaN')")
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


def test_notes_follow_in_a_second_window_and_keys_are_listed(open_page):
    page = open_page("/lecture?step=hessian-and-ball")
    expect(page.get_by_role("button", name="Keys of the lecture")).to_be_visible()
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
    expect(notes.get_by_role("heading", name=STEPS[1].title)).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(notes.get_by_role("heading", name=STEPS[2].title)).to_be_visible()
    expect(notes.get_by_text("blackboard")).to_be_visible()


def test_a_link_of_a_step_ends_where_its_figure_is(open_page):
    page = open_page("/lecture?step=open-questions")
    page.get_by_role("link", name="Try the methods yourself").click()
    tab = page.get_by_role("tab", name="How far weights and kernel move")
    expect(tab).to_have_attribute("aria-selected", "true")
    expect(tab).to_be_in_viewport()
