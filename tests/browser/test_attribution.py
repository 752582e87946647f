"""A click in the scatter of leave-one-out shows the training point of the mark."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
PRESET = "/attribution?preset=point-worth-width&tab=Predicted+against+retrained"
SCATTER = (
    "[...document.querySelectorAll('.js-plotly-plot')].find(each => "
    "each._fullLayout?.xaxis?.title?.text.startsWith('predicted change'))"
)
# The mark whose nearest neighbor is farthest away: no other mark is under the pointer there.
LONELY = f"""(() => {{
  const plot = {SCATTER}, {{ xaxis, yaxis }} = plot._fullLayout;
  const frame = plot.getBoundingClientRect();
  const marks = plot._fullData.filter(trace => trace.mode === 'markers').flatMap(trace =>
    Array.from(trace.x, (x, index) => ({{
      removed: trace.customdata[index][0],
      left: frame.left + xaxis._offset + xaxis.d2p(x),
      top: frame.top + yaxis._offset + yaxis.d2p(trace.y[index]),
    }})));
  const distance = (a, b) => Math.hypot(a.left - b.left, a.top - b.top);
  const nearest = mark => Math.min(...marks.filter(each => each !== mark)
    .map(each => distance(each, mark)));
  return marks.reduce((best, mark) => nearest(mark) > nearest(best) ? mark : best);
}})()"""
# Training points of the marks that are drawn in full.
BOLD = f"""[...new Set({SCATTER}._fullData.filter(trace => trace.mode === 'markers')
  .flatMap(trace => Array.from(trace.customdata, (note, index) =>
    (Array.isArray(trace.marker.opacity) || ArrayBuffer.isView(trace.marker.opacity)
      ? trace.marker.opacity[index] : 1) === 1 ? note[0] : null))
  .filter(each => each !== null))].sort((a, b) => a - b).join()"""


def click_a_mark(page: Page) -> int:
    """Click the mark that stands apart from all others; return its training point."""
    mark = page.evaluate(LONELY)
    page.mouse.move(mark["left"], mark["top"])
    # Plotly clicks what it has found under the pointer before.
    expect(page.locator(".hoverlayer .hovertext")).to_contain_text(
        f"without training point {mark['removed']},"
    )
    page.mouse.click(mark["left"], mark["top"])
    return int(mark["removed"])


def test_click_in_the_scatter_shows_the_training_point(open_page):
    page = open_page(PRESET)
    wait_until(page, f"!!{SCATTER}?.querySelector('.scatterlayer .point')")
    page.evaluate(f"{SCATTER}.scrollIntoView({{ block: 'center' }})")
    wait_until(page, f"{BOLD}.includes(',')")  # at first all points

    removed = click_a_mark(page)

    wait_until(page, f"{BOLD} === '{removed}'")
    shown = page.get_by_role("figure", name=re.compile(rf"^Training point {removed}, target"))
    expect(shown).to_be_visible()
    expect(page.get_by_text(re.compile(rf"^Training point {removed}, target"))).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
    choice = page.get_by_role("combobox", name="Training point")
    expect(choice).to_have_value(f"point {removed}")
