"""Figures in a browser: clicks, zooms and marks that outlast reruns.

Points that arrive over the old curves.
"""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from benchmarks.browser import SCREEN
from benchmarks.first_sight import PLACES
from tests.browser.conftest import press_run, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# Three quick widths, then a slow one to stop; no run reaches the threshold.
SWEEP = (
    "/kernel_change?widths=2,3,4,30000&training.max_steps=2000&training.loss_threshold=1e-9"
    "&outputs=linear"
)
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
MOVING = (
    "Array.from(document.querySelectorAll('.js-plotly-plot')).find(chart => "
    "chart.layout?.sliders?.length)"
)
# Steps of the cursor in all figures along training.
CURSORS = (
    "Array.from(document.querySelectorAll('.linked-line')).map(line => Number(line.dataset.at))"
)
SHOWN_STEP, CURVE = f"{MOVING}.layout.sliders[0].active", f"Array.from({MOVING}.data[1].y).join()"
GHOSTS = f"{SWEPT}?.data?.filter(trace => trace.meta?.ghost).length"
PALE = f"getComputedStyle({SWEPT}.querySelector('.overplot')).opacity"
WIDTHS_SHOWN = f"""(() => {{
  const seeds = ({SWEPT}?.data ?? []).filter(trace => trace.mode === 'markers');
  return seeds.length ? new Set(Array.from(seeds[0].x, Number).filter(width => width < 5)).size : 0;
}})()"""


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


@pytest.mark.long
def test_clicks_show_runs_and_zoom_stays_until_a_double_click(open_page):
    page = open_page("/kernel_change")
    wait_until(page, f"{LINE} === '10000'")
    home = page.evaluate(ranges(SWEPT))
    click_on(page, 300)
    wait_until(page, f"{LINE} === '300'")
    beside = page.locator(".st-key-side .clicked-run")
    expect(beside).to_contain_text("at width 300.")
    box = beside.bounding_box()
    assert box["y"] + box["height"] <= SCREEN["height"], "the answer is on the screen of the click"
    # Two axes (ΔK and loss) with three outputs each, and ΔK of the softmax of the linear model.
    expect(beside.locator("svg path")).to_have_count(9)

    seen = zoom_into(page, 0)
    click_on(page, 1000)
    assert page.evaluate(ranges(SWEPT)) == seen
    along = zoom_into(page, 1)
    page.evaluate(
        f"Plotly.restyle({BESIDE}, {{ visible: 'legendonly' }}, [0]); {BESIDE}.marked = true"
    )
    choose_width(page, "3,000")
    wait_until(page, f"{LINE} === '3000'")
    # Another element.
    wait_until(page, f"({LABEL}).includes('at width 3,000.') && !{BESIDE}.marked")
    wait_until(
        page, f"{ranges(BESIDE)} === '{along}' && {BESIDE}._fullData?.[0].visible === 'legendonly'"
    )
    assert page.evaluate(f"{BESIDE}._fullData[1].visible") is True
    assert page.evaluate(ranges(SWEPT)) == seen
    page.locator(".js-plotly-plot").first.locator(".nsewdrag").dblclick()
    wait_until(page, f"{ranges(SWEPT)} === '{home}'")


@pytest.mark.long
def test_play_shows_recorded_steps_and_moves_the_cursor(open_page):
    page = open_page("/dynamics?preset=curves-in-one-dimension")
    wait_until(page, f"{MOVING} !== undefined")
    last, at_end = page.evaluate(SHOWN_STEP), page.evaluate(CURVE)
    page.get_by_text("▶", exact=True).click()
    wait_until(page, f"{SHOWN_STEP} < {last}")
    assert page.evaluate(CURVE) != at_end
    wait_until(
        page, f"{CURSORS}.length > 0 && {CURSORS}.every(at => at > 1 && at === {CURSORS}[0])"
    )
    wait_until(page, f"{SHOWN_STEP} === {last} && {CURVE} === '{at_end}'")


@pytest.mark.long
def test_points_arrive_over_old_curves_and_runs_stop(open_page):
    """Stop in the tray of a phone, beside its menu,
    ends a local run in every tab that follows it.
    """
    page = open_page(SWEEP)
    expect(page.get_by_text(re.compile(r"Settings changed \(.*Widths m.*\)"))).to_be_visible()
    wait_until(page, f"{GHOSTS} === 0 && {PALE} === '0.3'")
    page.wait_for_timeout(500)
    before = page.evaluate(PLACES)
    page.evaluate(f"{SWEPT}.kept = true")
    press_run(page)
    progress = page.get_by_test_id("job-progress")
    expect(progress).to_be_visible()
    assert page.evaluate(f"{SWEPT}.kept || {GHOSTS} > 0"), "the figure was never gone"
    wait_until(page, f"{WIDTHS_SHOWN} >= 1")
    assert page.evaluate(WIDTHS_SHOWN) < 3, "the first points were drawn before the last ones"
    wait_until(page, f"{WIDTHS_SHOWN} === 3 && {GHOSTS} > 0 && {PALE} === '1'")
    assert page.evaluate(PLACES) == pytest.approx(before, abs=1), "a run moves nothing"
    expect(progress).to_contain_text("3 of 4 widths")
    choose_width(page, "2")
    wait_until(page, f"({LABEL}).includes('at width 2.')")
    ghosts = page.evaluate(GHOSTS)

    job = page.evaluate("new URLSearchParams(location.search).get('job')")
    other = open_page(f"/kernel_change?job={job}", alone=True)
    expect(other.get_by_test_id("job-progress")).to_contain_text("of 4 widths")

    page.set_viewport_size({"width": 360, "height": 740})
    tray = page.locator(".st-key-job_tray")
    expect(tray.get_by_role("button", name="1 running")).to_be_visible()
    # Fails if another element is on top.
    page.get_by_test_id("stExpandSidebarButton").click(timeout=5_000)
    page.get_by_test_id("stSidebarCollapseButton").click()
    tray.get_by_role("button", name="1 running").click()
    tray.get_by_role("button", name=re.compile("^Stop")).click()
    expect(tray.get_by_text("stopped, 3 of 4 widths done")).to_be_visible()
    expect(other.get_by_text("Stopped: 3 of 4 widths are done")).to_be_visible()
    page.set_viewport_size(SCREEN)
    expect(page.get_by_text("Stopped: 3 of 4 widths are done. Resume continues")).to_be_visible()
    assert page.evaluate(GHOSTS) == ghosts, "Stop redraws nothing"

    page.get_by_role("button", name="Resume").click()
    expect(progress).to_contain_text("3 of 4 widths")
    wait_until(page, f"({LABEL}).includes('at width 2.')")
    assert page.evaluate(GHOSTS) == ghosts, "a running run has no ghost of itself"
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 3 of 4 widths")).to_be_visible()


@pytest.mark.long_after(1)
@pytest.mark.parametrize(
    ("url", "width", "height"),
    [
        ("/kernel_change?preset=liu-fig1-right", 1280, 720),
        ("/explore", 1920, 1080),
        ("/hessian", 1920, 1080),
    ],
)
def test_key_p_shows_a_figure_on_the_whole_screen(open_page, url, width, height):
    """Axis letters are at least 2% of the screen's height, and no toolbar is left."""
    page = open_page(url)
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_selector(".js-plotly-plot .main-svg")

    def is_presented() -> bool:
        if not page.locator(
            ".presented"
        ).count():  # the key has no effect before the scripts have loaded
            page.keyboard.press("p")
        return page.locator(".presented .main-svg").count() > 0

    assert is_soon(page, is_presented)
    found = page.evaluate(
        """() => {
          const frame = document.querySelector(".presented-figure");
          const shown = frame.getBoundingClientRect();
          const scale = shown.width / frame.offsetWidth;
          const letters = [...frame.querySelectorAll("[class$=tick] text")];
          const sizes = letters.map((each) => parseFloat(getComputedStyle(each).fontSize));
          return {
            least: scale * Math.min(...sizes) / innerHeight,
            count: letters.length,
            fits: shown.right <= innerWidth + 1 && shown.bottom <= innerHeight + 1,
            bars: frame.querySelectorAll(".modebar").length,
          };
        }"""
    )
    assert found["count"] > 5
    assert found["least"] >= 0.02
    assert found["fits"]
    assert found["bars"] == 0
    page.keyboard.press("Escape")
    expect(page.locator(".presented")).to_have_count(0)
