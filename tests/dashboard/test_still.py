"""Figures drawn without a browser: where Plotly would put them, for every experiment, and as the entry point says."""

from __future__ import annotations

import math
import re
from importlib import import_module
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest

from linearity_lab.charts.still import still
from linearity_lab.components.gallery import GALLERY, gallery_result
from linearity_lab.notebook import figure_html, first_chart
from linearity_lab.views.kernel_change.figures import change_against_width
from ntk_core.runs import EXPERIMENTS
from tests.dashboard.made_results import make_points, make_result
from tests.examples.notebooks import stated_entry_points


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def marks(svg: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"translate\((\S+) (\S+)\) scale", svg)]


def test_marks_lie_where_their_numbers_are():
    """On logarithmic axes pixels are linear in the logarithms, with the ticks on the same scale."""
    x, y = (1.0, 10.0, 1000.0), (5.0, 0.5, 0.05)
    figure = go.Figure().add_scatter(x=x, y=y, mode="markers", name="a", marker={"size": 8, "color": "#123456"})
    figure.update_xaxes(type="log", tickvals=[1, 1000], ticktext=["one", "thousand"]).update_yaxes(type="log")
    drawn = still(figure, "three marks")
    places = marks(drawn)
    for column, values in enumerate((x, y)):
        slope, start = np.polyfit(np.log10(values), [place[column] for place in places], 1)
        assert [place[column] for place in places] == pytest.approx(start + slope * np.log10(values), abs=0.11)
        assert (slope > 0) == (column == 0)
    ends = [re.findall(rf'<text x="([^"]+)"[^>]*><tspan>{word}<', drawn) for word in ("one", "thousand")]
    assert [float(end) for (end,) in ends] == pytest.approx([places[0][0], places[2][0]], abs=0.11)
    assert parsed(drawn).attrib["aria-label"] == "three marks"


def test_words_keep_their_raised_letters_colors_and_brackets():
    figure = go.Figure().add_scatter(x=[1, 2], y=[1, 2], name="a", showlegend=False)
    figure.add_scatter(
        x=[2],
        y=[2],
        mode="text",
        text=['<span style="color:#C94A00">●</span> m<sup>−1</sup><br>1 &lt; 2'],
        showlegend=False,
    )
    text = next(each for each in parsed(still(figure, "")).iter("text") if "●" in "".join(each.itertext()))
    assert "".join(text.itertext()) == "● m−11 < 2"
    assert [each.get("fill") for each in text if each.text == "●"] == ["#C94A00"]
    assert [float(each.get("dy")) < 0 for each in text if each.text == "−1"] == [True]


def test_the_figure_of_kernel_change_has_every_mean_and_seed():
    result = make_result(make_points((30, 100, 300, 1000)))
    chart = first_chart(result)
    assert chart.rows == change_against_width(result.points, result.spec.widths).rows
    seen = [trace for trace in chart.figure.data if trace.visible in (None, True) and "markers" in trace.mode]
    drawn = sum(len([value for value in trace.y if value is not None]) for trace in seen)
    assert drawn == 2 * (4 + 12)  # the means and all seeds of two outputs
    assert len(marks(still(chart.figure, ""))) >= drawn
    assert "95% intervals: over seeds" in figure_html(result)


def test_every_experiment_has_a_figure_in_notebooks():
    """Over the smallest result of the gallery; it is XML, names its axes, and holds no number that is none."""
    for name, experiment in EXPERIMENTS.items():
        files = [GALLERY / f"{each.name}.json" for each in experiment.presets]
        result = gallery_result(min(files, key=lambda file: file.stat().st_size).stem)
        html = figure_html(result)
        assert html, name
        svg = parsed(f"<div>{html}</div>").find("svg")
        assert len(list(svg.iter("path"))) > 5, name
        assert not re.search(r"\bnan\b|\binf\b|None", ElementTree.tostring(svg, "unicode").partition(">")[2]), name
        assert len(html) < 150_000, name


def test_what_is_no_scatter_is_not_drawn_by_halves():
    assert still(go.Figure().add_heatmap(z=[[1, 2], [3, 4]]), "") is None
    assert math.isfinite(len(still(go.Figure().add_scatter(x=[1], y=[1]), "")))


def test_the_entry_point_is_the_function_of_the_dashboard():
    (target,) = stated_entry_points()["linearity_lab.figures"].values()
    module, _, name = target.partition(":")
    assert getattr(import_module(module), name) is figure_html
