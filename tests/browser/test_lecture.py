"""The lecture by keys and clicker, and on a projector."""

import re

import pytest
from playwright.sync_api import expect

from linearity_lab.views.lecture.steps import STEPS
from tests.browser.conftest import READY, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def shows(page, index: int) -> None:
    expect(page.get_by_role("heading", name=STEPS[index].asks)).to_be_visible()
    # the first button loads the code for all buttons and their keys
    expect(page.get_by_role("button", name="Back").last).to_be_visible()
    page.wait_for_selector(READY)


def test_arrows_clicker_and_predictions_lead_through_the_lecture(open_page):
    page = open_page("/lecture")
    shows(page, 0)
    for key, index in (("ArrowRight", 1), ("PageDown", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        shows(page, index)
    assert page.url.endswith("/lecture?step=hessian-and-ball")
    question = STEPS[1].question
    right = page.get_by_role("button", name=re.compile(re.escape(question.choices[question.answer])))
    page.keyboard.press(right.locator("kbd").inner_text())  # its position differs between visits
    expect(page.get_by_text("Right:")).to_be_visible()
    page.get_by_role("radio", name="R = 4").press("Space")
    wait_until(page, "document.querySelector('[role=radio][aria-checked=true]').innerText === 'R = 4'")
    wait_until(page, "location.search.includes('show=4')")  # accepted by the page
    page.wait_for_selector(READY)
    page.keyboard.press("PageDown")  # the control has the focus, and the clicker continues
    shows(page, 2)


def test_presented_step_fits_on_one_screen(open_page):
    page = open_page("/lecture?step=nonlinear-output&present=1")
    page.wait_for_selector(".js-plotly-plot .main-svg")
    letters = page.evaluate(
        "parseFloat(getComputedStyle(document.querySelector('[data-testid=stMarkdown] p')).fontSize)"
    )
    assert letters >= 20
    for selector in (".katex", ".js-plotly-plot"):
        box = page.locator(selector).last.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= 900
    page.keyboard.press("PageDown")
    expect(page.get_by_text("Predicted.")).to_be_visible()
    page.wait_for_selector(READY)
    page.keyboard.press("p")
    expect(page.get_by_test_id("stHeader")).to_be_visible()


def test_earlier_names_of_pages_redirect_with_their_settings(open_page):
    page = open_page("/kernel_drift?widths=30,100")
    expect(page).to_have_url(re.compile(r"/kernel_change\?.*widths="))
    page = open_page("/overview", alone=True)
    heading = page.get_by_role("heading", name="When does a wide network become linear?")
    expect(heading).to_be_visible()
    assert page.get_by_text("Page not found").count() == 0
    page.get_by_role("link", name="See why").click()
    shows(page, 0)
