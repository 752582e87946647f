"""Runs and reports of custom models.

Shown, exported, compared, and never started from a browser.
"""

import math
from typing import Any

import numpy as np
import pytest

from linearity_lab.dashboard.jobs import Jobs, worker
from linearity_lab.dashboard.jobs.limits import check_limits
from linearity_lab.dashboard.pages.results import stored_runs
from linearity_lab.experiments.linearity_report.figures import errors, examples
from linearity_lab.experiments.linearity_report.point import (
    LinearityReportPoint,
    LinearityReportResult,
    LinearityReportSpec,
)
from linearity_lab.experiments.own_model.point import (
    OwnLayer,
    OwnModelPoint,
    OwnModelResult,
    OwnModelRun,
    OwnModelSpec,
)
from linearity_lab.runs import (
    EXPERIMENTS,
    Provenance,
    canonical_json,
    estimate,
    load_data,
    parse_spec,
    run,
    spec_digest,
)
from linearity_lab.runs.store import Store
from linearity_lab.settings.grammar import InvalidSpec
from ntk_core import linearity_report
from ntk_core.errors import InvalidInput
from ntk_core.linearity import LayerReport
from tests.dashboard.open_pages import checked, open_page, press, words
from tests.running import example as load_example

REPORT = LinearityReportPoint(
    num_inputs=5,
    num_outputs=2,
    num_params=42,
    output_change=0.5,
    output_error=0.031,
    second_order_share=0.03,
    derivative_change=0.06,
    rounding=1e-6,
    kernel_change=0.44,
    kernel_interval=0.02,
    kernel_distance=0.01,
    layers=(
        LayerReport(name="head.w", num_params=12, distance=0.1, output_share=0.3, kernel_share=0.4),
        LayerReport(
            name="body.w", num_params=30, distance=math.inf, output_share=0.7, kernel_share=0.6
        ),
    ),
)
LAYER = OwnLayer(name="w", kind="product", uses=1, positions=1, num_params=12, operations=())
ORIGIN = Provenance(
    versions={"linearity-lab": "1"},
    platform="Python",
    device="cpu: cpu",
    dtype="float32",
    started_at="2026-01-01",
)


def made(*widths: int, **settings) -> OwnModelResult:
    points = []
    for width in widths:
        runs = tuple(
            OwnModelRun(
                seed=seed,
                learning_rate=1,
                outcome="converged",
                steps=(0, 9),
                change=(0, (1 + seed / 99) / width),
                loss=(1, 0.01),
                hessian_norm=0.5,
                velocity=0.25,
            )
            for seed in range(3)
        )
        points.append(
            OwnModelPoint(width=width, num_params=12, layers=(LAYER,), difference=1e-7, runs=runs)
        )
    spec = OwnModelSpec(file="mlp.py", function="network", widths=widths, **settings)
    return OwnModelResult(
        spec=spec, points=tuple(points), provenance=ORIGIN, status="completed", runtime_s=1
    )


pytestmark = pytest.mark.usefixtures("gallery")


@pytest.fixture
def store(own_store) -> Store:
    return stored_runs.shared_store()


def test_a_run_is_listed_opened_compared_and_exported(store):
    result, other = made(8, 16, 32, 64), made(8, 16, 32, 64, seed=3)
    for each in (result, other):
        store.save_result(each)
    app = open_page("results", experiment="own_model")
    assert "**mlp.py:network**" in "\n".join(box.label.replace("\\", "") for box in app.checkbox)
    assert "Own model · 4 widths, 8 to 64" in words(app)
    press(app, f"results.open.{spec_digest(result.spec)}")
    assert "The kernel change decreases with width: a transition to linearity." in words(app)
    assert app.get("plotly_chart")
    assert [each.label for each in app.button if each.label in ("Run", "Resume")] == []
    assert any("own mlp.py:network --widths 8,16,32,64" in each.value for each in app.code)
    app.checkbox(key=f"results.box.{spec_digest(other.spec)}").check()
    assert "Kernel change ΔK against width" in words(checked(app.run()))
    assert len(app.get("plotly_chart")) == 1


def tables(app) -> str:
    return "".join(each.proto.body for each in app.get("html"))


def test_nothing_that_a_browser_reaches_starts_one(store, monkeypatch):
    spec = made(8, 16).spec
    monkeypatch.setattr(Jobs, "warm_up", lambda self: None)
    for start in (run, estimate, check_limits, Jobs(store).submit):
        for own in (spec, report("tuned.pt").spec):
            with pytest.raises(InvalidInput, match="only this command runs your own files"):
                start(own)
    monkeypatch.setenv("LINEARITY_LAB_STORE", store.location)
    heard: list[Any] = []
    worker.follow(canonical_json(spec), 1e9, heard.append)
    assert [event.status for event in heard] == ["failed"]
    store.save_result(made(8, 16))
    app = open_page("lazy", job=spec_digest(spec)[:16], experiment="own_model")
    assert "mlp.py" not in words(app)
    assert "job" not in app.query_params
    assert "own_model" not in EXPERIMENTS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("code", "import os"),
        ("file", "../../model.py"),
        ("file", "/etc/model.py"),
        ("file", "model.sh"),
        ("function", "__import__('os')"),
        ("sha256", "print(1)"),
    ],
)
def test_a_spec_holds_a_name_and_a_hash_and_no_code(field, value):
    with pytest.raises(InvalidSpec):
        parse_spec({"experiment": "own_model", field: value})


def report(after: str, **changes) -> LinearityReportResult:
    spec = LinearityReportSpec(
        file="gpt.py", function="decoder", before="pretrained.pt", after=after
    )
    point = REPORT.model_copy(update=changes)
    return LinearityReportResult(
        spec=spec, points=(point,), provenance=ORIGIN, status="completed", runtime_s=1
    )


def test_first_visit_shows_marked_examples_and_the_command(store):
    app = open_page("linearity_report", job="../../x")
    assert "the number of a stored report" in words(app), "a link to no report"
    assert "These two reports are examples" in words(app)
    assert "linearity-lab report MODEL.py:NAME BEFORE AFTER" in [block.value for block in app.code]
    assert "Linear: the outputs follow" in tables(app)


@pytest.mark.slow
def test_examples_are_what_their_script_computes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = load_example("two_checkpoints")
    example.main()
    for result in examples():
        data = load_data(result.spec)
        apply, _ = example.network(result.spec.width, example.jax.random.key(0))
        ends = [dict(np.load(name)) for name in (result.spec.before, result.spec.after)]
        found = linearity_report(apply, *ends, data.x, data.y)
        (point,) = result.points
        for name in ("output_error", "second_order_share", "kernel_change", "loss"):
            assert getattr(found, name) == pytest.approx(getattr(point, name), rel=0.01)


def test_stored_reports_replace_the_examples(store):
    result, other = (
        report("tuned.pt"),
        report("adapted.pt", output_error=0.7, second_order_share=0.4),
    )
    for each in (result, other):
        store.save_result(each)
    app = open_page("linearity_report", job=spec_digest(result.spec)[:16])
    assert "example" not in words(app)
    assert all(cell in tables(app) for cell in ("44% ± 2%", "∞"))
    assert "Linear so far: the outputs follow the linear model at w₀ up to 3.1%" in tables(app)
    app.selectbox(key="linearity_report.run").set_value(spec_digest(other.spec))
    assert "Not linear: the linear model at w₀ misses 70% of the outputs" in tables(
        checked(app.run())
    )
    app = open_page("results", experiment="linearity_report")
    links = [each.proto for each in app.get("page_link") if each.proto.label == "Open"]
    assert {link.page for link in links} == {"linearity_report"}
    assert f"job={spec_digest(result.spec)[:16]}" in {link.query_string for link in links}


def test_mark_is_at_its_two_numbers():
    chart = errors({"a": report("a.pt"), "b": report("b.pt", output_error=0.7)}, "b")
    marks = [(*trace.x, *trace.y) for trace in chart.figure.data if trace.mode == "markers"]
    assert marks == [(0.03, 0.031), (0.03, 0.7)]
    assert chart.sentence.startswith("Not linear: ")
    chart = errors(
        {"a": report("a.pt", output_error=math.nan), "b": report("b.pt", second_order_share=0.0)},
        "a",
    )
    drawn = [trace.name for trace in chart.figure.data if trace.mode == "markers"]
    assert drawn == ["gpt.py:decoder, pretrained.pt → b.pt"], (
        "reports without numbers are named alone"
    )
    assert chart.sentence.startswith("No verdict: ")
