"""Clicks on figures, and figures that persist across reruns, in a real browser."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import READY, SCREEN, press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# Two quick widths, then a slow one to stop; no run reaches the threshold.
SWEEP = "/kernel_change?widths=2,3,30000&training.max_steps=5000&training.loss_threshold=1e-9&outputs=linear"
# Position of the first line's mean at this width, once it is clickable.
PLACE = """width => {
  const plot = document.querySelector('.js-plotly-plot'), { xaxis, yaxis } = plot._fullLayout;
  const line = plot.data.find(trace => trace.mode === 'lines+markers');
  const y = Array.from(line.y, Number)[Array.from(line.x, Number).indexOf(width)];
  const { left, top } = plot.getBoundingClientRect();
  return [left + xaxis._offset + xaxis.d2p(width), top + yaxis._offset + yaxis.d2p(y)];
}"""
SWEPT, BESIDE = (f"document.querySelectorAll('.js-plotly-plot')[{index}]" for index in (0, 1))
LINE = f"{SWEPT}?.querySelector('.linked-line')?.dataset.at"
LABEL = "document.querySelectorAll('[role=figure]')[1]?.ariaLabel ?? ''"
MOVING = "Array.from(document.querySelectorAll('.js-plotly-plot')).find(chart => chart.layout?.sliders?.length)"
SHOWN_STEP, CURVE = f"{MOVING}.layout.sliders[0].active", f"Array.from({MOVING}.data[1].y).join()"
GHOSTS = f"{SWEPT}?.data?.filter(trace => trace.meta?.ghost).length"


def is_soon(page, condition: str | Callable[[], bool]) -> bool:
    """Whether a condition or a JavaScript expression becomes true within three seconds."""
    for _ in range(20):
        if page.evaluate(condition) if isinstance(condition, str) else condition():
            return True
        page.wait_for_timeout(150)
    return False


def click_on(page, width: int) -> None:
    """Click on a mean until the linked figure shows the run of that width."""
    for _ in range(4):
        at = page.evaluate(PLACE, width)
        page.mouse.move(*at)
        page.wait_for_timeout(500)
        page.mouse.click(*at)
        if is_soon(page, f"({LABEL}).includes('at width {width:,}.')"):
            return
    pytest.fail(f"a click on width {width} did not show its run")


def choose_width(page, width: str) -> None:
    """Choose in the list, and retry if a rerun closes it."""
    chooser = page.get_by_role("combobox", name="Width m")
    option = page.get_by_role("option", name=width, exact=True)
    for _ in range(4):
        chooser.click()
        chooser.press("ArrowDown")
        if is_soon(page, lambda: option.count() > 0):
            option.click()
            if is_soon(page, lambda: chooser.input_value() == width):
                return
    pytest.fail(f"width {width} could not be chosen")


def test_click_on_a_width_and_chooser_show_its_run(open_page):
    page = open_page("/kernel_change")
    wait_until(page, f"{LINE} === '10000'")
    for width in (300, 1000):
        click_on(page, width)
        wait_until(page, f"{LINE} === '{width}'")
        expect(page.get_by_role("combobox", name="Width m")).to_have_value(f"{width:,}")
        faint = "({ style }) => 0 < style.opacity && style.opacity < 0.4"  # marks beside names have 0 for spacing
        faded = f"[...{SWEPT}.querySelectorAll('.points path')].some({faint})"
        assert not page.evaluate(faded), "no other point fades"
        beside = page.locator(".st-key-side .clicked-run")
        expect(beside).to_contain_text(f"at width {width:,}.")
        box = beside.bounding_box()
        assert box["y"] + box["height"] <= SCREEN["height"], "the answer is on the screen of the click"
        expect(beside.locator("svg path")).to_have_count(8)  # two axes (ΔK and loss) with three outputs each
    choose_width(page, "3,000")
    wait_until(page, f"{LINE} === '3000'")


def test_play_shows_recorded_steps_and_moves_the_cursor(open_page):
    page = open_page("/dynamics?preset=curves-in-one-dimension")
    wait_until(page, f"{MOVING} !== undefined")
    last, at_end = page.evaluate(SHOWN_STEP), page.evaluate(CURVE)
    page.get_by_role("tab", name="In motion").click()
    page.get_by_text("▶", exact=True).click()
    wait_until(page, f"{SHOWN_STEP} < {last}")
    assert page.evaluate(CURVE) != at_end
    wait_until(page, f"{LINE} > 1 && {BESIDE}.querySelector('.linked-line')?.dataset.at === {LINE}")
    wait_until(page, f"{SHOWN_STEP} === {last} && {CURVE} === '{at_end}'")


def test_width_axis_starts_at_the_first_visible_value(open_page):
    page = open_page("/hessian")
    first = "10 ** (document.querySelector('.js-plotly-plot')?._fullLayout?.xaxis?.range?.[0] ?? 0)"
    wait_until(page, f"{first} > 80")
    page.wait_for_selector(READY)  # a redrawn chart loses the click
    page.locator(".js-plotly-plot").first.locator(".traces", has_text="CNN").first.locator(".legendtoggle").click()
    wait_until(page, f"{first} > 4 && {first} < 8")


def test_old_figure_is_below_new_points_and_stopped_run_resumes(open_page):
    page = open_page(SWEEP)
    wait_until(page, f"{GHOSTS} === 0")
    expect(page.get_by_text(re.compile(r"Settings changed \(.*Widths m.*\)"))).to_be_visible()
    pale = f"getComputedStyle({SWEPT}.querySelector('.overplot')).opacity"
    wait_until(page, f"{pale} === '0.3'")
    page.evaluate(f"{SWEPT}.kept = true")
    press_run(page)
    expect(page.get_by_test_id("job-progress")).to_be_visible()
    assert page.evaluate(f"{SWEPT}.kept || {GHOSTS} > 0"), "the figure was never gone"
    wait_until(page, f"{GHOSTS} > 0 && {pale} === '1'")
    expect(page.get_by_text("Pale curves show the previous settings (")).to_be_visible()
    expect(page.get_by_test_id("job-progress")).to_contain_text("2 of 3 widths")
    choose_width(page, "2")
    wait_until(page, f"({LABEL}).includes('at width 2.')")
    ghosts = page.evaluate(GHOSTS)
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 2 of 3 widths are done. Resume continues")).to_be_visible()
    assert page.evaluate(GHOSTS) == ghosts, "Stop redraws nothing"

    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_test_id("job-progress")).to_contain_text("2 of 3 widths")
    wait_until(page, f"({LABEL}).includes('at width 2.')")
    assert page.evaluate(GHOSTS) == ghosts, "a running run has no ghost of itself"
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 2 of 3 widths")).to_be_visible()


def ranges(plot: str) -> str:
    return f"JSON.stringify([{plot}?._fullLayout?.xaxis?.range, {plot}?._fullLayout?.yaxis?.range])"


def zoom_into(page, number: int) -> str:
    """Drag a frame over the middle of a figure and return the new ranges of its axes."""
    plot = (SWEPT, BESIDE)[number]
    before = page.evaluate(ranges(plot))
    area = page.locator(".js-plotly-plot").nth(number).locator(".nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 0.1 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.9 * box["height"], steps=5)
    page.mouse.up()
    wait_until(page, f"{ranges(plot)} !== '{before}'")
    return page.evaluate(ranges(plot))


def test_zoom_survives_clicks_until_a_double_click(open_page):
    page = open_page("/kernel_change")
    wait_until(page, f"{LINE} === '10000'")
    home = page.evaluate(ranges(SWEPT))
    seen = zoom_into(page, 0)
    click_on(page, 1000)
    assert page.evaluate(ranges(SWEPT)) == seen

    along = zoom_into(page, 1)
    page.evaluate(f"{BESIDE}.marked = true")
    choose_width(page, "3,000")
    wait_until(page, f"({LABEL}).includes('at width 3,000.') && !{BESIDE}.marked")  # another element
    wait_until(page, f"{ranges(BESIDE)} === '{along}'")
    assert page.evaluate(ranges(SWEPT)) == seen

    page.evaluate(f"Plotly.restyle({BESIDE}, {{ visible: 'legendonly' }}, [0]); {BESIDE}.marked = true")
    choose_width(page, "1,000")
    wait_until(page, f"({LABEL}).includes('at width 1,000.') && !{BESIDE}.marked")
    wait_until(page, f"{BESIDE}._fullData?.[0].visible === 'legendonly'")
    assert page.evaluate(f"{BESIDE}._fullData[1].visible") is True

    page.locator(".js-plotly-plot").first.locator(".nsewdrag").dblclick()
    wait_until(page, f"{ranges(SWEPT)} === '{home}'")
