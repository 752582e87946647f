"""The editor of graphs as a person uses it: a cell typed into, a file brought along, a file that is none."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import TimeoutError, expect

from ntk_core.networks.graphs import bottleneck_layer_graph, graph_data
from tests.browser.conftest import READY

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TIMEOUT_MS = 60_000
NARROW = "All 1,024 neurons of group b have in-degree 4 (from a) at every width: not wide."


def upload(page, path) -> None:
    """Open the menu, which closes when the page runs again, and hand the file over."""
    page.wait_for_selector(READY, timeout=TIMEOUT_MS)
    if page.locator('input[type="file"]').count() == 0:
        page.get_by_role("button", name="JSON").click()
    page.locator('input[type="file"]').set_input_files(path)


def type_neurons_of_first_group(page, text: str, until: str) -> None:
    """Type into the canvas of the table, again where it was not yet listening."""
    table = page.get_by_test_id("stDataFrame").first
    for _ in range(4):
        page.wait_for_selector(READY, timeout=TIMEOUT_MS)
        table.click(position={"x": 215, "y": 52})
        page.keyboard.type(text)
        page.keyboard.press("Enter")
        try:
            page.get_by_text(until).wait_for(timeout=TIMEOUT_MS / 4)
        except TimeoutError:
            continue
        return
    pytest.fail("what was typed into the table did not change the graph")


def test_a_typed_cell_an_imported_file_and_a_wrong_file_change_the_drawing_or_say_why(open_page, tmp_path):
    page = open_page("/dag?graph=" + json.dumps({
        "groups": [{"name": "a"}, {"name": "b"}],
        "edges": [{"source": s, "target": t} for s, t in (("input", "a"), ("a", "b"), ("b", "output"))],
    }, separators=(",", ":")))  # fmt: skip
    expect(page.get_by_text("Wide: becomes linear")).to_be_visible(timeout=TIMEOUT_MS)

    type_neurons_of_first_group(page, "4", until=NARROW)
    assert '"size":4' in page.url.replace("%22", '"').replace("%3A", ":")

    good, bad = tmp_path / "graph.json", tmp_path / "none.json"
    good.write_text(json.dumps(graph_data(bottleneck_layer_graph())))
    bad.write_text("{")
    upload(page, good)
    expect(page.get_by_text("neurons of group c have in-degree 2 (from b)")).to_be_visible(timeout=TIMEOUT_MS)
    upload(page, bad)
    expect(page.get_by_text("graph: { cannot be used; use JSON text with groups and edges.")).to_be_visible(
        timeout=TIMEOUT_MS
    )
    expect(page.get_by_text("neurons of group c have in-degree 2 (from b)")).to_have_count(1)
