"""Specs, estimates, runs and networks in notebooks: correct, escaped, without the dashboard."""

import functools
import html
import sys
from importlib import import_module
from types import SimpleNamespace
from xml.etree import ElementTree

import plotly.io as pio
import pytest

import linearity_lab
import ntk_core
from linearity_lab.charts.figure import main_chart, shown_result
from linearity_lab.dashboard.gallery import GALLERY, gallery_result
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import EXPERIMENTS, estimate
from linearity_lab.runs.display import FIGURES, HOW_TO_DRAW
from linearity_lab.runs.events import Ended, Estimated, PointProgress
from linearity_lab.runs.progress_bar import notebook_bar
from linearity_lab.settings.grammar import with_settings
from ntk_core.errors import InvalidInput
from ntk_core.markup import shown_parts
from tests.dashboard.made_results import make_points, make_result
from tests.examples.notebooks import stated_entry_points

ENTRIES = "linearity_lab.runs.display.entry_points"


def parsed(text: str) -> ElementTree.Element:
    """Parse HTML that is closed and escaped like XML."""
    return ElementTree.fromstring(f"<div>{text}</div>")


def cells(text: str) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in parsed(text).iter("tr")]


def test_spec_shows_changed_settings_and_cost():
    spec = with_settings(
        KernelChangeSpec(), {"widths": [10, 20], "architecture.activation": "tanh"}
    )
    shown = spec._repr_html_()
    _, *rows = cells(shown)
    assert {row[1]: row[2] for row in rows} == {
        "widths": "10, 20",
        "architecture.activation": "tanh",
    }
    assert [row[3] for row in rows if row[1] == "architecture.activation"] == ["ReLU"]
    assert "2 points, " in shown
    assert "All settings are at their defaults." in KernelChangeSpec()._repr_html_()
    assert parsed(spec.architecture._repr_html_()) is not None
    found = Estimated(num_points=1, seconds=700.0, peak_bytes=2**29)
    assert "1 point, about 12 min on this machine, about 512 MiB" in found._repr_html_()


def test_result_shows_outcome_and_numbers(monkeypatch):
    monkeypatch.setattr(ENTRIES, lambda group: [])
    result = make_result(make_points())
    text = "".join(parsed(result._repr_html_()).itertext())
    assert "Completed: 3 of 3 widths in 12 s on cpu in float32" in text
    assert linearity_lab.experiments.run_summary(result.spec, result.points) in text
    half = result.model_copy(update={"status": "cancelled", "points": ()})
    assert "Stopped: 0 of 3 widths" in half._repr_html_()
    failed = Ended(status="failed", reason="<b> is no bracket")._repr_html_()
    assert "Failed" in failed
    assert "&lt;b&gt;" in failed
    with pytest.raises(NotImplementedError):  # a plain repr outside of notebooks
        result._ipython_display_()


def test_result_without_dashboard_names_the_extra(monkeypatch):
    def load():
        raise ImportError("no plotly")

    result = make_result(make_points())
    for entries in ([], [SimpleNamespace(load=load)]):
        monkeypatch.setattr(ENTRIES, lambda group, found=entries: found if group == FIGURES else [])
        assert any(HOW_TO_DRAW in part for part in shown_parts(result, with_figure=True))


def test_every_experiment_has_a_figure_in_notebooks(monkeypatch):
    """For the smallest result of the gallery.

    The displayed bundle is Plotly's, without a script.
    """
    (target,) = stated_entry_points()["linearity_lab.figures"].values()
    module, _, name = target.partition(":")
    load = functools.partial(getattr, import_module(module), name)
    monkeypatch.setattr(
        ENTRIES, lambda group: [SimpleNamespace(load=load)] if group == FIGURES else []
    )
    monkeypatch.setattr(pio.renderers, "default", "plotly_mimetype")
    monkeypatch.setattr("ntk_core.markup.is_kernel", lambda: True)
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    for experiment in EXPERIMENTS.values():
        files = [GALLERY / f"{each.name}.json" for each in experiment.presets]
        result = gallery_result(min(files, key=lambda file: file.stat().st_size).stem)
        shown.clear()
        result._ipython_display_()
        outcome, figure, words, *rest = shown
        assert "Completed" in outcome["text/html"]
        assert list(figure) == ["application/vnd.plotly.v1+json"]
        assert len(figure["application/vnd.plotly.v1+json"]["data"]) > 0
        assert main_chart(shown_result(result)).takeaway[:10] in html.unescape(words["text/html"])
        assert [list(each) for each in rest] == [["text/html"]] * 2


def test_a_bar_follows_a_run_in_a_notebook_and_nowhere_else(monkeypatch):
    spec, texts = KernelChangeSpec(widths=(2,)), []

    events = (
        estimate(spec),
        PointProgress(key="width=2", fraction=0.5, remaining_s=3.0, message="training <all>"),
        Ended(status="completed"),
    )

    def display(shown, display_id):
        texts.append(shown)
        return SimpleNamespace(update=texts.append)

    def draw(*shown):
        with notebook_bar(spec) as hear:
            for event in shown:
                hear(event)

    draw(*events)
    assert texts == []
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    draw(*events)
    first, half, last = texts
    assert 'value="0.000"' in first
    assert "50%, about 3 s left: training &lt;all&gt;" in half
    assert "Completed" in last
    draw(events[0])
    assert "Not finished." in texts[-1]


def test_network_shows_layers_and_parameters():
    for net, shape in (
        (ntk_core.FullyConnected(width=6, depth=2, use_bias=False), (5,)),
        (ntk_core.ConvNet(width=4, depth=1, num_outputs=2, use_bias=False), (6, 6, 1)),
        (ntk_core.Attention(num_heads=2, head_dim=4), (5, 3)),
    ):
        head, *rows = cells(net.html(shape))
        assert head == ["Layer", "Kind", "From", "To", "Parameters"]
        assert sum(int(row[-1].replace(",", "")) for row in rows) == net.num_params(shape)
        assert [row[0] for row in rows] == list(net.layer_input_shapes(shape))
        assert "for example" in net._repr_html_()
    with pytest.raises(InvalidInput):
        ntk_core.ConvNet(width=4, use_bias=False).html((5,))
