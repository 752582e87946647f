"""Runs in a browser: a newcomer's first one, uploaded data, growing curves in frames,
saved pictures.
"""

import json
import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from benchmarks.browser import READY
from benchmarks.contrast import contrast
from tests.browser.conftest import press_run, wait_for, wait_until
from tests.data.uploads.files import flowers

pytestmark = pytest.mark.browser
SMALL = {
    "widths": "2,4",
    "num_seeds": "2",
    "dataset.num_samples": "6",
    "training.max_steps": "20",
    "outputs": "linear",
}
WIDTHS_SHOWN = """(() => {
  const chart = document.querySelector('.js-plotly-plot');
  const seeds = chart ? chart.data.filter(trace => trace.mode === 'markers') : [];
  return seeds.length ? [...new Set(Array.from(seeds[0].x, Number))].join() : '';
})()"""
# One point, slow enough to watch.
SLOW = (
    "preset=hu-fig2&values=512&dataset.num_samples=1000&training.max_steps=20000"
    "&training.learning_rate=0.5"
)
STEPS_SHOWN = """Math.max(0, ...(document.querySelector('.js-plotly-plot')?.data ?? [])
  .filter(trace => !trace.meta?.ghost).flatMap(trace => Array.from(trace.x ?? [])))"""


def test_from_overview_to_a_figure_of_the_gallery(open_page):
    page = open_page("/")
    page.wait_for_selector(".early", state="detached")  # has the same heading as the page
    expect(
        page.get_by_role("heading", name="When does a wide network become linear?")
    ).to_be_visible()
    page.get_by_test_id("stTopNavSection").filter(has_text="Measure").click()
    page.get_by_test_id("stTopNavDropdownLink").filter(has_text="Kernel").first.click()
    page.wait_for_url("**/kernel_change*")
    page.wait_for_selector(".js-plotly-plot .main-svg")  # from the gallery, before any run


@pytest.mark.long  # starts workers
def test_own_run_draws_its_figure_and_is_exported(open_page):
    page = open_page(
        "/kernel_change?" + "&".join(f"{name}={value}" for name, value in SMALL.items())
    )
    press_run(page)
    wait_until(page, f"{WIDTHS_SHOWN} === '2,4'")
    expect(page.get_by_test_id("job-progress")).to_have_count(0)

    page.get_by_role("button", name="Export").click()
    with page.expect_download() as numbers:
        page.get_by_role("button", name="Result, JSON").click()
    result = json.loads(Path(numbers.value.path()).read_text(encoding="utf-8"))
    assert [point["width"] for point in result["points"]] == [2, 4]


@pytest.mark.long
def test_one_press_runs_uploaded_data(open_page, tmp_path):
    path = tmp_path / "flowers.csv"
    path.write_bytes(flowers())
    page = open_page("/own_data")
    page.locator('input[type="file"]').set_input_files(path)
    expect(page.get_by_text("60 rows, 4 columns").first).to_be_attached()
    page.get_by_role("button", name="Watch its kernel move").click()
    expect(page).to_have_url(re.compile(r"/kernel_change\?.*=[0-9a-f]{64}"))
    # Streamlit has another one.
    stop = page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Stop")
    stop.click()
    expect(page.get_by_text("Stopped:").first).to_be_visible()


@pytest.mark.long
def test_curves_grow_within_a_point_also_where_embedded(open_page):
    page = open_page(f"/early_time?{SLOW}")
    press_run(page)
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point")
    wait_until(page, f"{STEPS_SHOWN} > 0 && {STEPS_SHOWN} < 250")
    job = page.evaluate("new URLSearchParams(location.search).get('job')")
    embedded = open_page(f"/early_time?embed=true&job={job}", alone=True, ready=False)
    wait_until(embedded, f"{STEPS_SHOWN} > 0")
    first = embedded.evaluate(STEPS_SHOWN)
    wait_until(embedded, f"{STEPS_SHOWN} > {first}")
    wait_until(page, f"{STEPS_SHOWN} > {first} && {STEPS_SHOWN} < 20000")
    expect(page.get_by_test_id("job-progress")).to_contain_text("0 of 1 point")
    embedded.close()
    page.wait_for_timeout(1_000)  # Stop does not end a job that two sessions follow
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped: 0 of 1 point are done. Run begins again")).to_be_visible()


@pytest.mark.long  # starts workers
def test_news_of_a_new_preview_come_before_the_stated_time(open_page, dashboard_url):
    page = open_page("/_stcore/health", ready=False)
    asked: set[str] = set()

    def answer_rarely(route: Route) -> None:
        found = route.fetch()
        answer = found.json()
        asked.update(job["id"] for job in answer["jobs"])
        route.fulfill(response=found, json={**answer, "every_s": 1e6})

    page.route("**/api/jobs", answer_rarely)
    page.goto(f"{dashboard_url}/explore?activation=gelu")
    page.wait_for_selector(READY)
    wait_for(page, lambda: len(asked) == 1)
    page.get_by_role("combobox", name="Activation").click()
    page.get_by_role("option", name="erf").click()
    wait_for(page, lambda: len(asked) == 2)


def saved(page: Page, kind: str, number: int = 0) -> tuple[str, bytes]:
    """Name and content of the file saved by a figure's button."""
    with page.expect_download() as download:
        page.get_by_role("button", name=f"{kind}: ").nth(number).click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


@pytest.mark.long
def test_first_click_saves_a_picture_in_the_browser_alone(open_page, dashboard_url):
    page = open_page("/_stcore/health", ready=False)
    for path, kind in (("/kernel_change", "PNG"), ("/dag", "SVG")):
        page.goto(dashboard_url + path)
        page.wait_for_selector(".js-plotly-plot .main-svg")
        page.get_by_role("button", name="Export").click()
        page.get_by_role("button", name="PNG: ").first.wait_for()
        name, content = saved(page, kind)
        assert name.endswith(f".{kind.lower()}")
        width = page.evaluate("document.querySelector('.js-plotly-plot')._fullLayout.width")
        if kind == "PNG":
            assert name.startswith("kernel_change-against_width")
            assert content[:8] == b"\x89PNG\r\n\x1a\n"
            assert struct.unpack(">I", content[16:20])[0] == int(2 * width)
        else:
            assert ET.fromstring(content).tag == "{http://www.w3.org/2000/svg}svg"
            fills = re.findall(rb"<text[^>]*fill: rgb\((\d+), (\d+), (\d+)\)", content)
            words = {
                f"#{int(red):02X}{int(green):02X}{int(blue):02X}" for red, green, blue in fills
            }
            assert min(contrast(color, "#FFFFFF") for color in words) >= 4.5
    # On the last page, of graphs, each figure has its own buttons.
    rows = page.get_by_role("button", name="PNG: ").count()
    wait_until(page, f"document.querySelectorAll('.js-plotly-plot').length >= {rows}")
    assert len({saved(page, "SVG", number)[0] for number in range(rows)}) == rows > 1
