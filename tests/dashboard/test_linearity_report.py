"""Reports of your own models on their page: examples, stored reports, links; nothing starts one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from linearity_lab.views.linearity_report import page
from linearity_lab.views.linearity_report.figures import errors, examples, layers
from linearity_lab.views.results import stored_runs
from ntk_core import linearity_report
from ntk_core.experiments.linearity_report import LinearityReportResult, LinearityReportSpec
from ntk_core.runs import load_data, spec_digest
from tests.dashboard.open_pages import checked, open_page, words
from tests.dashboard.test_own_runs import ORIGIN, REPORT
from tests.examples.test_own_models import _example


def report(after: str, **changes) -> LinearityReportResult:
    spec = LinearityReportSpec(file="gpt.py", function="decoder", before="pretrained.pt", after=after)
    point = REPORT.model_copy(update=changes)
    return LinearityReportResult(spec=spec, points=(point,), provenance=ORIGIN, status="completed", runtime_s=1)


@pytest.fixture
def store(own_store, jobs, gallery):
    return stored_runs.shared_store()


def test_first_visit_shows_marked_examples_and_the_command(store):
    app = open_page(page.PAGE, job="../../x")
    assert "the number of a stored report" in words(app), "a link to no report"
    assert "These two reports are examples" in words(app)
    assert "An example. No report is stored yet." in words(app)
    assert "linearity-lab report MODEL.py:NAME BEFORE AFTER" in [block.value for block in app.code]
    chosen = app.selectbox(key="linearity_report.run")
    assert chosen.options == [
        f"two_checkpoints.py:network, before.npz → {after}.npz" for after in ("stable", "catapult")
    ]
    assert "Linear: the outputs follow" in "".join(each.proto.body for each in app.get("html"))
    assert app.query_params == {}


@pytest.mark.parametrize("result", examples(), ids=lambda result: result.spec.after)
def test_examples_are_what_their_script_computes(result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = _example("two_checkpoints")
    example.main()
    data = load_data(result.spec)
    apply, _ = example.network(result.spec.width, example.jax.random.key(0))
    ends = [dict(np.load(name)) for name in (result.spec.before, result.spec.after)]
    found = linearity_report(apply, *ends, data.x, data.y)
    (point,) = result.points
    for name in ("output_error", "second_order_share", "kernel_change", "loss"):
        assert getattr(found, name) == pytest.approx(getattr(point, name), rel=0.01)
    assert [each.name for each in found.layers] == [each.name for each in point.layers]


def test_stored_reports_replace_the_examples(store):
    result, other = report("tuned.pt"), report("adapted.pt", output_error=0.7, second_order_share=0.4)
    for each in (result, other):
        store.save_result(each)
    app = open_page(page.PAGE, job=spec_digest(result.spec)[:16])
    assert "example" not in words(app)
    tables = "".join(each.proto.body for each in app.get("html"))
    assert all(cell in tables for cell in ("44% ± 2%", "Second-order share", "head.w", "∞"))
    assert tables.index("body.w") < tables.index("head.w")
    assert "Linear so far: the outputs follow the linear model at w₀ up to 3.1%" in tables
    app.selectbox(key="linearity_report.run").set_value(spec_digest(other.spec))
    tables = "".join(each.proto.body for each in checked(app.run()).get("html"))
    assert "Not linear: the linear model at w₀ misses 70% of the outputs" in tables
    assert [each.label for each in app.button if each.label in ("Run", "Resume")] == []


def test_results_open_a_report_on_its_page(store):
    result = report("tuned.pt")
    store.save_result(result)
    app = open_page("results", experiment="linearity_report")
    assert "Your model · 1 report" in words(app)
    (link,) = [each for each in app.get("page_link") if each.proto.label == "Open"]
    assert link.proto.page == "linearity_report"
    assert link.proto.query_string == f"job={spec_digest(result.spec)[:16]}"


def test_mark_is_at_its_two_numbers():
    chart = errors({"a": report("a.pt"), "b": report("b.pt", output_error=0.7)}, "b")
    marks = {trace.name: (*trace.x, *trace.y) for trace in chart.figure.data if trace.mode == "markers"}
    assert list(marks.values()) == [(0.03, 0.031), (0.03, 0.7)]
    assert chart.sentence.startswith("Not linear: ")
    assert [row["output error"] for row in chart.rows] == [0.031, 0.7]
    assert layers(report("a.pt")).sentence == "body.w carries the largest share of the outputs' change, 70%."


def test_reports_without_numbers_are_named_and_not_drawn():
    chart = errors({"a": report("a.pt", output_error=math.nan), "b": report("b.pt", second_order_share=0.0)}, "a")
    assert [trace.name for trace in chart.figure.data if trace.mode == "markers"] == [
        "gpt.py:decoder, pretrained.pt → b.pt"
    ]
    assert len(chart.caption) == 2
    assert chart.sentence.startswith("No verdict: ")
