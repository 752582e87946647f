"""The row above the figure, the panel of all settings with its search, chips of changes, and limits of servers."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from linearity_lab.components.settings_row import OPENED
from ntk_core.numbers import width_label
from tests.dashboard.open_pages import ROOT, address, checked, form_sentences, open_page, press, words

PREFIX = "kernel_change."


pytestmark = pytest.mark.usefixtures("gallery")


def chips(app) -> dict[str, str]:
    """Key of a chip → its text."""
    return {button.key: button.label.replace("\\", "") for button in app.button if (button.key or "").endswith(".back")}


def in_panel(app) -> set[str]:
    """Keys of the settings shown in the panel of all settings."""
    (panel,) = (each for each in app.get("popover") if each.proto.popover.label == "All settings")
    kinds = (panel.selectbox, panel.multiselect, panel.number_input, panel.text_input, panel.toggle)
    return {widget.key for widgets in kinds for widget in widgets} - {PREFIX + "search"}


def test_each_change_has_a_chip_that_puts_it_back():
    app = open_page("kernel_change", architecture__use_bias="false", dataset__noise="0.5", widths="30,100")
    assert chips(app) == {
        PREFIX + "dataset.noise.back": "Noise s: 0.5",
        PREFIX + "widths.back": "Widths m: 30, 100",
        PREFIX + "architecture.use_bias.back": "Biases b: off",
    }
    press(app, PREFIX + "dataset.noise.back")
    assert set(chips(app)) == {PREFIX + "widths.back", PREFIX + "architecture.use_bias.back"}
    assert address(app) == {"architecture.use_bias": "false", "widths": "30,100"}
    app.text_input(key=PREFIX + "widths").set_value("0, 100")
    assert form_sentences(checked(app.run()))[0].startswith("Widths m: 0 cannot be used")
    press(app, PREFIX + "widths.back")
    assert form_sentences(app) == []
    assert not app.button(key=PREFIX + "run").disabled
    app.query_params = {
        "num_seeds": "3", "seed": "7", "architecture.depth": "2", "dataset.noise": "0.5", "dataset.seed": "3",
        "outputs": "linear", "training.max_steps": "50",
    }  # fmt: skip
    assert len(chips(checked(app.run()))) == 5
    assert chips(app)[PREFIX + "others.back"] == "3 more changes"
    assert len(chips(press(app, PREFIX + "others.back"))) == 4


def test_slider_field_and_chip_name_what_is_swept():
    for page, preset, title in (
        ("hessian", "adapter-rank", "Ranks r"),
        ("hessian", "adapter-width", "Widths m"),
        ("kernel_change", "liu-fig2", "Bottleneck widths"),
        ("early_time", "hu-fig5", "Dimensions d"),
    ):
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
    for text, found in (
        ("noise", {PREFIX + "dataset.noise", PREFIX + "dataset.name"}), ("nothing has these words", set())
    ):  # fmt: skip
        app.text_input(key=PREFIX + "search").set_value(text)
        assert in_panel(checked(app.run())) == found
    app.text_input(key=PREFIX + "search").set_value("learning  RATE")
    assert PREFIX + "training.learning_rate" in in_panel(checked(app.run()))
    assert address(app) == {}
    app.text_input(key=PREFIX + "search").set_value("")
    checked(app.run()).number_input(key=PREFIX + "dataset.noise").set_value(0.5)
    checked(app.run())
    app.session_state[f"{PREFIX}{OPENED}"] = False
    assert in_panel(checked(app.run())) == set()
    assert address(checked(app.run())) == {"dataset.noise": "0.5"}
    assert list(chips(app)) == [PREFIX + "dataset.noise.back"]


def test_own_headings_come_before_the_shared_ones():
    headings = ["Network", "Widths and seeds", "Data", "Training"]
    for page, own in (("kernel_change", []), ("learning_rate", ["Learning rates"])):
        (panel,) = (each for each in open_page(page).get("popover") if each.proto.popover.label == "All settings")
        shown = [each.value for each in panel.markdown if each.value.startswith("**")]
        assert shown == [f"**{each}**" for each in own + headings]


def slider_of(app):
    """The slider of widths; its key changes whenever its ends are set elsewhere."""
    return next(each for each in app.select_slider if each.key.startswith(PREFIX + "widths.range"))


def test_slider_removes_widths_and_adds_usual_ones():
    app = open_page("kernel_change", widths="50,300,2000")
    slider = slider_of(app)
    assert slider.value == (50, 2000)
    assert {width_label(width) for width in (30, 50, 100, 300, 1000, 2000, 3000, 10_000)} <= set(slider.options)
    slider.set_range(50, 10_000)
    checked(app.run())
    assert app.text_input(key=PREFIX + "widths").value == "50, 300, 2000, 3000, 10000"
    slider_of(app).set_range(300, 3000)
    checked(app.run())
    assert address(app)["widths"] == "300,2000,3000"
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


@pytest.fixture
def hosted(monkeypatch) -> None:
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "hosted")


def test_the_limit_is_beside_its_field_and_run_waits(hosted):
    app = open_page("kernel_change", widths="30,10001")
    assert form_sentences(app) == ["Widths m: 10001 cannot be used; use at most 10,000 on this server."]
    assert app.button("kernel_change.run").disabled
    assert "On this server: at most 10,000." in app.text_input("kernel_change.widths").help


def test_paper_switch_offers_the_largest_allowed_size(hosted):
    app = open_page("kernel_change")
    switch = app.button("kernel_change.paper_size")
    assert switch.label == "Largest size here"
    assert "1000000 cannot be used" in switch.help.replace("\\", "")
    app = checked(switch.click().run())
    assert app.text_input("kernel_change.widths").value == "30, 100, 1000, 10000"
    assert not app.button("kernel_change.run").disabled
    assert app.button("kernel_change.paper_size").label == "Sized for two cores"


def test_a_wrong_profile_is_named_on_every_page(monkeypatch):
    monkeypatch.setenv("LINEARITY_LAB_PROFILE", "public")
    app = checked(AppTest.from_file(ROOT / "app.py", default_timeout=30).run())
    assert "LINEARITY_LAB_PROFILE: public cannot be used" in words(app)
    assert "one of local, classroom, hosted" in words(app)
