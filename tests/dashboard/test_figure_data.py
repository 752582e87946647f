"""Figures of experiments as data, without the dashboard."""

import subprocess
import sys

import pytest

from linearity_lab.charts.choices import Choice, Cursor, initial_options
from linearity_lab.charts.figure import (
    Figure,
    Shown,
    all_figures,
    figures_of,
    has_figures,
    main_chart,
    shown_result,
)
from linearity_lab.charts.lines import Dot, Line, width_axis
from linearity_lab.charts.style import nth_style
from linearity_lab.charts.sweep import sweep
from linearity_lab.dashboard.gallery import gallery_figures, gallery_result
from linearity_lab.page_modules import page_folder
from linearity_lab.runs import EXPERIMENTS, KINDS, PRESETS
from linearity_lab.words.pages import MARKS, charts_in, figure_words
from tests.dashboard.made_results import make_points, make_result
from tests.dashboard.open_pages import ROOT, open_page

SITE_AND_NOTEBOOK = """
import sys
from pathlib import Path

sys.modules["streamlit"] = None  # importing it fails
from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.notebook import figure_and_words
from linearity_lab.site import write_site

written = {}
for _ in write_site(Path("site"), written.__setitem__, ["liu-fig1-left"]):
    pass
assert Path("site/figures/liu-fig1-left.html") in written
assert Path("site/data/liu-fig1-left.along-training.js") in written
figure, words = figure_and_words(gallery_result("liu-fig1-left"))
assert figure.data and words
"""


@pytest.mark.long  # draws every figure again; import contracts forbid it, too
def test_site_and_notebook_figures_need_no_streamlit():
    done = subprocess.run(
        [sys.executable, "-c", SITE_AND_NOTEBOOK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("experiment", KINDS)
def test_every_experiment_states_its_figures(experiment):
    assert has_figures(experiment)
    figures = all_figures(experiment)
    names = [figure.name for figure in figures]
    assert len(set(names)) == len(names) > 0
    assert sum(figure.is_main for figure in figures) <= 1
    # A page shows rows of several figures above all of them, so own rows come last.
    rows = [row for figure in figures for row in figure.choices]
    for figure in figures:
        is_own = [rows.count(row) == 1 for row in figure.choices]
        assert is_own == sorted(is_own), figure.name


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_initial_options_draw_every_figure_with_words(experiment):
    preset = next(
        each.name for each in EXPERIMENTS[experiment].presets if gallery_result(each.name)
    )
    shown = shown_result(gallery_result(preset))
    found = gallery_figures(preset)
    assert next(iter(found)) == preset
    assert len(found) >= len([each for each in figures_of(shown) if not each.preset])
    for each in found.values():
        for chart in each.figure.initial_charts(each.shown):
            assert chart.takeaway
            assert figure_words(f"{each.page}.{chart.name}").see
    assert main_chart(shown).takeaway


def test_partial_results_are_drawn_without_a_result():
    result = make_result(make_points((30, 100)))
    partial = Shown(result.spec, result.points[:1])
    chart = main_chart(partial)
    assert {row["width m"] for row in chart.rows} == {30}
    assert partial.identity != shown_result(result).identity


def test_rows_follow_earlier_rows_and_words_have_no_option():
    def outer(shown):
        return ["Against", Choice("a", "A", [1, 2], begins=-1), Cursor("step")]

    def inner(shown, a, at):
        assert (a, at) == (2, None)
        return [Choice("b", "B", [10 * a, 20 * a])]

    figure = Figure("name", "Title", lambda shown, *chosen: [], choices=[outer, inner])
    shown = shown_result(make_result(make_points()))
    assert figure.initial_options(shown) == (2, None, 20)
    assert initial_options(outer(shown)) == (2, None)


def test_captions_in_print_name_no_click():
    first, *others = gallery_figures("catapult-map").values()
    (outcomes,) = first.figure.initial_charts(first.shown)
    assert outcomes.clicks
    assert outcomes.clicks not in outcomes.caption
    assert outcomes.app_caption == (*outcomes.caption, outcomes.clicks)
    for each in (first, *others):
        for chart in each.figure.initial_charts(each.shown):
            assert "click" not in " ".join(chart.caption)


def test_words_on_the_site_name_no_click():
    """The words of a figure say what a click shows in a field, which the site leaves out."""
    for experiment in EXPERIMENTS:
        for name, words in charts_in(page_folder(experiment)).items():
            reading = words.reading(MARKS)
            assert "click" not in reading.lower(), (experiment, name)
            assert words.reading(MARKS, in_app=True) == f"{reading} {words.clicks}".strip()
    words = figure_words("kernel_change.against_width")
    assert words.reading((), in_app=True) == f"{words.see} Click a point to see that training run."
    assert words.reading(["band"]) == f"{words.see} The band is one standard error of the mean."


def test_finding_is_a_field_of_every_first_figure():
    """It is one result in at most two lines; no reader searches the text of a chart for it."""
    for preset in ("liu-fig1-left", "zhu-fig2", "catapult-map", "hu-fig1"):
        first = gallery_figures(preset)[preset]
        (chart,) = first.figure.initial_charts(first.shown)
        assert chart.sentence in (chart.finding, chart.takeaway)
        assert " against " not in chart.sentence
        assert chart.sentence.count(". ") <= 1


def test_finding_of_different_lines_is_their_first_sentences():
    style = nth_style(0, "one"), nth_style(1, "two")
    lines = [Line(style[0], [Dot(30, 0.5, 0)]), Line(style[1], [Dot(100, 0.25, 0)])]
    chart = sweep(lines, width_axis(), "kernel change ΔK", "ΔK", name="any")
    assert chart.finding == "one: 0.5 at m = 30. two: 0.25 at m = 100."
    assert chart.title == "Kernel change ΔK against width m"
    empty = sweep([Line(style[0], [])], width_axis(), "kernel change ΔK", "ΔK", name="any")
    assert empty.finding == "Kernel change ΔK against width m: no point yet."


def test_names_of_gallery_figures_are_unique():
    names = [
        name for preset in PRESETS if gallery_result(preset) for name in gallery_figures(preset)
    ]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", [name for name, each in PRESETS.items() if each.panel])
def test_a_preset_names_a_figure_that_its_result_has(name):
    shown = [figure.name for figure in figures_of(shown_result(gallery_result(name)))]
    assert PRESETS[name].panel in shown[1:], "the first figure needs no name"


def test_a_preset_opens_on_the_figure_of_its_paper():
    app = open_page("kernel_change", opened=False, preset="liu-fig1-right")
    first, second = (chart.proto.id for chart in app.get("plotly_chart"))
    assert "against_time" in first
    assert "against_width" in second


def test_only_a_drawn_graph_is_yours():
    preset = gallery_result("zhu-preactivations")
    names = {
        graph: main_chart(shown_result(preset.model_copy(update={"spec": spec}))).finding
        for graph, spec in (
            ("of the preset", preset.spec),
            ("drawn", preset.spec.model_copy(update={"graph": None})),
        )
    }
    assert names["of the preset"].startswith("This graph: ")
    assert names["drawn"].startswith("Your graph: ")
