"""Pages through app.py, without browser and worker."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.jobs import NoRoom
from ntk_core.errors import InvalidInput
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import PRESETS
from ntk_core.runs.events import PointFailed
from ntk_core.settings.grammar import values_of, with_settings
from tests.dashboard.made_results import make_points, make_result, make_run
from tests.dashboard.open_pages import address, bars, checked, form_sentences, open_page, press, words

PREFIX = "kernel_change."


def opened(**query: str) -> AppTest:
    return open_page("kernel_change", **query)


pytestmark = pytest.mark.usefixtures("gallery")


def test_first_visit_shows_the_precomputed_figure_and_origin(gallery, tmp_path):
    gallery("liu-fig1-left", make_result(make_points()))
    app = opened()
    assert len(app.get("plotly_chart")) == 2
    assert any(" widths, about " in caption.value for caption in app.caption), "the cost is shown before Run"
    assert "Precomputed figure" in words(app)
    assert "Learning rate η used: linear output and softmax output 0.5." in words(app)
    assert "jax 0.10.2" in words(app)
    assert any(block.value.startswith("Linearity Lab, run ") for block in app.code)
    assert "Run to update" in words(app)  # the synthetic result has other widths than the preset
    (tmp_path / "liu-fig1-left.json").write_text('{"spec": 1}', encoding="utf-8")
    assert "Press Run: the points appear here one by one." in words(opened()), "no result is shown"


WRONG = [
    ("text_input", "widths", "0, 100", "Widths m: 0 cannot be used; use "),
    ("text_input", "training.learning_rate", "fast", "Learning rate η: fast cannot be used; use "),
    ("number_input", "architecture.depth", 0, "Hidden layers L: 0 cannot be used; use an integer from 1 to 16."),
    ("number_input", "dataset.noise", -1.0, "Noise s: -1.0 cannot be used; use "),
    ("multiselect", "outputs", [], "Outputs φ: choose at least one."),
    ("multiselect", "outputs", ["linear", "softmax", "swish", "tanh", "erf"], "Outputs φ: choose at most 4."),
    ("selectbox", "swept", "bottleneck_width", "Swept: bottleneck width cannot be used; use width, unless "),
    ("selectbox", "architecture.kind", "bottleneck", "Hidden layers L: 1 cannot be used; use 2 to 16 with a "),
]


def test_disallowed_value_is_explained_and_run_waits():
    app = opened()
    for kind, name, value, part in WRONG:
        widget = getattr(app, kind)(key=PREFIX + name)
        before = widget.value
        widget.set_value(value)
        (sentence,) = form_sentences(checked(app.run()))
        assert sentence.startswith(part)
        assert app.button(key=PREFIX + "run").disabled
        checked(getattr(app, kind)(key=PREFIX + name).set_value(before).run())
    assert form_sentences(app) == []


def test_oversized_sweep_is_refused_with_the_largest_that_fits():
    app = opened(widths="10000000", dataset__num_samples="1000")
    (sentence,) = form_sentences(app)
    assert sentence.startswith("Widths m: 10000000 cannot be used; use at most ")
    assert "GiB" in sentence
    assert app.button(key=PREFIX + "run").disabled


def test_presets_paper_sizes_and_new_data_take_one_click():
    app = opened()
    app.selectbox(key=PREFIX + "preset").set_value("liu-fig1-right")
    checked(app.run())
    assert address(app) == {"preset": "liu-fig1-right"}
    assert app.text_input(key=PREFIX + "widths").value == "10000"
    press(app, PREFIX + "new_data")
    assert address(app) == {"preset": "liu-fig1-right", "draws": "network and data"}
    assert PREFIX + "new_data" not in {button.key for button in app.button}
    press(app, PREFIX + "paper_size")
    paper = PRESETS["liu-fig1-right"].paper_spec.model_dump()
    assert app.number_input(key=PREFIX + "num_seeds").value == paper["num_seeds"]


@pytest.mark.parametrize(
    ("kind", "dataset"),
    [("fully-connected", "cifar2"), ("bottleneck", "gaussian-mixture"), ("resnet", "cifar2"), ("densenet", "mnist")],
)
def test_settings_of_the_chosen_kinds_and_no_others_are_shown(kind, dataset):
    changes = {"architecture.kind": kind, "architecture.depth": 3, "dataset.name": dataset}
    spec = with_settings(KernelChangeSpec(), changes)
    app = opened(architecture__kind=kind, architecture__depth="3", dataset__name=dataset)
    widgets = [*app.selectbox, *app.multiselect, *app.number_input, *app.text_input, *app.toggle]
    others = [PREFIX + "preset", PREFIX + "search"]
    assert sorted(widget.key for widget in widgets) == sorted([PREFIX + name for name in values_of(spec)] + others)


def place_of_run(app) -> tuple[str, str]:
    """Container and label of the button Run or Stop."""

    def found(block):
        for child in block.children.values():
            if getattr(child, "key", None) in (PREFIX + "run", PREFIX + "stop"):
                yield block.proto.id, child.label
            yield from found(child) if hasattr(child, "children") else ()

    (place,) = found(app.main)
    return place


def test_stop_and_progress_take_the_place_of_run(jobs):
    app = opened(widths="30,100")
    place, label = place_of_run(app)
    assert label == "Run"
    jobs.refusal = NoRoom("run", "one more than 32 waiting jobs", "in a moment")
    assert "try again in a moment" in words(press(app, PREFIX + "run"))
    assert "job" not in address(app)
    jobs.refusal = None
    press(app, PREFIX + "run")
    assert jobs.submitted == [KernelChangeSpec(widths=(30, 100))]
    assert address(app)["job"] in jobs.snapshots
    assert "Computing the first point…" in words(app)
    assert place_of_run(app) == (place, "Stop")
    assert len(bars(app)) == 1
    press(app, PREFIX + "stop")
    assert place_of_run(app) == (place, "Run")


def test_job_of_others_runs_beside_other_settings_and_is_left(jobs):
    jobs.others = True
    app = opened(job=jobs.add(KernelChangeSpec(widths=(30, 100))))
    app.text_input(key=PREFIX + "widths").set_value("30,100,300")
    assert {PREFIX + "run", PREFIX + "stop"} <= {button.key for button in checked(app.run()).button}
    assert "Someone else is following this run too, so it continues." in words(press(app, PREFIX + "stop"))
    assert not app.button(key=PREFIX + "run").disabled


def test_job_of_the_url_is_followed_and_stopped(jobs):
    spec = KernelChangeSpec(widths=(30, 100, 1000), num_seeds=2)
    job_id = jobs.add(spec, points=make_points((30, 100)))
    app = opened(job=job_id)
    assert app.text_input(key=PREFIX + "widths").value == "30, 100, 1000"
    assert address(app) == {"widths": "30,100,1000", "num_seeds": "2", "job": job_id}
    assert len(app.get("plotly_chart")) == 2
    assert bars(app) == ["2 of 3 widths, 42 s left · width 30: training"]
    press(app, PREFIX + "stop")
    assert jobs.stopped == [job_id]
    assert "Stopped: 2 of 3 widths are done." in words(app)
    assert len(app.get("plotly_chart")) == 2


def test_waiting_failed_and_unconverged_runs_are_stated(jobs):
    spec = KernelChangeSpec(widths=(30, 100))
    app = opened(job=jobs.add(spec, status="queued", position=3))
    assert bars(app)[0].startswith("Waiting, place 3 in the queue")
    (point,) = make_points((30,))
    point = point.model_copy(update={"runs": (*point.runs, make_run("swish", 4, 0.9, "over-budget"))})
    failures = (PointFailed(key="width=100", reason="the computation ran out of memory"),)
    jobs.add(spec, status="failed", reason="the worker process crashed", failures=failures, points=(point,))
    shown = words(checked(app.run()))
    assert "the worker process crashed." in shown
    assert "width 100: the computation ran out of memory." in shown
    reported = "swish output did not reach the loss threshold within the step limit at m = 30 (seed 4): 1 of"
    assert f"Excluded from the means: {reported}" in shown


def test_training_figure_starts_at_the_largest_width(jobs):
    spec = KernelChangeSpec(widths=(30, 100, 1000))
    app = opened(job=jobs.add(spec, points=make_points((30, 100))))
    assert app.selectbox(key=PREFIX + "shown_width").value == 100
    jobs.add(spec, points=make_points(spec.widths), status="completed")
    assert checked(app.run()).selectbox(key=PREFIX + "shown_width").value == 1000
    app.selectbox(key=PREFIX + "shown_width").set_value(30)
    assert checked(app.run()).selectbox(key=PREFIX + "shown_width").value == 30
    assert "Settings changed" not in words(app)
    app.number_input(key=PREFIX + "num_seeds").set_value(9)
    assert "Settings changed (Seeds)." in words(checked(app.run()))


def test_invalid_server_settings_are_reported(monkeypatch):
    def refuse():
        raise InvalidInput("LINEARITY_LAB_STORE", "/nowhere", "a folder that can be written")

    monkeypatch.setattr("linearity_lab.jobs.shared_jobs", refuse)
    assert "The dashboard cannot compute: LINEARITY_LAB_STORE: /nowhere cannot be used" in words(opened())
