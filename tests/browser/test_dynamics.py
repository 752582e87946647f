"""A network beside its linear model, in a browser."""

from __future__ import annotations

import pytest

from tests.browser.conftest import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 60_000
MOVING = "Array.from(document.querySelectorAll('.js-plotly-plot')).find(chart => chart.layout?.sliders?.length)"
SHOWN_STEP = f"{MOVING}.layout.sliders[0].active"
CURVE = f"Array.from({MOVING}.data[1].y).join()"


def test_play_shows_every_recorded_step_in_order(open_page):
    page = open_page("/dynamics?preset=curves-in-one-dimension")
    wait_until(page, f"{MOVING} !== undefined", timeout=TIMEOUT_MS)
    last, at_end = page.evaluate(SHOWN_STEP), page.evaluate(CURVE)
    page.get_by_role("tab", name="In motion").click()
    page.locator(".updatemenu-button").first.click()
    wait_until(page, f"{SHOWN_STEP} < {last}", timeout=TIMEOUT_MS)
    assert page.evaluate(CURVE) != at_end
    wait_until(page, f"{SHOWN_STEP} === {last}", timeout=TIMEOUT_MS)
    wait_until(page, f"{CURVE} === '{at_end}'", timeout=TIMEOUT_MS)
