"""Runs of one experiment in a figure: distinct color, dash and symbol, and no silent averages."""

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
    """A gallery result as two runs with different base seeds."""
    result = gallery_result(name)
    other = result.model_copy(update={"spec": with_settings(result.spec, {"seed": result.spec.seed + 100})})
    return list(zip(labels([result.spec, other.spec]), (result, other), strict=True))


# One preset per experiment, since its presets share axes and measures.
LAST = tuple({preset.spec.experiment: name for name, preset in PRESETS.items()}.values())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in LAST else pytest.mark.slow) for name in (*LAST, "liu-lazy")]
)
def test_runs_of_every_experiment_are_drawn_on_every_axis(name):
    """Every axis with the first measure, and every measure on the first axis."""
    runs = pair(name)
    how = comparison_of(runs[0][1].spec)
    measures, lines = measures_of(runs, how), lines_of(runs, how)
    charts = [overlay(runs, axis, measures[0], lines[0]) for axis in how.axes]
    others = {*measures[:2], measures[-1]} - {measures[0]}
    charts += [overlay(runs, how.axes[0], measure, lines[0]) for measure in others]
    for chart in charts:
        assert chart.takeaway
        drawn = [trace for trace in chart.figure.data if trace.name.startswith("B: First seed") and len(trace.x)]
        assert bool(drawn) == bool(chart.rows)
    assert any(chart.rows for chart in charts[: len(how.axes)])
    shown = [how.line_words(line) for line in lines]
    assert [words for words in shown if re.search(r"(^|, )[0-9.]+(,|$)", words)] == [], "a number without a letter"
    assert name != "liu-lazy" or any("ρ = 0" in words.split(", ") for words in shown)


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


def test_networks_have_own_styles_and_equals_differ_in_dash():
    result = make_result(make_points())
    kinds = ("fully-connected", "resnet", "fully-connected", "fully-connected")
    specs = [with_settings(result.spec, {"architecture.kind": kind}) for kind in kinds]
    axis = comparison_of(result.spec).axes[0]

    def lines(specs) -> list:
        runs = [(letter, result.model_copy(update={"spec": spec})) for letter, spec in zip("ABCD", specs, strict=False)]
        drawn = overlay(runs, axis, "sup_kernel_change", ("linear",)).figure.data
        return [trace for trace in drawn if trace.mode == "lines+markers"]

    assert [line.line.color for line in lines(specs[:3])] == [network_style(kind).color for kind in kinds[:3]]
    assert len({(line.line.dash, line.marker.symbol) for line in lines(specs[:3])}) == 3
    four = lines([result.spec] * 4)  # distinct without color, too
    for style in (lambda t: t.line.color, lambda t: t.line.dash, lambda t: t.marker.symbol):
        assert len({style(trace) for trace in four}) == 4


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
        assert variation(preset.spec) == next(other for other in PRESETS if PRESETS[other].spec == preset.spec)
        default = type(preset.spec)()
        assert name_of(with_settings(default, {"seed": 12345})) == "First seed 12345", name
        assert name_of(default) == DEFAULT or name_of(default) in titles
    spec = with_settings(PRESETS["liu-fig1-left"].spec, {"training.max_steps": 2000, "outputs": ["linear", "swish"]})
    assert name_of(spec) == "Outputs φ linear output, swish output, Maximum steps 2,000"
    graph = {
        "groups": [{"name": "a"}],
        "edges": [{"source": "input", "target": "a"}, {"source": "a", "target": "output"}],
    }
    own = name_of(with_settings(PRESETS["zhu-fig2"].spec, {"graph": graph}))
    assert "your own graph" in own
    assert "edges" not in own
