"""Runs of your own models: shown on Results, exported, compared, and started by nothing that a browser reaches."""

from __future__ import annotations

import math

import pytest

from linearity_lab.components.exports import command_line
from linearity_lab.jobs import Jobs, worker
from linearity_lab.jobs.limits import check_limits
from linearity_lab.views.results import stored_runs
from linearity_lab.words.run_words import name_of
from ntk_core.errors import InvalidInput
from ntk_core.experiments.linearity_report import LinearityReportPoint, LinearityReportSpec
from ntk_core.experiments.own_model import OwnLayer, OwnModelPoint, OwnModelResult, OwnModelRun, OwnModelSpec
from ntk_core.linearity import LayerReport
from ntk_core.runs import EXPERIMENTS, Provenance, canonical_json, estimate, parse_spec, run, spec_digest
from ntk_core.runs.store import Store
from ntk_core.settings.grammar import InvalidSpec
from tests.dashboard.open_pages import checked, open_page, words

REPORT = LinearityReportPoint(
    num_inputs=5, num_outputs=2, num_params=42, output_change=0.5, output_error=0.031, second_order_share=0.03,
    derivative_change=0.06, rounding=1e-6, kernel_change=0.44, kernel_interval=0.02, kernel_distance=0.01,
    layers=(
        LayerReport(name="head.w", num_params=12, distance=0.1, output_share=0.3, kernel_share=0.4),
        LayerReport(name="body.w", num_params=30, distance=math.inf, output_share=0.7, kernel_share=0.6),
    ),
)  # fmt: skip
LAYER = OwnLayer(name="['w']", kind="product", uses=1, positions=1, num_params=12, operations=())
GAIN = LAYER.model_copy(update={"name": "['g']", "kind": "jacobian", "uses": 0, "operations": ("exp",)})
ORIGIN = Provenance(
    versions={"linearity-lab": "1"}, platform="Python", device="cpu: cpu", dtype="float32", started_at="2026-01-01"
)


def made(*widths: int, **settings) -> OwnModelResult:
    points = []
    for width in widths:
        runs = tuple(
            OwnModelRun(
                seed=seed, learning_rate=1, outcome="converged", steps=(0, 9), change=(0, (1 + seed / 99) / width),
                loss=(1, 0.01), hessian_norm=0.5, velocity=0.25,
            )
            for seed in range(3)
        )  # fmt: skip
        points.append(OwnModelPoint(width=width, num_params=12, layers=(LAYER, GAIN), difference=1e-7, runs=runs))
    spec = OwnModelSpec(file="mlp.py", function="network", widths=widths, **settings)
    return OwnModelResult(spec=spec, points=tuple(points), provenance=ORIGIN, status="completed", runtime_s=1)


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
    assert len(app.get("image")) == 2
    (button,) = [each for each in app.button if each.key == f"results.open.{spec_digest(result.spec)}"]
    checked(button.click().run())
    assert "The kernel change decreases with width: a transition to linearity." in words(app)
    assert "checked on 2 inputs" in words(app)
    assert result.spec.sha256 in words(app)
    assert [chart.proto.id for chart in app.get("plotly_chart")] != []
    tables = "".join(each.proto.body for each in app.get("html"))
    assert "Jacobian (exp)" in tables
    assert [each.label for each in app.button if each.label in ("Run", "Resume")] == []
    codes = [each.value for each in app.code]
    assert any("own mlp.py:network --widths 8,16,32,64" in each for each in codes)
    app.checkbox(key=f"results.box.{spec_digest(other.spec)}").check()
    checked(app.run())
    assert "Kernel change ΔK against width" in words(app)
    assert len(app.get("plotly_chart")) == 1


def test_nothing_that_a_browser_reaches_starts_one(store, monkeypatch):
    spec = made(8, 16).spec
    report = LinearityReportSpec(file="gpt.py", function="decoder", before="pretrained.pt", after="tuned.pt")
    monkeypatch.setattr(Jobs, "warm_up", lambda self: None)
    for start in (run, estimate, check_limits, Jobs(store).submit):
        for own in (spec, report):
            with pytest.raises(InvalidInput, match="only this command runs your own files"):
                start(own)
    monkeypatch.setenv("LINEARITY_LAB_STORE", store.location)
    assert [event.status for event in worker._events(canonical_json(spec), 1e9)] == ["failed"]
    store.save_result(made(8, 16))
    for page in ("kernel_change", "lazy"):  # a link with its job, and with its experiment
        app = open_page(page, job=spec_digest(spec)[:16], experiment="own_model")
        assert "mlp.py" not in words(app)
        assert "job" not in app.query_params
    assert "own_model" not in EXPERIMENTS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("code", "import os"), ("file", "../../model.py"), ("file", "/etc/model.py"), ("file", "model.sh"),
        ("function", "__import__('os')"), ("sha256", "print(1)"),
    ],
)  # fmt: skip
def test_a_spec_holds_a_name_and_a_hash_and_no_code(field, value):
    with pytest.raises(InvalidSpec):
        parse_spec({"experiment": "own_model", field: value})


def test_own_runs_show_their_file_and_command():
    spec = made(8, 16, num_seeds=4).spec
    assert parse_spec(spec.model_dump_json()) == spec
    assert name_of(spec) == "mlp.py:network"
    assert command_line(spec) == "linearity-lab own mlp.py:network --widths 8,16 --num-seeds 4"
