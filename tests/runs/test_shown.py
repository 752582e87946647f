"""What a notebook shows of specs, estimates, runs and networks: true, escaped, and without a user interface."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import ntk_core
from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import _shown, estimate
from ntk_core.runs.events import Ended, Estimated, PointProgress
from ntk_core.settings.grammar import with_settings
from tests.dashboard.made_results import make_points, make_result

ENTRIES = "ntk_core.runs._shown.entry_points"


def parsed(html: str) -> ElementTree.Element:
    """The HTML, which is closed and escaped as XML is."""
    return ElementTree.fromstring(f"<div>{html}</div>")


def cells(html: str) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in parsed(html).iter("tr")]


def test_a_spec_shows_what_is_not_at_its_default_and_what_it_costs():
    spec = with_settings(KernelChangeSpec(), {"widths": [10, 20], "architecture.activation": "tanh"})
    html = spec._repr_html_()
    _, *rows = cells(html)
    assert {row[1]: row[2] for row in rows} == {"widths": "10, 20", "architecture.activation": "tanh"}
    assert [row[3] for row in rows if row[1] == "architecture.activation"] == ["ReLU"]
    assert "2 points, " in html
    assert "All settings are at their defaults." in KernelChangeSpec()._repr_html_()
    assert parsed(spec.architecture._repr_html_()) is not None


def test_an_estimate_is_one_sentence():
    found = Estimated(num_points=1, seconds=700.0, peak_bytes=2**29)
    assert "1 point, about 12 min on this machine, about 512 MiB" in found._repr_html_()


def test_a_result_shows_its_outcome_its_numbers_and_how_to_get_its_figure(monkeypatch):
    monkeypatch.setattr(ENTRIES, lambda group: [])
    result = make_result(make_points())
    text = "".join(parsed(result._repr_html_()).itertext())
    assert "Completed: 3 of 3 widths in 12 s on cpu in float32" in text
    assert ntk_core.summary(result.spec, result.points) in text
    assert _shown.HOW_TO_DRAW in text
    assert "cancelled" not in text
    half = result.model_copy(update={"status": "cancelled", "points": ()})
    assert "Stopped: 0 of 3 widths" in half._repr_html_()
    assert "Failed" in Ended(status="failed", reason="<b> is no bracket")._repr_html_()
    assert "&lt;b&gt;" in Ended(status="failed", reason="<b> is no bracket")._repr_html_()


def test_a_figure_that_cannot_be_imported_costs_only_the_figure(monkeypatch):
    def load():
        raise ImportError("no plotly")

    monkeypatch.setattr(ENTRIES, lambda group: [SimpleNamespace(load=load)] if group == _shown.FIGURES else [])
    assert _shown.HOW_TO_DRAW in make_result(make_points())._repr_html_().replace("&#x27;", "'")


class Screen:
    """Where a notebook shows HTML, and what stood there."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def update(self, shown: str) -> None:
        self.texts.append(shown)

    def display(self, shown: str, display_id: bool) -> Screen:
        assert display_id
        self.update(shown)
        return self


def events(spec):
    yield estimate(spec)
    yield PointProgress(key="width=2", fraction=0.5, remaining_s=3.0, message="training <all>")
    yield Ended(status="completed")


def test_a_bar_follows_a_run_in_a_notebook_and_nowhere_else(monkeypatch):
    spec, screen = KernelChangeSpec(widths=(2,)), Screen()
    assert all(not isinstance(each, Screen) for each in _shown.with_bar(events(spec), spec))
    display = SimpleNamespace(HTML=str, display=screen.display)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setitem(sys.modules, "marimo", SimpleNamespace(running_in_notebook=lambda: False))
    assert [each.kind for each in _shown.with_bar(events(spec), spec)] == ["estimated", "point_progress", "ended"]
    first, half, last = screen.texts
    assert 'value="0.000"' in first
    assert "50%, about 3 s left: training &lt;all&gt;" in half
    assert "Completed" in last
    began = _shown.with_bar(events(spec), spec)
    next(began)
    began.close()
    assert "Not finished." in screen.texts[-1]


def test_marimo_has_the_bar_in_the_place_of_the_output(monkeypatch):
    spec, screen = KernelChangeSpec(widths=(2,)), Screen()
    output = SimpleNamespace(replace=screen.update)
    notebook = SimpleNamespace(running_in_notebook=lambda: True, output=output, Html=str)
    monkeypatch.setitem(sys.modules, "marimo", notebook)
    assert len(list(_shown.with_bar(events(spec), spec))) == len(screen.texts) == 3


def test_a_network_shows_its_layers_and_as_many_parameters_as_it_has():
    for net, shape in (
        (ntk_core.FullyConnected(width=6, depth=2), (5,)),
        (ntk_core.ConvNet(width=4, depth=1, num_outputs=2), (6, 6, 1)),
        (ntk_core.Attention(num_heads=2, head_dim=4), (5, 3)),
    ):
        head, *rows = cells(net.html(shape))
        assert head == ["Layer", "Kind", "From", "To", "Parameters"]
        assert sum(int(row[-1].replace(",", "")) for row in rows) == net.num_params(shape)
        assert [row[0] for row in rows] == list(net.layer_input_shapes(shape))
        assert "for example" in net._repr_html_()
    with pytest.raises(InvalidInput):
        ntk_core.ConvNet(width=4).html((5,))
