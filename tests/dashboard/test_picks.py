"""Picks of data, network, output and activation.

Aliases in URLs, repairs, and the way to other pages.
"""

import pytest

from linearity_lab.experiments import DynamicsSpec, ExploreSpec, HessianSpec, LearningRateSpec
from linearity_lab.settings.aliases import usual_texts
from linearity_lab.settings.grammar import spec_from_texts
from tests.dashboard.open_pages import checked, open_page


@pytest.mark.parametrize(
    ("kind", "texts", "usual"),
    [
        (
            ExploreSpec,
            {"architecture": "cnn", "activation": "ReLU"},
            {"architecture.kind": "convnet", "architecture.activation": "relu"},
        ),
        (
            DynamicsSpec,
            {"data": "MNIST", "layers": "2"},
            {"dataset.name": "mnist", "architecture.depth": "2"},
        ),
        (LearningRateSpec, {"outputs": "linear,swish"}, {"output": "swish"}),
        (DynamicsSpec, {"output": "Softmax output"}, {"outputs": "softmax"}),
        (HessianSpec, {"network": "resnet"}, {"networks.0.kind": "resnet"}),
        (ExploreSpec, {"nonsense": "1"}, {"nonsense": "1"}),
    ],
)
def test_short_names_mean_settings_of_the_experiment(kind, texts, usual):
    assert usual_texts(kind, texts) == usual


def test_hand_written_address_opens_a_fitting_network():
    app = open_page("explore", architecture="cnn", activation="tanh")
    checked(app)
    state = app.session_state
    assert state["explore.architecture.kind"] == "convnet"
    assert state["explore.dataset.name"] == "mnist"
    assert state["explore.architecture.activation"] == "tanh"


def test_pick_moves_the_data_and_undo_returns():
    app = open_page("explore")
    checked(app.selectbox(key="explore.architecture.kind").set_value("convnet").run())
    state = app.session_state
    assert (state["explore.dataset.name"], state["explore.dataset.classes"]) == ("mnist", "0, 1, 2")
    assert any("CNN needs images" in each.value for each in app.caption)
    checked(app.button(key="explore.undo").click().run())
    assert app.session_state["explore.architecture.kind"] == "fully-connected"
    assert app.session_state["explore.dataset.name"] == "gaussian-mixture"


def test_picks_travel_to_another_page():
    app = open_page("explore")
    checked(app.selectbox(key="explore.architecture.kind").set_value("convnet").run())
    checked(app.switch_page("pages/dynamics.py").run())
    assert app.session_state["dynamics.architecture.kind"] == "convnet"
    assert app.session_state["dynamics.dataset.name"] == "mnist"


def test_address_with_own_settings_takes_no_picks():
    spec, problems = spec_from_texts(usual_texts(ExploreSpec, {"data": "copy"}), ExploreSpec())
    assert (spec.dataset.name, problems) == ("copy", ())
