"""Styles across all shipped figures: one per network, distinct, readable, and explained."""

import json
import re
import tomllib
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import pytest

from benchmarks.contrast import contrast
from linearity_lab.charts import style as module
from linearity_lab.charts.chart import Chart
from linearity_lab.charts.style import VIOLETS, network_style, registry, width_style
from linearity_lab.dashboard.pages.lecture.page import _results
from linearity_lab.dashboard.pages.lecture.steps import STEPS
from linearity_lab.page_modules import page_folders
from linearity_lab.runs import EXPERIMENTS, PRESETS
from linearity_lab.site import gallery_figures
from linearity_lab.words.pages import charts_in
from ntk_core.networks.choices import OUTPUTS
from ntk_core.networks.kinds import ARCHITECTURES
from tests.dashboard.open_pages import ROOT

THEMES = [
    theme
    for theme in tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"].values()
    if isinstance(theme, dict)
]
# Their looks are those of other families, too; titles distinguish them.
SHARING_KINDS = ("attention", "transformer", "adapted", "assembly")
SHARING = tuple(f"network {kind} " for kind in SHARING_KINDS)
SHARING_TITLES = tuple(network_style(kind, "linear").title for kind in SHARING_KINDS)
DISTINCT = {
    meaning: look for meaning, look in registry().items() if not meaning.startswith(SHARING)
}
# Pairs of networks draw kernels before training with open marks.
SHARED_LOOKS = {
    (look.color, look.dash, f"{look.symbol}-open")
    for meaning, look in registry().items()
    if meaning.startswith(SHARING)
}
STYLES = {(look.color, look.dash, look.symbol): meaning for meaning, look in DISTINCT.items()}
RAMP = {
    (look.color, look.dash, look.symbol)
    for count in range(1, 9)
    for index in range(count)
    for look in [width_style(index, count, "")]
}
OUTPUT_COLORS = {look.color for look in registry().values()}
WRITTEN = [f"{folder.name}.{name}" for folder in page_folders() for name in charts_in(folder)]
OF_THE_FORM = {*(f"drawing_{letter}" for letter in "abcd"), "kernel_c", "kernel_d"}


@pytest.fixture(scope="module")
def figures() -> dict[str, list]:
    """Preset or lecture step → its charts."""
    found = {
        preset: [
            chart_of(figure.page, each)
            for figure in gallery_figures([preset])
            for each in figure.charts
        ]
        for preset in PRESETS
    }
    for step in STEPS:
        drawn = step.draw(_results(step), step.control.start, True)
        found[step.name] = [chart_of("lecture", replace(drawn, name=step.name))]
    return found


def chart_of(page: str, chart: Chart) -> SimpleNamespace:
    """A figure and the key of its explanation."""
    return SimpleNamespace(spec=chart.figure.to_json(), id=f"{page}.{chart.name}")


@pytest.mark.long
def test_every_figure_has_words_and_no_words_are_unused(figures):
    shown = {chart.id for charts in figures.values() for chart in charts}
    assert shown <= set(WRITTEN)
    written = {key for key in WRITTEN if key.partition(".")[0] in (*EXPERIMENTS, "lecture")}
    # Figures of the form, of comparisons of four networks, and of a click have no result in the
    # gallery.
    others = {f"architectures.{each}" for each in OF_THE_FORM}
    assert written - shown == {*others, "attribution.training_point"}


def legend(figures) -> list[tuple[str, str, dict]]:
    """(preset, name without exponent, trace) of every trace with a name at its
    end or in a legend.
    """
    return [
        (preset, re.sub(r" ∝ .*", "", trace["name"]), trace)
        for preset, charts in figures.items()
        for chart in charts
        for trace in scatters(chart)
        if trace.get("name") and (trace.get("showlegend", True) or is_mean(trace))
    ]


def scatters(chart) -> list[dict]:
    """Curves and marks of a chart, without text traces."""
    found = [trace for trace in json.loads(chart.spec)["data"] if trace["type"] == "scatter"]
    return [
        trace for trace in found if "text" not in trace["mode"] and trace.get("fill") != "toself"
    ]


def is_mean(trace) -> bool:
    return trace["mode"] == "lines+markers" and isinstance(trace["marker"].get("size"), int)


def look_of(trace) -> tuple[str, str, str]:
    symbol = trace.get("marker", {}).get("symbol", "")
    return (
        trace["line"]["color"],
        trace["line"].get("dash", "solid"),
        symbol if isinstance(symbol, str) else "",
    )


@pytest.mark.slow
def test_a_name_has_one_style_in_every_figure_of_every_result(figures):
    """One color per name; also one dash and one symbol per network."""
    networks = {
        network_style(kind, output).title for kind, output in product(ARCHITECTURES, OUTPUTS)
    }
    known = {module.GUIDE_COLOR, *OUTPUT_COLORS, *(each[0] for each in RAMP)}
    colors: dict[str, set[str]] = {}
    marks: dict[str, set[tuple]] = {}
    for preset, name, trace in legend(figures):
        color = str((trace.get("line") or trace.get("marker") or {}).get("color"))
        # Names without a network belong to the network of their result, whose color they have.
        network = getattr(getattr(PRESETS.get(preset), "spec", None), "architecture", None)
        named = name if name in networks else f"{getattr(network, 'kind', '')}: {name}"
        # Points depend on the data; widths are pale or deep within their figure.
        if not name.startswith(("point ", "m = ")):
            colors.setdefault(named, set()).add(color)
        if name in networks and trace["mode"] == "lines+markers":
            marks.setdefault(name, set()).add(
                (trace["line"]["dash"], str(trace["marker"]["symbol"]))
            )
        assert "lines" not in trace["mode"] or color in known
    assert len(marks) >= 5
    assert {
        name: styles
        for found in (colors, marks)
        for name, styles in found.items()
        if len(styles) > 1
    } == {}


def test_no_two_meanings_share_color_dash_and_symbol():
    assert len(STYLES) == len(DISTINCT)
    assert RAMP.isdisjoint(STYLES)
    reserved = {module.BLUE: ("network",), module.VERMILION: ("model",)}
    for (color, _, _), meaning in STYLES.items():
        assert meaning.split()[0] in reserved.get(color, [meaning.split()[0]]), meaning


@pytest.mark.parametrize("at", [0, 3, 99], ids=["first", "between", "last"])
def test_new_names_take_free_looks_and_change_no_other(at, monkeypatch):
    """An activation, a method, two outputs and an architecture, at any place in their tables."""
    before = dict(registry())
    new: dict[str, dict[str, object]] = {
        "ACTIVATIONS": {"sinc": module.ACTIVATIONS["sin"]},
        "METHODS": {"nesterov": module.METHODS["momentum"]},
        "OUTPUTS": {"gudermann": module.OUTPUTS["tanh"], "sinc": module.OUTPUTS["tanh"]},
        "ARCHITECTURES": {"toy": module.ARCHITECTURES["resnet"]},
    }
    for table, entries in new.items():
        names = list(getattr(module, table).items())
        names[at:at] = entries.items()
        monkeypatch.setattr(module, table, dict(names))
    registry.cache_clear()
    try:
        after = registry()
    finally:
        registry.cache_clear()
    assert {meaning: after[meaning] for meaning in before} == before
    added = [look for meaning, look in after.items() if meaning not in before]
    num_kinds = len({meaning.rpartition(" ")[0] for meaning in before if "network" in meaning})
    toy = len(OUTPUTS) + 2
    assert len(added) == 2 + 2 * num_kinds + toy
    assert len(set(added)) == len(added)
    assert not set(added) & set(before.values())


@pytest.mark.slow
def test_no_look_has_two_names(figures):
    """Registered looks within a figure, where opacity may distinguish widths.

    Other looks across all figures.
    """
    for preset, charts in figures.items():
        for chart in charts:
            names: dict[tuple, set[str]] = {}
            for trace in scatters(chart):
                if (
                    "lines" in trace["mode"]
                    and trace.get("legendgroup")
                    and trace["line"].get("color")
                ):
                    look = (
                        *look_of(trace),
                        trace["line"].get("width"),
                        trace.get("opacity"),
                        trace.get("yaxis"),
                    )
                    names.setdefault(look, set()).add(trace["legendgroup"])
            assert [found for found in names.values() if len(found) > 1] == [], (preset, chart.id)
    everywhere: dict[tuple, set[str]] = {}
    for _, name, trace in legend(figures):
        style = look_of(trace) if "lines" in trace["mode"] else ("", "", "")
        registered = {*STYLES, *RAMP, *SHARED_LOOKS}
        if style[2] and style[0] != module.GUIDE_COLOR and style not in registered:
            # "B: low-rank adapters, rank 16": behind the comma is what differs within its preset.
            is_of_pair = name[1:3] == ": " and name[3:].startswith(SHARING_TITLES)
            shown = name.partition(",")[0] if is_of_pair else name
            everywhere.setdefault(style, set()).add(shown)
    assert {style: found for style, found in everywhere.items() if len(found) > 1} == {}


@pytest.mark.slow
def test_named_lines_of_a_chart_look_and_read_differently(figures):
    """Thicker lines are wider networks; opacity alone distinguishes no two names."""
    alike = []
    for preset, charts in figures.items():
        for chart in charts:
            names: dict[tuple, set[str]] = {}
            looks: dict[tuple, set[tuple]] = {}
            for trace in scatters(chart):
                name = trace.get("name")
                is_named = name and (trace.get("showlegend", True) or is_mean(trace))
                if not is_named or "lines" not in trace["mode"] or not trace["line"].get("color"):
                    continue
                axes = (trace.get("xaxis"), trace.get("yaxis"))
                names.setdefault((*axes, *look_of(trace), trace["line"].get("width")), set()).add(
                    name
                )
                looks.setdefault((*axes, name), set()).add(look_of(trace))
            alike += [(preset, chart.id, found) for found in names.values() if len(found) > 1]
            alike += [(preset, chart.id, key) for key, found in looks.items() if len(found) > 1]
    assert alike == []


def test_lines_and_marks_contrast_with_both_backgrounds():
    """WCAG 2.2, 1.4.11: 3:1 for graphical objects, with text of 4.5:1 (1.4.3)."""
    colors = {module.GUIDE_COLOR, *OUTPUT_COLORS, *VIOLETS, *(color for color, _, _ in RAMP)}
    for theme in THEMES:
        assert {color for color in colors if contrast(color, theme["backgroundColor"]) < 3} == set()
        assert contrast(theme["textColor"], theme["backgroundColor"]) >= 4.5


def test_pale_curves_are_stronger_in_the_dark():
    """Each pale opacity has a higher one in the dark look, in look.css."""
    look = (ROOT / "linearity_lab/dashboard/look.css").read_text(encoding="utf-8")
    opacity = r"opacity: ([\d.]+)"
    rule = rf'data-scheme="dark".* :is\(\.trace, \.point\)\[style\*="{opacity};"\] {{ {opacity}'
    raised = {float(pale): float(dark) for pale, dark in re.findall(rule, look)}
    assert raised.keys() == {module.SEED_OPACITY, module.GHOST_OPACITY, module.FAINT_OPACITY}
    assert all(1.4 * pale < dark < 1 for pale, dark in raised.items())
