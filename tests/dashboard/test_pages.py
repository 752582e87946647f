"""A page of an experiment through app.py.

Form, row and panel of settings, chips, run and its job.
"""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.dashboard.jobs import NoRoom
from linearity_lab.dashboard.settings_row import OPENED
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.page_modules import has_page_module, page_module
from linearity_lab.runs import EXPERIMENTS, PRESETS
from linearity_lab.runs.events import PointFailed
from linearity_lab.settings.grammar import values_of, with_settings
from ntk_core.errors import InvalidInput
from ntk_core.numbers import width_label
from tests.dashboard.made_results import make_points, make_result, make_run
from tests.dashboard.open_pages import (
    ROOT,
    address,
    bars,
    checked,
    form_sentences,
    open_page,
    press,
    words,
)

PREFIX = "kernel_change."


def opened(**query: str) -> AppTest:
    return open_page("kernel_change", **query)


pytestmark = pytest.mark.usefixtures("gallery")


def test_first_visit_shows_the_precomputed_figure_and_origin(gallery, tmp_path):
    gallery("liu-fig1-left", make_result(make_points()))
    app = opened()
    assert len(app.get("plotly_chart")) == 2
    assert any(" widths, about " in caption.value for caption in app.caption), (
        "the cost is shown before Run"
    )
    # The made result has other widths.
    for part in (
        "Precomputed figure",
        "jax 0.10.2",
        "Run to update",
    ):
        assert part in words(app)
    assert any(block.value.startswith("Linearity Lab, run ") for block in app.code)
    (tmp_path / "liu-fig1-left.json").write_text('{"spec": 1}', encoding="utf-8")
    assert "Press Run: the points appear here one by one." in words(opened()), "no result is shown"


WRONG = [
    ("text_input", "widths", "0, 100", "Widths m: 0 cannot be used; use "),
    (
        "number_input",
        "architecture.depth",
        0,
        "Hidden layers L: 0 cannot be used; use an integer from 1 to 16.",
    ),
    ("multiselect", "outputs", [], "Outputs φ: choose at least one."),
    (
        "selectbox",
        "architecture.kind",
        "bottleneck",
        "Hidden layers L: 1 cannot be used; use 2 to 16 with a ",
    ),
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
    app.query_params = {"widths": "10000000", "dataset.num_samples": "1000"}
    (sentence,) = form_sentences(checked(app.run()))
    assert sentence.startswith("Widths m: 10000000 cannot be used; use at most ")
    assert "GiB" in sentence


def test_presets_paper_sizes_and_new_data_take_one_click():
    app = opened()
    app.selectbox(key=PREFIX + "preset").set_value("liu-fig1-right")
    assert address(checked(app.run())) == {"preset": "liu-fig1-right"}
    assert app.text_input(key=PREFIX + "widths").value == "10000"
    press(app, PREFIX + "new_data")
    assert address(app) == {"preset": "liu-fig1-right", "draws": "network and data"}
    assert PREFIX + "new_data" not in {button.key for button in app.button}
    press(app, PREFIX + "paper_size")
    paper: Any = PRESETS["liu-fig1-right"].paper_spec
    assert app.number_input(key=PREFIX + "num_seeds").value == paper.num_seeds


@pytest.mark.parametrize(
    ("kind", "dataset"), [("bottleneck", "gaussian-mixture"), ("densenet", "mnist")]
)
def test_settings_of_the_chosen_kinds_and_no_others_are_shown(kind, dataset):
    changes = {"architecture.kind": kind, "architecture.depth": 3, "dataset.name": dataset}
    spec = with_settings(KernelChangeSpec(), changes)
    app = opened(architecture__kind=kind, architecture__depth="3", dataset__name=dataset)
    widgets = [*app.selectbox, *app.multiselect, *app.number_input, *app.text_input, *app.toggle]
    assert {widget.key for widget in widgets} == {
        PREFIX + name for name in (*values_of(spec), "preset", "search")
    }


def shown_of_run(app) -> str:
    """Label of the button Run or Stop."""
    (button,) = (each for each in app.button if each.key in (PREFIX + "run", PREFIX + "stop"))
    return button.label


def test_stop_and_progress_take_the_place_of_run(jobs):
    app = opened(widths="30,100")
    assert shown_of_run(app) == "Run"
    jobs.refusal = NoRoom("run", "one more than 32 waiting jobs", "in a moment")
    assert "try again in a moment" in words(press(app, PREFIX + "run"))
    assert "job" not in address(app)
    jobs.refusal = None
    press(app, PREFIX + "run")
    assert jobs.submitted == [KernelChangeSpec(widths=(30, 100))]
    assert address(app)["job"] in jobs.snapshots
    assert shown_of_run(app) == "Stop"
    assert len(bars(app)) == 1
    assert shown_of_run(press(app, PREFIX + "stop")) == "Run"


def test_shared_job_continues_without_its_session(jobs):
    jobs.others = True
    app = opened(job=jobs.add(KernelChangeSpec(widths=(30, 100))))
    assert "Another visitor started this run too, so it continues." in words(
        press(app, PREFIX + "stop")
    )


def test_job_of_the_url_is_followed_and_stopped(jobs):
    spec = KernelChangeSpec(widths=(30, 100, 1000), num_seeds=2)
    job_id = jobs.add(spec, points=make_points((30, 100)))
    app = opened(job=job_id)
    assert address(app) == {"widths": "30,100,1000", "num_seeds": "2", "job": job_id}
    assert bars(app) == ["2 of 3 widths, 42 s left · width 30: training"]
    press(app, PREFIX + "stop")
    assert jobs.stopped == [job_id]
    assert "Stopped: 2 of 3 widths are done. Resume continues from there, about" in words(app)
    assert len(app.get("plotly_chart")) == 2


def test_waiting_failed_and_unconverged_runs_are_stated(jobs):
    spec = KernelChangeSpec(widths=(30, 100))
    app = opened(job=jobs.add(spec, status="queued", position=3))
    assert bars(app)[0].startswith("Waiting, place 3 in the queue")
    assert "Waiting to begin…" in words(app)
    assert "Computing" not in words(app)
    (point,) = make_points((30,))
    point = point.model_copy(
        update={"runs": (*point.runs, make_run("swish", 4, 0.9, "over-budget"))}
    )
    failures = (PointFailed(key="width=100", reason="the computation ran out of memory"),)
    jobs.add(
        spec,
        status="failed",
        reason="the worker process crashed",
        failures=failures,
        points=(point,),
    )
    shown = words(checked(app.run()))
    assert "the worker process crashed." in shown
    assert "width 100: the computation ran out of memory." in shown
    reported = (
        "swish output did not reach the loss threshold within the step limit at m = 30 "
        "(seed 4): 1 of"
    )
    assert f"Excluded from the means: {reported}" in shown


def test_invalid_server_settings_are_reported(monkeypatch):
    def refuse():
        raise InvalidInput("LINEARITY_LAB_STORE", "/nowhere", "a folder that can be written")

    monkeypatch.setattr("linearity_lab.dashboard.jobs.shared_jobs", refuse)
    assert "The dashboard cannot compute: LINEARITY_LAB_STORE: /nowhere cannot be used" in words(
        opened()
    )


def chips(app) -> dict[str, str]:
    """Key of a chip → its text."""
    return {
        button.key: button.label.replace("\\", "")
        for button in app.button
        if (button.key or "").endswith(".back")
    }


def in_panel(app) -> set[str]:
    """Keys of the settings shown in the panel of all settings."""
    (panel,) = (each for each in app.get("popover") if each.proto.popover.label == "All settings")
    kinds = (panel.selectbox, panel.multiselect, panel.number_input, panel.text_input, panel.toggle)
    return {widget.key for widgets in kinds for widget in widgets} - {PREFIX + "search"}


def test_each_change_has_a_chip_that_puts_it_back():
    app = open_page(
        "kernel_change", architecture__use_bias="false", dataset__noise="0.5", widths="30,100"
    )
    assert chips(app) == {
        PREFIX + "dataset.noise.back": "Noise s: 0.5",
        PREFIX + "widths.back": "Widths m: 30, 100",
        PREFIX + "architecture.use_bias.back": "Biases b: off",
    }
    press(app, PREFIX + "dataset.noise.back")
    assert address(app) == {"architecture.use_bias": "false", "widths": "30,100"}
    app.text_input(key=PREFIX + "widths").set_value("0, 100")
    assert form_sentences(checked(app.run()))[0].startswith("Widths m: 0 cannot be used")
    press(app, PREFIX + "widths.back")
    assert form_sentences(app) == []
    assert not app.button(key=PREFIX + "run").disabled


@pytest.mark.parametrize(
    ("page", "preset", "title"),
    [
        ("architectures", "adapter-rank", "Ranks r"),  # opens adapter-rank-change
        ("early_time", "hu-fig5", "Dimensions d"),
    ],
)
def test_slider_field_and_chip_name_what_is_swept(page, preset, title):
    key = f"{page}.{'values' if page == 'early_time' else 'widths'}"
    app = open_page(page, preset=preset)
    (slider,) = (each for each in app.select_slider if each.key.startswith(f"{key}.range"))
    field = app.text_input(key=key)
    assert slider.label == field.label == title
    field.set_value("4, 8")
    assert chips(checked(app.run()))[f"{key}.back"] == f"{title}: 4, 8"


def test_panel_has_all_other_settings_and_is_searchable():
    app = open_page("kernel_change", opened=False)
    assert in_panel(app) == set()
    app.session_state[f"{PREFIX}{OPENED}"] = True
    shown = in_panel(checked(app.run()))
    assert len(shown) > 20
    assert PREFIX + "architecture.activation" not in shown  # it is in the row
    assert PREFIX + "widths" in shown  # the row has a slider for them
    for text, found in (("nothing has these words", set()), ("NOISE", {PREFIX + "dataset.noise"})):
        app.text_input(key=PREFIX + "search").set_value(text)
        assert in_panel(checked(app.run())) == found
    app.number_input(key=PREFIX + "dataset.noise").set_value(0.5)
    checked(app.run())
    app.session_state[f"{PREFIX}{OPENED}"] = False
    assert in_panel(checked(app.run())) == set()
    assert address(app) == {"dataset.noise": "0.5"}


def test_panel_begins_with_the_changed_settings():
    """A widget keeps its place while the panel is open."""
    noise, seed = PREFIX + "dataset.noise", PREFIX + "seed"
    app = open_page("kernel_change", dataset__noise="0.5")
    assert first_in_panel(app)[0] == noise
    app.number_input(key=seed).set_value(3)
    assert first_in_panel(checked(app.run()))[0] == noise
    checked(app.button(key=PREFIX + "close_settings").click().run())
    assert in_panel(app) == set()
    app.session_state[f"{PREFIX}{OPENED}"] = True
    assert first_in_panel(checked(app.run())) == [noise, seed]


def first_in_panel(app):
    """Keys of the first two numbers of the open panel."""
    shown = in_panel(app)
    return [each.key for each in app.number_input if each.key in shown][:2]


# Names of the picks by their place in the column.
PLACES = (
    {"dataset.name"},
    {"architecture.kind", "architectures.0.kind", "network.kind", "networks_chooser"},
    {"architecture.depth", "architectures.1.kind"},
    {"outputs", "output"},
    {"architecture.activation", "activation", "network.activations", "activation_chooser"},
    {"depths"},
    {"widths", "values"},
    {"num_seeds"},
)


@pytest.mark.parametrize("page", [name for name in EXPERIMENTS if has_page_module(name)])
def test_columns_have_the_same_order(page):
    controls = page_module(page, "page").PAGE.controls
    names = [each if isinstance(each, str) else each.__name__ for each in controls]
    found = [
        next((at for at, group in enumerate(PLACES) if name in group), len(PLACES))
        for name in names
    ]
    assert found == sorted(found)
    assert found[0] == 0, "data first"
    assert len(PLACES) - 1 in found, "seeds in sight"
    num_special = found.count(len(PLACES))
    assert num_special <= 3


@pytest.mark.first_cases(1)  # one page's form is every page's
@pytest.mark.parametrize("page", ["kernel_change", "dynamics", "lazy", "horizon"])
def test_picks_that_do_not_fit_offer_a_repair(page):
    app = open_page(page, opened=False)
    app.selectbox(key=f"{page}.architecture.kind").set_value("convnet")
    checked(app.run())
    assert app.button(key=f"{page}.run").disabled
    button = app.button(key=f"{page}.repair")
    assert button.label.startswith("Mend: ")
    checked(button.click().run())
    assert not app.button(key=f"{page}.run").disabled
    assert app.selectbox(key=f"{page}.architecture.kind").value == "convnet", (
        "also of a size that fits"
    )


def slider_of(app):
    """The slider of widths; its key changes whenever its ends are set elsewhere."""
    return next(each for each in app.select_slider if each.key.startswith(PREFIX + "widths.range"))


def test_slider_removes_widths_and_adds_usual_ones():
    app = open_page("kernel_change", widths="50,300,2000")
    slider = slider_of(app)
    assert slider.value == (50, 2000)
    assert {width_label(width) for width in (30, 50, 100, 300, 1000, 2000, 3000, 10_000)} <= set(
        slider.options
    )
    slider.set_range(50, 10_000)
    assert address(checked(app.run()))["widths"] == "50,300,2000,3000,10000"
    slider_of(app).set_range(300, 3000)
    assert address(checked(app.run()))["widths"] == "300,2000,3000"
    app.text_input(key=PREFIX + "widths").set_value("7,9")
    assert slider_of(checked(app.run())).value == (7, 9)


def test_undrawn_slider_reverts_nothing():
    app = open_page("kernel_change")
    before = slider_of(app)._widget_state
    app.text_input(key=PREFIX + "widths").set_value("2,3,30000")
    checked(app.run())
    late = app._tree.get_widget_states()
    late.widgets.append(before)
    app._run(late)
    assert address(checked(app))["widths"] == "2,3,30000"


def test_public_server_offers_the_largest_allowed_size(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted")
    app = open_page("kernel_change", widths="30,10001")
    assert form_sentences(app) == [
        "Widths m: 10001 cannot be used; use at most 10,000 on this server."
    ]
    assert app.button("kernel_change.run").disabled
    app.query_params = {}
    press(checked(app.run()), "kernel_change.paper_size")
    assert app.text_input("kernel_change.widths").value == "30, 100, 1000, 10000"
    assert not app.button("kernel_change.run").disabled


def test_a_wrong_profile_is_named_on_every_page(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "public")
    app = checked(AppTest.from_file(ROOT / "app.py", default_timeout=30).run())
    assert "LINEARITY_LAB_PROFILE: public cannot be used" in words(app)
    assert "one of local, classroom, hosted" in words(app)
