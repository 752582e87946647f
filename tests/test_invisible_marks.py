"""Bidirectional and zero-width marks of outside text are removed wherever it is shown."""

import json

import plotly.graph_objects as go
import pytest

from linearity_lab.charts.axes import readable
from linearity_lab.charts.chart import Chart, Sent
from linearity_lab.dashboard.export_formats import page_html
from linearity_lab.experiments.linearity_report.figures import layers as layers_chart
from linearity_lab.experiments.linearity_report.point import LinearityReportResult
from linearity_lab.notebook import figure_and_words
from linearity_lab.runs.store import read_line
from linearity_lab.site._figures import chart_data
from linearity_lab.words.markdown import plain, raised, typeset
from ntk_core.errors import InvalidInput, UnknownSetting
from ntk_core.markup import without_marks, without_marks_inside
from tests.runs.store.made_runs import ROOT

MARKS = {
    "right-to-left override": "\u202e",
    "left-to-right embedding": "\u202a",
    "right-to-left isolate": "\u2067",
    "pop isolate": "\u2069",
    "left-to-right mark": "\u200e",
    "Arabic letter mark": "\u061c",
    "zero-width space": "\u200b",
    "zero-width joiner": "\u200d",
    "word joiner": "\u2060",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "tag letter": "\U000e0041",
    "Hangul filler": "\u3164",
    "grapheme joiner": "\u034f",
}


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_mark_is_removed_wherever_text_is_shown(mark):
    given = f"report{mark}vsc.exe"
    for show in (without_marks, plain, typeset, raised):
        assert mark not in show(given)
    assert mark not in str(InvalidInput("file", given, "a table"))
    assert mark not in str(InvalidInput(given, 1, "a name"))
    assert mark not in str(UnknownSetting.among(given, 1, ["widths"]))


def test_letters_of_every_script_stay():
    for text in ("naïve", "ρ ≤ ½", "日本語", "שלום", "مرحبا", "क्ष", "n\u0303"):
        assert without_marks(text) == text


def test_addresses_are_still_split_by_a_mark_of_the_lab():
    """A user's mark inside an address must not hide it from the rule against links."""
    assert plain("ht\u200btps://evil.example") == plain("https://evil.example")
    assert "\u2060" in plain("https://evil.example")


def named_chart(name: str) -> Chart:
    """A chart with this name in each place where figures show names."""
    figure = go.Figure()
    figure.add_scatter(x=[name, "b"], y=[1, 2], name=name, text=[name, "b"], customdata=[[name]])
    figure.add_heatmap(x=["a"], y=[name], z=[[1.0]], hovertemplate=f"{name}: %{{z}}")
    figure.add_annotation(text=name)
    figure.update_layout(title=name, legend={"title": name})
    figure.update_xaxes(title=name, ticktext=[name], tickvals=[0])
    return Chart(figure, f"{name} is largest.", [{name: name, "value": 1.0}], [name], "named", name)


@pytest.mark.parametrize("mark", MARKS.values(), ids=MARKS)
def test_figures_and_tables_show_no_mark(mark):
    chart = named_chart(f"in{mark}voice")
    shown = {
        "browser": json.dumps(chart.sent.to_dict(), ensure_ascii=False),
        # The second figure comes without the script of Plotly.
        "page": page_html("title", [chart, chart], []).rpartition("<figure")[2],
        "site": json.dumps(chart_data(chart), ensure_ascii=False),
        "table": repr(readable(chart.rows)),
    }
    for place, text in shown.items():
        assert mark not in text, place
        assert mark.encode("unicode_escape").decode() not in text, place
        assert "invoice" in text, place


def stored_report() -> LinearityReportResult:
    for line in (ROOT / "tests/runs/stores/0.2.0/runs.jsonl").read_text().splitlines():
        result = read_line(line)
        if isinstance(result, LinearityReportResult):
            return result
    raise LookupError("linearity_report")


def test_layers_of_a_report_show_no_mark():
    """Names of parameters come from a checkpoint."""
    result = stored_report()
    (point,) = result.points
    layers = []
    for layer in point.layers:
        layers.append(layer.model_copy(update={"name": f"in\u202e{layer.name}"}))
    renamed = point.model_copy(update={"layers": tuple(layers)})
    chart = layers_chart(result.model_copy(update={"points": (renamed,)}))
    texts = json.dumps(chart.sent.to_dict(), ensure_ascii=False) + repr(readable(chart.rows))
    assert layers[0].name.replace("\u202e", "") in texts
    assert "\u202e" not in texts


def test_notebook_figure_shows_no_mark(monkeypatch):
    chart = named_chart("in\u202evoice")
    monkeypatch.setattr("linearity_lab.notebook.main_chart", lambda shown: chart)
    figure, words = figure_and_words(stored_report())
    texts = json.dumps(figure.to_dict(), ensure_ascii=False, default=str) + words
    assert "invoice" in texts
    assert "\u202e" not in texts


def test_entries_with_equal_visible_names_stay_apart():
    row = {"a": 1, "a\u200b": 2, "\u200ba": 3, "b": [{"c\u2060": ("d\u00ad", 1.5, None)}]}
    expected = {"a": 1, "a (2)": 2, "a (3)": 3, "b": [{"c": ["d", 1.5, None]}]}
    assert without_marks_inside(row) == expected
    assert readable([row]) == [expected]


def test_figure_without_marks_is_sent_unchanged():
    figure = go.Figure().add_scatter(x=[1.0, 2.0], y=[0.1, 0.2], name="λ_min of K(w₀)")
    assert Sent(figure).to_dict() == figure.to_dict()
