"""A class: three browsers in one poll, lines drawn by mouse and by touch, the speaker's second window."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import FloatRect, Page, expect

from linearity_lab.views.lecture.steps import STEPS
from tests.browser.conftest import READY, Fingers, phone, wait_until
from tests.browser.test_accessibility import violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 30_000
POLLED = STEPS[1]


def test_three_browsers_in_one_poll(browser, dashboard_url, open_page):
    teacher = open_page(f"/lecture?step={POLLED.name}")
    teacher.get_by_role("button", name="Poll").click()
    expect(teacher.get_by_alt_text(re.compile("QR code"))).to_be_visible(timeout=TIMEOUT_MS)
    link = teacher.locator("code").first.inner_text().strip()
    assert link.startswith(f"{dashboard_url}/lecture?poll=")
    wrong, right = POLLED.question.choices[0], POLLED.question.choices[POLLED.question.answer]
    phones = [phone(browser, link, scheme) for scheme in ("light", "dark")]
    for each in phones:
        expect(each.get_by_role("button", name=re.compile(re.escape(right)))).to_be_visible(timeout=TIMEOUT_MS)
        assert POLLED.title not in each.inner_text("body")
    assert violations(phones[1]) == []
    phones[0].get_by_role("button", name=re.compile(re.escape(wrong))).click()
    phones[1].get_by_role("button", name=re.compile(re.escape(wrong))).click()
    expect(teacher.get_by_text("2 of 2 phones have answered")).to_be_visible(timeout=TIMEOUT_MS)
    phones[1].get_by_role("button", name=re.compile(re.escape(right))).click()
    expect(phones[1].get_by_text("Your answer is in")).to_be_visible(timeout=TIMEOUT_MS)
    assert teacher.get_by_role("progressbar").count() == 1  # of the steps
    phones[1].reload()
    expect(phones[1].get_by_text("Your answer is in")).to_be_visible(timeout=TIMEOUT_MS)
    expect(teacher.get_by_text("2 of 2 phones have answered")).to_be_visible(timeout=TIMEOUT_MS)
    again = phones[1].context.new_page()
    again.goto(link)
    expect(again.get_by_text("Your answer is in")).to_be_visible(timeout=TIMEOUT_MS)
    again.close()
    expect(teacher.get_by_text("2 of 2 phones have answered")).to_be_visible(timeout=TIMEOUT_MS)
    teacher.keyboard.press("b")
    expect(teacher.get_by_role("progressbar")).to_have_count(4, timeout=TIMEOUT_MS)
    expect(teacher.get_by_text(re.compile(f"{re.escape(right)} — 1"))).to_be_visible(timeout=TIMEOUT_MS)
    assert violations(teacher) == []
    teacher.keyboard.press("a")
    for each in phones:
        expect(each.get_by_text(f"The answer: {right}.")).to_be_visible(timeout=TIMEOUT_MS)
        expect(each.get_by_text(re.compile(f"{re.escape(right)} — 1"))).to_be_visible(timeout=TIMEOUT_MS)
        expect(each.get_by_role("button", name=re.compile(re.escape(wrong)))).to_have_count(0, timeout=TIMEOUT_MS)
    expect(phones[0].get_by_text("Not right.")).to_be_visible()
    expect(phones[0].get_by_text(f"Your answer: {wrong}.")).to_be_visible()
    expect(phones[1].get_by_text("Right.", exact=True)).to_be_visible()
    teacher.keyboard.press("ArrowRight")
    for each in phones:
        expect(each.get_by_role("heading", name="Step 3")).to_be_visible(timeout=TIMEOUT_MS)
    teacher.get_by_role("button", name="End the poll").click()
    for each in phones:
        expect(each.get_by_text("This poll has ended")).to_be_visible(timeout=TIMEOUT_MS)
        each.context.close()
    late = phone(browser, link)
    expect(late.get_by_text("There is no poll under this link")).to_be_visible(timeout=TIMEOUT_MS)
    late.context.close()


def test_timer_second_vote_and_full_screen_code(browser, dashboard_url, open_page):
    teacher = open_page(f"/lecture?step={POLLED.name}")
    teacher.get_by_role("button", name="Poll").click()
    teacher.get_by_role("button", name="Full screen").click()
    large = teacher.get_by_role("dialog").get_by_alt_text(re.compile("QR code"))
    expect(large).to_be_visible(timeout=TIMEOUT_MS)
    box = large.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) > 450, "readable from the back row"
    assert box["y"] + box["height"] <= 900
    link = teacher.get_by_role("dialog").locator("code").inner_text().strip()
    teacher.keyboard.press("Escape")
    expect(teacher.get_by_role("dialog")).to_have_count(0, timeout=TIMEOUT_MS)
    wrong, right = POLLED.question.choices[0], POLLED.question.choices[POLLED.question.answer]
    member = phone(browser, link)
    member.get_by_role("button", name=re.compile(re.escape(wrong))).click()
    expect(teacher.get_by_text("1 of 1 phones have answered")).to_be_visible(timeout=TIMEOUT_MS)

    teacher.get_by_role("button", name="Timer 60 s").click()
    expect(teacher.get_by_text(re.compile(r"\b[1-5]\d s left"))).to_be_visible(timeout=TIMEOUT_MS)
    teacher.get_by_role("button", name="Show the bars").click()
    again = teacher.get_by_role("button", name="Vote again")
    expect(again).to_be_visible(timeout=TIMEOUT_MS)
    again.click()
    expect(member.get_by_text("Second round")).to_be_visible(timeout=TIMEOUT_MS)
    expect(teacher.get_by_role("progressbar")).to_have_count(1, timeout=TIMEOUT_MS)  # of the steps, without bars
    member.get_by_role("button", name=re.compile(re.escape(right))).click()
    expect(teacher.get_by_text("1 of 1 phones have answered")).to_be_visible(timeout=TIMEOUT_MS)
    teacher.get_by_role("button", name="Show the bars").click()
    for choice, votes in ((wrong, 1), (right, 0)):
        first = re.compile(rf"{re.escape(choice)} — first vote {votes}")
        expect(teacher.get_by_text(first)).to_be_visible(timeout=TIMEOUT_MS)
    expect(teacher.get_by_text("second vote 1")).to_be_visible(timeout=TIMEOUT_MS)
    expect(teacher.get_by_text("second vote 0")).to_have_count(len(POLLED.question.choices) - 1)
    teacher.get_by_role("button", name="End the poll").click()
    member.context.close()


def box_of(page: Page, selector: str) -> FloatRect:
    found = page.locator(selector).bounding_box()
    assert found is not None
    return found


def drawn_slope(page: Page) -> float:
    words = page.locator(".sketch output").inner_text()
    return float(words.partition("^")[2].replace("−", "-"))


def test_a_line_is_drawn_by_mouse_and_compared(open_page):
    page = open_page("/lecture?step=deep-networks")
    sheet = page.locator(".sketch-sheet")
    expect(sheet).to_be_visible(timeout=TIMEOUT_MS)
    compare = page.get_by_role("button", name="Compare")
    expect(compare).to_be_disabled()
    box = box_of(page, ".sketch-sheet")
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 40, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, middle, steps=8)
    expect(page.get_by_role("status").filter(has_text="right edge")).to_be_visible()
    expect(compare).to_be_disabled()
    page.mouse.move(box["x"] + box["width"], middle, steps=8)
    page.mouse.up()
    assert abs(drawn_slope(page)) < 0.03, "the first point is in the middle of the axis"
    compare.click()
    expect(page.get_by_text(re.compile("is outside the 95% interval"))).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator(".js-plotly-plot .legendtext").filter(has_text="your line")).to_be_visible(timeout=TIMEOUT_MS)
    assert sheet.count() == 0


def test_a_line_is_drawn_by_finger_and_by_keys(browser, dashboard_url):
    page = phone(browser, f"{dashboard_url}/lecture?step=attention")
    sheet = page.locator(".sketch-sheet")
    expect(sheet).to_be_visible(timeout=TIMEOUT_MS)
    assert box_of(page, ".js-plotly-plot")["y"] < 844, "the figure begins on the first screen"
    sheet.scroll_into_view_if_needed()
    box = box_of(page, ".sketch-sheet")
    Fingers(page).drag((box["x"] + 20, box["y"] + 80), (box["x"] + box["width"] - 2, box["y"] + 200))
    wait_until(page, "!document.querySelector('.sketch-sheet polyline').getAttribute('points').includes('NaN')")
    assert drawn_slope(page) < -0.1
    assert violations(page) == []
    page.get_by_role("button", name="Start over").click()
    expect(page.locator(".sketch output")).to_have_text("not set")
    slope = page.get_by_role("slider", name="Slope")
    slope.focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert drawn_slope(page) == pytest.approx(0.1, abs=0.011)
    assert page.url.endswith("step=attention"), "arrows belong to the slider while it has the focus"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("You drew")).to_be_visible(timeout=TIMEOUT_MS)
    assert page.locator('[data-testid="stException"]').count() == 0
    page.context.close()


def test_notes_follow_in_a_second_window_and_keys_are_listed(open_page):
    page = open_page("/lecture?step=hessian-and-ball")
    expect(page.get_by_role("button", name="Keys of the lecture")).to_be_visible(timeout=TIMEOUT_MS)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("speaker notes in a second window")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(READY)).to_be_attached(timeout=TIMEOUT_MS)  # earlier events would be ignored
    with page.expect_popup(timeout=TIMEOUT_MS) as opened:
        for _ in range(4):
            page.keyboard.press("n")
            page.wait_for_timeout(1_500)
            if len(page.context.pages) > 1:
                break
    notes = opened.value
    expect(notes.get_by_role("heading", name=STEPS[1].title)).to_be_visible(timeout=TIMEOUT_MS)
    page.keyboard.press("ArrowRight")
    expect(notes.get_by_role("heading", name=STEPS[2].title)).to_be_visible(timeout=TIMEOUT_MS)
    expect(notes.get_by_text("blackboard")).to_be_visible()


def test_a_link_of_a_step_ends_where_its_figure_is(open_page):
    page = open_page("/lecture?step=open-questions")
    page.get_by_role("link", name="Try the methods yourself").click()
    tab = page.get_by_role("tab", name="How far weights and kernel move")
    expect(tab).to_have_attribute("aria-selected", "true", timeout=TIMEOUT_MS)
    expect(tab).to_be_in_viewport(timeout=TIMEOUT_MS)
