"""The same network looks the same in every figure of every result that ships."""

from __future__ import annotations

import json
import re
from itertools import combinations, product

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.charts import style as module
from dashboard.charts.style import compared_styles, graph_style, network_style
from dashboard.views.lecture.steps import STEPS
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.kinds import ARCHITECTURES
from ntk_core.runs import PRESETS
from tests.dashboard.open_pages import checked, open_page

OKABE_ITO = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"}
SHOWN = [(spec.experiment, name) for name, preset in PRESETS.items() if (spec := preset.spec)]
SHOWN.remove(("kernel_change", "kernel-convergence"))  # on no page


@pytest.fixture(scope="module")
def pages(opening_through_the_menu) -> dict[str, tuple[list, list[str]]]:
    """Preset → its charts as the page draws them, and the captions of the page."""
    found = {}
    apps: dict[str, AppTest] = {}
    for page, preset in SHOWN:
        app = apps[page] = apps[page] if page in apps else open_page(page)
        app.query_params = {"preset": preset}
        checked(app.run())
        assert not app.warning, (page, preset)
        found[f"{page} {preset}"] = _shown(app)
    lecture = open_page("lecture")
    for step in STEPS:
        lecture.query_params = {"step": step.name}
        checked(lecture.run())
        checked(lecture.button(key="lecture.show").click().run())
        found[f"lecture {step.name}"] = _shown(lecture)
    return found


def _shown(app: AppTest) -> tuple[list, list[str]]:
    return [element.proto for element in app.get("plotly_chart")], [
        caption.value.replace("\\", "") for caption in app.caption
    ]


@pytest.fixture(scope="module")
def figures(pages) -> dict[str, list]:
    """Preset → its charts."""
    return {name: charts for name, (charts, _) in pages.items()}


def test_every_fitted_interval_says_below_its_chart_what_it_is_about(pages):
    """The draws that it is over, and the runs that it is given; nowhere else is it said, or forgotten."""
    counted = 0
    for name, (charts, captions) in pages.items():
        traces = [json.loads(chart.spec)["data"] for chart in charts]
        with_interval = sum(
            any("∝" in trace.get("name", "") and "±" in trace["name"] for trace in each)
            or any(
                any(trace.get("error_y", {}).get("array", ())) and "exponent" in trace.get("hovertemplate", "")
                for trace in each
            )
            for each in traces
        )
        said = [
            words for words in captions if words.startswith("95% intervals: over seeds of the network for this one")
        ]
        assert len(said) == with_interval, name
        assert all(re.search(r"given the (\d+ )?runs that count", words) for words in said)
        counted += len(said)
    assert counted > 30


def legend(figures) -> list[tuple[str, str, dict]]:
    """(preset, name without its exponent, trace) of every entry of every legend."""
    return [
        (preset, re.sub(r" ∝ .*", "", trace["name"]), trace)
        for preset, charts in figures.items()
        for chart in charts
        for trace in json.loads(chart.spec)["data"]
        if trace.get("showlegend", True) and trace.get("name") and trace["type"] == "scatter"
    ]


def test_a_name_has_one_color_in_every_figure_of_every_result(figures):
    colors: dict[str, dict[str, str]] = {}
    for preset, name, trace in legend(figures):
        color = (trace.get("line") or trace.get("marker") or {}).get("color")
        colors.setdefault(name, {})[str(color)] = preset
    assert {name: found for name, found in colors.items() if len(found) > 1} == {}


def test_a_network_has_one_dash_and_symbol_in_every_figure_of_every_result(figures):
    networks = {network_style(kind, output).title for kind, output in product(ARCHITECTURES, OUTPUTS)}
    looks: dict[str, dict[tuple, str]] = {}
    for preset, name, trace in legend(figures):
        if name in networks and "lines" in trace["mode"] and "markers" in trace["mode"]:
            looks.setdefault(name, {})[trace["line"]["dash"], str(trace["marker"]["symbol"])] = preset
    assert len(looks) >= 5
    assert {name: found for name, found in looks.items() if len(found) > 1} == {}


def test_lines_have_only_colors_that_everybody_can_tell_apart(figures):
    colors = {trace["line"]["color"] for _, _, trace in legend(figures) if "lines" in trace["mode"]}
    assert colors - OKABE_ITO <= {module.GUIDE_COLOR}


def test_no_two_networks_share_color_dash_and_symbol():
    looks = [(network_style(kind, output, "x"), kind, output) for kind, output in product(module._KINDS, OUTPUTS)]
    for (one, *first), (other, *second) in combinations(looks, 2):
        assert one != other, (first, second)


def test_a_network_looks_the_same_where_graphs_and_pairs_are_shown():
    for graph, kind in (("bottleneck-layer", "bottleneck"), ("fixed-skips", "resnet"), ("shared-weights", "convnet")):
        look = graph_style(graph)
        assert (look.color, look.dash, look.symbol) == (
            network_style(kind).color,
            network_style(kind).dash,
            network_style(kind).symbol,
        )
    pair = compared_styles({"A": "resnet", "B": "resnet"}, "linear")
    assert pair["A"].color == pair["B"].color == network_style("resnet").color
    assert pair["A"].dash != pair["B"].dash
    assert pair["A"].symbol != pair["B"].symbol


def test_every_network_of_the_vocabulary_has_a_look():
    for kind in ARCHITECTURES:
        assert network_style(kind).title


def test_the_takeaway_of_a_figure_comes_from_its_numbers(figures):
    """Another result gives another sentence, of every chart; those of liu-fig1-right are runs of the left one."""
    sentences: dict[str, dict[str, str]] = {}
    for preset, charts in figures.items():
        for chart in charts:
            if preset.endswith("liu-fig1-right"):
                continue
            name = chart.id.rpartition("-")[2]
            assert any(character.isdigit() for character in chart.alt), (preset, name)
            assert chart.alt not in sentences.setdefault(name, {}), (preset, sentences[name].get(chart.alt))
            sentences[name][chart.alt] = preset
    assert sum(len(found) for found in sentences.values()) > 100
