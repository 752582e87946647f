"""The graph canvas by mouse, touch and keyboard; imported files; verdicts that follow edits."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.browser import READY
from ntk_core.networks.graphs import bottleneck_layer_graph, graph_data
from tests.browser.conftest import Fingers, phone, press_run, run_button
from tests.browser.faults import faults
from tests.browser.test_accessibility import press_tab_until, violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SMALL = (
    "num_hessians=0&widths=8&num_seeds=1&outputs=linear&training.max_steps=50&dataset.num_samples=8"
)
# Name → [x, y] of the center of its box, and of the dot where an edge starts.
PLACES = """root => {
  const { svg, view, found, model } = root.canvas;
  const box = svg.getBoundingClientRect();
  const left = box.left + view.x;
  const top = box.top + view.y;
  const seen = ({ x, y }) => [left + view.scale * x, top + view.scale * y];
  return Object.fromEntries([...found].map(([id, at]) => [model.name(id), seen(at)])); }"""
PORTS = """root => Object.fromEntries([...root.querySelectorAll('.port')].map(port => {
  const { left, top, width, height } = port.getBoundingClientRect();
  const { group } = port.parentElement.dataset;
  return [root.canvas.model.name(group), [left + width / 2, top + height / 2]]; }))"""
DATA = "root => root.canvas.model.data()"
# The page records the drawing of each verdict.
WATCH = """root => { const seen = root.seen = []; new MutationObserver(() =>
  seen.push([root.dataset.outcome, JSON.stringify(root.canvas.model.data())]))
  .observe(root, { attributes: true, attributeFilter: ['data-outcome'] }); }"""


def canvas(page: Page) -> Locator:
    found = page.locator(".graph")
    found.wait_for()
    page.wait_for_selector(READY)
    return found


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*((a + b) / 2 for a, b in zip(start, end, strict=True)), steps=3)
    page.mouse.move(*end, steps=3)
    page.mouse.up()


def link(page: Page, one: str, other: str) -> None:
    graph = canvas(page)
    drag(page, graph.evaluate(PORTS)[one], graph.evaluate(PLACES)[other])


def press(page: Page, name: str) -> None:
    page.locator(".graph .bar").get_by_role("button", name=name).click()


def expect_verdict(page: Page, words: str) -> None:
    expect(page.locator(".graph .verdict")).to_have_text(words)


def edges(page: Page) -> list[tuple[str, str]]:
    return [(each["source"], each["target"]) for each in canvas(page).evaluate(DATA)["edges"]]


@pytest.mark.long
def test_from_an_empty_canvas_to_a_verdict_and_a_run(open_page):
    page = open_page(f"/dag?{SMALL}")
    graph, figure = canvas(page), page.locator(".js-plotly-plot").first
    expect_verdict(page, "Wide: becomes linear")
    expect(figure).to_be_visible()
    for part in (graph.locator(".frame"), graph.locator(".verdict"), figure, run_button(page)):
        assert part.evaluate("each => each.getBoundingClientRect().bottom") <= 860, (
            "all on one screen"
        )
    press(page, "Clear")
    expect_verdict(page, "Not a graph yet")
    expect(page.locator(".graph .reasons")).to_contain_text("groups: 0 groups cannot be used")
    graph.evaluate(WATCH)
    for _ in range(2):
        press(page, "Add group")
    for pair in (("input", "a"), ("a", "b"), ("b", "output")):
        link(page, *pair)
    expect_verdict(page, "Wide: becomes linear")
    assert edges(page) == [("input", "a"), ("a", "b"), ("b", "output")]
    judged = json.dumps(graph.evaluate(DATA), separators=(",", ":"))
    seen = graph.evaluate("root => root.seen")
    assert {text for outcome, text in seen if outcome == "good"} == {judged}, (
        "green over that drawing alone"
    )

    x, y = graph.evaluate(PLACES)["b"]
    page.mouse.click(x, y)
    neurons = page.locator(".inspector").get_by_label("Neurons", exact=False)
    neurons.fill("2")
    neurons.press("Enter")
    expect_verdict(page, "Not wide: linearity is not guaranteed")
    expect(page.locator(".graph .box.against .name")).to_have_text(["output"])
    page.keyboard.press("Escape")
    page.keyboard.press("Control+z")
    expect_verdict(page, "Wide: becomes linear")
    press_run(page)
    page.get_by_text("1 width · saved result").wait_for()
    expect_verdict(page, "Wide: becomes linear")
    assert edges(page) == [("input", "a"), ("a", "b"), ("b", "output")]
    page.mouse.move(0, 0)  # help of a button is pale while it fades
    expect(page.get_by_test_id("stTooltipContent")).to_have_count(0)
    assert violations(page) == []


@pytest.mark.long
def test_graphs_of_gallery_and_files_are_drawn_and_undone(open_page, tmp_path):
    page = open_page(f"/dag?{SMALL}")
    graph, gallery = canvas(page), page.get_by_role("combobox", name="Gallery of graphs")
    own = graph.evaluate(DATA)
    places = graph.evaluate(PLACES)
    drag(page, places["b"], (places["b"][0] + 20, places["b"][1] + 90))
    drop = below(graph.evaluate(PLACES))
    assert drop == pytest.approx(below(places) + 90, abs=2)

    good, bad = tmp_path / "graph.json", tmp_path / "none.json"
    good.write_text(json.dumps(graph_data(bottleneck_layer_graph())))
    bad.write_text("{")
    upload(page, good)
    expect_verdict(page, "Not wide: linearity is not guaranteed")
    expect(page.locator(".graph .reasons")).to_contain_text(
        "neurons of group c have in-degree 2 (from b)"
    )
    expect(gallery).to_have_value("bottleneck layer")
    upload(page, bad)
    expect(page.get_by_text("graph: text that is no JSON in line 1, column 2")).to_be_visible()
    assert graph.evaluate(DATA) == graph_data(bottleneck_layer_graph())

    press(page, "Undo")
    expect_verdict(page, "Wide: becomes linear")
    assert graph.evaluate(DATA) == own
    assert below(graph.evaluate(PLACES)) == pytest.approx(drop, abs=2)
    expect(gallery).to_have_value("")  # the graph of the preset is none of the gallery
    page.keyboard.press("Escape")
    gallery.click()
    page.get_by_role("option", name="two bottleneck neurons").click()
    expect_verdict(page, "Wide except for a few neurons: becomes linear")
    with page.expect_download() as saved:
        press(page, "Save")
    picture = Path(saved.value.path()).read_text(encoding="utf-8")
    assert picture.count("<rect") > 5
    assert ".graph .box" in picture, "with its styles"
    before = graph.evaluate("root => root.canvas.view")
    box = page.locator(".graph .frame").bounding_box()
    drag(page, (box["x"] + 30, box["y"] + 30), (box["x"] + 90, box["y"] + 50))
    press(page, "Zoom in")
    after = graph.evaluate("root => root.canvas.view")
    assert after["scale"] > before["scale"]
    press(page, "Fit")
    assert graph.evaluate("root => root.canvas.view") == pytest.approx(before)


def below(places: dict[str, tuple[float, float]]) -> float:
    """Vertical distance from the input to group b, independent of scrolling."""
    return places["b"][1] - places["input"][1]


def upload(page: Page, path) -> None:
    """Open the menu, which closes on each rerun, and upload the file."""
    page.wait_for_selector(READY)
    if page.locator('input[type="file"]').count() == 0:
        page.get_by_role("button", name="JSON").click()
    page.locator('input[type="file"]').set_input_files(path)
    page.wait_for_selector(READY)


def settled(page: Page) -> None:
    """Scroll the canvas to the middle of the screen and wait until the page settles."""
    expect(page.locator(".graph:not([data-outcome=waiting])")).to_be_visible()
    page.wait_for_selector(READY)
    page.locator(".graph .frame").evaluate("each => each.scrollIntoView({ block: 'center' })")
    page.wait_for_timeout(400)


FOCUS = "(at.shadowRoot?.activeElement ?? at)"


@pytest.mark.long
def test_a_finger_draws_moves_and_zooms_on_a_phone(browser, dashboard_url):
    page = phone(browser, f"{dashboard_url}/dag?{SMALL}", "dark")
    graph, fingers = canvas(page), Fingers(page)
    expect_verdict(page, "Wide: becomes linear")
    press(page, "Clear")
    expect_verdict(page, "Not a graph yet")
    press(page, "Add group")
    for one, other in (("input", "a"), ("a", "output")):
        settled(page)
        fingers.drag(graph.evaluate(PORTS)[one], graph.evaluate(PLACES)[other])
    expect_verdict(page, "Wide: becomes linear")
    assert edges(page) == [("input", "a"), ("a", "output")]
    settled(page)
    scroll = page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
    x, y = graph.evaluate(PLACES)["a"]
    fingers.drag((x, y), (x + 60, y + 40))
    assert graph.evaluate(PLACES)["a"] == pytest.approx([x + 60, y + 40], abs=3)
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == scroll
    before = graph.evaluate("root => root.canvas.view.scale")
    fingers.trace(*[[(x - 20 - 8 * s, y - 60), (x + 20 + 8 * s, y - 60)] for s in range(8)])
    assert graph.evaluate("root => root.canvas.view.scale") > 1.5 * before
    press(page, "Fit")
    assert faults(page) == []
    page.mouse.move(0, 0)  # help of a button is pale while it fades
    expect(page.get_by_test_id("stTooltipContent")).to_have_count(0)
    assert violations(page) == []
    page.context.close()


@pytest.mark.long
def test_keyboard_alone_draws_a_graph_and_runs_it(open_page):
    page = open_page(f"/dag?{SMALL}")
    graph = canvas(page)
    press_tab_until(page, f"{FOCUS}.ariaLabel === 'Clear'")
    page.keyboard.press("Enter")
    expect_verdict(page, "Not a graph yet")
    press_tab_until(page, f"{FOCUS}.tagName === 'SUMMARY' && {FOCUS}.closest('.graph')")
    page.keyboard.press("Enter")
    for _ in range(2):
        press_tab_until(page, f"{FOCUS}.textContent === 'Add group' && {FOCUS}.closest('.tables')")
        page.keyboard.press("Enter")
    for _ in range(3):
        press_tab_until(page, f"{FOCUS}.textContent === 'Add edge' && {FOCUS}.closest('.tables')")
        page.keyboard.press("Enter")
    assert edges(page) == [("input", "a"), ("input", "b"), ("input", "output")]
    for label, key in (("From, input → b", "a"), ("From, input → output", "b")):
        press_tab_until(page, f"{FOCUS}.ariaLabel === '{label}'")
        page.keyboard.press(key)
    expect_verdict(page, "Wide: becomes linear")
    assert edges(page) == [("input", "a"), ("a", "b"), ("b", "output")]
    press_tab_until(page, f"{FOCUS}.ariaLabel === 'Neurons, b'")
    page.keyboard.type("4")
    page.keyboard.press("Tab")
    expect_verdict(page, "Not wide: linearity is not guaranteed")
    assert graph.evaluate(DATA)["groups"] == [{"name": "a"}, {"name": "b", "size": 4}], (
        "not the row above or below"
    )
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect_verdict(page, "Wide: becomes linear")
    assert graph.evaluate(DATA)["groups"] == [{"name": "a"}, {"name": "b"}]
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**job=**")
