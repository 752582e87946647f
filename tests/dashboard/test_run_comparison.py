"""Runs of one experiment share a figure; color, dash and symbol differ, and nothing is silently averaged."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from linearity_lab.charts.chart import comparison_of
from linearity_lab.charts.style import network_style
from linearity_lab.components.gallery import gallery_result
from linearity_lab.views.results.compared_runs import every_line, lines_of, measures_of, overlay
from linearity_lab.words.run_words import DEFAULT, differing, labels, name_of, variation
from ntk_core.runs import PRESETS
from ntk_core.settings.grammar import with_settings
from tests.dashboard.made_results import make_points, make_result, make_run


def pair(name: str):
    """A gallery result twice, as of two seeds."""
    result = gallery_result(name)
    other = result.model_copy(update={"spec": with_settings(result.spec, {"seed": result.spec.seed + 100})})
    return list(zip(labels([result.spec, other.spec]), (result, other), strict=True))


# The presets of an experiment share axes and measures: one of each, and the others are slow.
LAST = {preset.spec.experiment: name for name, preset in PRESETS.items()}.values()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in LAST else pytest.mark.slow) for name in PRESETS]
)
def test_runs_of_every_preset_are_drawn_on_every_axis(name):
    """Axes with the first measure, and the first axis with others: each measure is drawn alike."""
    runs = pair(name)
    how = comparison_of(runs[0][1].spec)
    measures, (line, *_) = measures_of(runs, how), lines_of(runs, how)
    charts = [overlay(runs, axis, measures[0], line) for axis in how.axes]
    charts += [overlay(runs, how.axes[0], measure, line) for measure in {*measures[:2], measures[-1]} - {measures[0]}]
    for chart in charts:
        assert chart.takeaway
        drawn = [trace for trace in chart.figure.data if trace.name.startswith("B: First seed") and len(trace.x)]
        assert bool(drawn) == bool(chart.rows)
    assert any(chart.rows for chart in charts[: len(how.axes)])


def test_numbers_in_the_name_of_a_line_have_a_letter_or_a_unit():
    shown = {}
    for name in ({preset.spec.experiment: name for name, preset in PRESETS.items()} | {"": "liu-lazy"}).values():
        runs = pair(name)
        how = comparison_of(runs[0][1].spec)
        shown[name] = [how.line_words(line) for line in lines_of(runs, how)]
    bare = re.compile(r"(^|, )[0-9.]+(,|$)")
    assert {name: words for name, lines in shown.items() for words in lines if bare.search(words)} == {}
    assert any("ρ = 0" in words.split(", ") for words in shown["liu-lazy"])


def test_means_are_over_converged_runs_and_the_others_are_marked():
    point = make_points((30,), seeds=2, exponents={"linear": 0.0}, spread=0.0)[0]
    bad = make_run("linear", 7, 9.0, "over-budget")
    result = make_result((point.model_copy(update={"runs": (*point.runs, bad)}),))
    runs = list(zip(labels([result.spec] * 2), (result, result), strict=True))
    chart = overlay(runs, comparison_of(result.spec).axes[0], "sup_kernel_change", ("linear",))
    row, _ = chart.rows
    assert math.isclose(row["mean sup_kernel_change"], 1.0)
    assert (row["runs in the mean"], row["all runs"]) == (2, 3)
    assert chart.takeaway.startswith("Kernel change ΔK against width m. A: 1 at m = 30")
    assert "Excluded from the means: A did not converge at m = 30 (seed 7): 1 of 3 runs." in chart.caption
    _, marked, first, *_ = chart.figure.data
    assert list(first.y) == [1.0]
    assert list(marked.y) == [1.0, 1.0, 9.0]
    assert list(marked.marker.symbol) == [first.marker.symbol, first.marker.symbol, f"{first.marker.symbol}-open"]


def test_runs_differ_without_color():
    result = make_result(make_points())
    four = [(f"{letter}", result) for letter in "ABCD"]
    axis = comparison_of(result.spec).axes[0]
    figure = overlay(four, axis, "sup_kernel_change", ("linear",)).figure
    lines = [trace for trace in figure.data if trace.mode == "lines+markers"]
    for style in (lambda t: t.line.color, lambda t: t.line.dash, lambda t: t.marker.symbol):
        assert len({style(trace) for trace in lines}) == 4


def test_networks_have_own_styles_and_equals_differ_in_dash():
    result = make_result(make_points())
    kinds = ("fully-connected", "resnet", "fully-connected")
    runs = [
        (letter, result.model_copy(update={"spec": with_kind(result.spec, kind)}))
        for letter, kind in zip("ABC", kinds, strict=True)
    ]
    axis = comparison_of(result.spec).axes[0]
    lines = [t for t in overlay(runs, axis, "sup_kernel_change", ("linear",)).figure.data if t.mode == "lines+markers"]
    styles = [network_style(kind) for kind in kinds]
    assert [line.line.color for line in lines] == [look.color for look in styles]
    assert len({(line.line.dash, line.marker.symbol) for line in lines}) == 3


def test_runs_without_a_common_output_are_all_drawn_by_name():
    linear, swish = (make_result(make_points(exponents={output: -0.5})) for output in ("linear", "swish"))
    runs = [("A: linear output", linear), ("B: swish output", swish)]
    axis = comparison_of(linear.spec).axes[0]
    chart = overlay(runs, axis, "sup_kernel_change", None)
    lines = [trace for trace in chart.figure.data if trace.mode == "lines+markers"]
    assert len(lines) == 2
    assert {"A: linear output", "B: swish output"} <= {row["run"] for row in chart.rows}
    colors = [network_style("fully-connected", output).color for output in ("linear", "swish")]
    assert [line.line.color for line in lines] == colors, "as on all other pages"
    both = make_result(make_points(exponents={"linear": -0.5, "swish": 0.0}))
    titles = [title for title, *_ in every_line([("A", both), ("B", swish)], comparison_of(both.spec), axis)]
    assert len(titles) == 3
    assert titles[0].startswith("A, linear")
    assert titles[-1] == "B"


def test_a_custom_graph_is_labeled():
    base: Any = PRESETS["zhu-fig2"].spec
    edges = [{"source": one, "target": other} for one, other in (("input", "a"), ("a", "output"))]
    own = name_of(with_settings(base, {"graph": {"groups": [{"name": "a"}], "edges": edges}}))
    assert "your own graph" in own
    assert "edges" not in own


def with_kind(spec, kind):
    return with_settings(spec, {"architecture.kind": kind})


def test_labels_name_what_differs_and_nothing_else():
    base: Any = PRESETS["liu-fig1-left"].spec
    specs = [base, with_settings(base, {"num_seeds": 9}), with_settings(base, {"widths": list(range(10, 30))})]
    assert labels(specs[:2]) == [f"A: Seeds {base.num_seeds}", "B: Seeds 9"]
    wide = labels(specs)[2]
    assert wide.startswith("C: Widths m 10, 11, 12,")
    assert len(wide) < 80
    assert labels([base]) == ["A"]
    deep = {"architecture.depth": 3, "outputs": ["linear"]}
    narrow = {"architecture.kind": "bottleneck", "outputs": ["swish"], "num_seeds": 3}
    networks = [with_settings(base, deep), with_settings(base, deep | narrow)]
    assert labels(networks) == ["A: fully connected, linear output", "B: bottleneck, swish output"]
    assert differing(specs[:2]) == {"Seeds": [str(base.num_seeds), "9"]}
    assert differing([base, base]) == {}


def test_run_is_named_by_its_changed_settings():
    titles = {preset.title for preset in PRESETS.values()}
    for name, preset in PRESETS.items():
        assert name_of(preset.spec) in titles, name
        default = type(preset.spec)()
        changed = with_settings(default, {"seed": 12345})
        assert name_of(changed) == "First seed 12345", name
        assert name_of(default) == DEFAULT or name_of(default) in titles


def test_values_are_written_for_people():
    spec = with_settings(PRESETS["liu-fig1-left"].spec, {"training.max_steps": 2000, "outputs": ["linear", "swish"]})
    assert name_of(spec) == "Outputs φ linear output, swish output, Maximum steps 2,000"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_named_as_itself(name):
    spec = PRESETS[name].spec
    equal = [other for other in PRESETS if PRESETS[other].spec == spec]
    assert variation(spec) == equal[0]
