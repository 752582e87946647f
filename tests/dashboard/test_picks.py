"""Picks of data, network, output and activation.

Aliases in URLs, repairs, and the way to other pages.
"""

import random

import pytest

from linearity_lab.charts.figure import Shown
from linearity_lab.data import DATASETS
from linearity_lab.experiments import DynamicsSpec, ExploreSpec, HessianSpec, LearningRateSpec
from linearity_lab.experiments.explore.figures import FIGURES
from linearity_lab.experiments.explore.page import PAGE
from linearity_lab.experiments.explore.pairs import pair, preview_of
from linearity_lab.settings.aliases import usual_texts
from linearity_lab.settings.grammar import spec_from_texts, with_settings
from linearity_lab.words.pages import prose
from ntk_core.networks.choices import ACTIVATIONS
from ntk_core.networks.kinds import ARCHITECTURES
from tests.dashboard.open_pages import checked, form_sentences, open_page


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


@pytest.mark.parametrize(
    ("address", "kind", "wrong"),
    [
        ({"network": "cnn", "num_seeds": "x"}, "convnet", ["Seeds"]),
        ({"network": "mixed", "training.max_steps": "1e12"}, "mixed", ["Maximum steps"]),
        ({"network": "cnn", "num_seeds": "0", "widths": "m"}, "convnet", ["Widths m", "Seeds"]),
    ],
)
def test_unusable_value_in_an_address_leaves_its_picks(address, kind, wrong):
    app = open_page("explore", opened=False, **address)
    state = app.session_state
    assert state["explore.architecture.kind"] == kind
    assert state["explore.dataset.name"] == "mnist"
    sentences = form_sentences(app)
    assert len(sentences) == len(wrong)
    for title in wrong:
        assert any(each.startswith(f"In the URL, {title}: ") for each in sentences)
    assert len(app.warning) == 1  # one message, which leaves Run on the screen


def test_missing_hessian_norms_are_explained_in_their_tab():
    """First answers of networks with attention skip ‖H‖; other runs show its figure instead."""
    (explained,) = PAGE.others
    (figure,) = [each for each in FIGURES if each.name == "hessian"]
    assert explained.title == figure.title
    known = pair("transformer", "copy")
    assert known is not None
    first = preview_of(with_settings(known, {"architecture.activation": "tanh"}))
    assert explained.is_shown(Shown(first, ()))
    assert not explained.is_shown(Shown(known, ()))
    assert "Run in full" in prose("explore", "Without ‖H‖")


def test_pick_moves_the_data_and_undo_returns():
    app = open_page("explore")
    checked(app.selectbox(key="explore.architecture.kind").set_value("convnet").run())
    state = app.session_state
    assert (state["explore.dataset.name"], state["explore.dataset.classes"]) == ("mnist", "0, 1, 2")
    assert any("CNN needs images" in each.value for each in app.caption)
    checked(app.button(key="explore.undo").click().run())
    assert app.session_state["explore.architecture.kind"] == "fully-connected"
    assert app.session_state["explore.dataset.name"] == "gaussian-mixture"


def test_first_preview_begins_above_the_answer_of_its_pair(jobs):
    app = open_page("explore", opened=False, network="resnet", data="sine", activation="tanh")
    (words,) = [each.value for each in app.caption if "Settings changed" in each.value]
    assert words == "Settings changed (Activation σ)."
    assert jobs.submitted[-1].architecture.kind == "resnet"


def test_preview_names_only_what_the_visitor_changed(jobs):
    """It leaves out ‖H‖ with attention; that is no change of settings."""
    app = open_page("explore", opened=False, network="transformer", data="copy", activation="tanh")
    (words,) = [each.value for each in app.caption if "Settings changed" in each.value]
    assert words == "Settings changed (Activation σ)."
    assert jobs.submitted[-1].num_inputs == 0


def test_picks_travel_to_another_page():
    app = open_page("explore")
    checked(app.selectbox(key="explore.architecture.kind").set_value("convnet").run())
    checked(app.switch_page("pages/dynamics.py").run())
    assert app.session_state["dynamics.architecture.kind"] == "convnet"
    assert app.session_state["dynamics.dataset.name"] == "mnist"


def test_address_with_own_settings_takes_no_picks():
    spec, problems = spec_from_texts(usual_texts(ExploreSpec, {"data": "copy"}), ExploreSpec())
    assert (spec.dataset.name, problems) == ("copy", ())


# Texts of hand-written addresses: names, aliases, nonsense, and numbers out of their ranges.
PICKS = {
    "data": [*DATASETS, "MNIST", "cats", ""],
    "network": [*ARCHITECTURES, "cnn", "mlp", "Transformer", "lstm", ""],
    "output": ["linear", "softmax", "swish", "linear,softmax", "sigmoid-tanh", "none", ""],
    "activation": [*ACTIVATIONS, "ReLU", "GELU", "step", ""],
    "layers": ["0", "1", "3", "12", "-1", "two"],
    "widths": ["4", "30,100", "1e9", "7,7", "m", ""],
    "num_seeds": ["0", "1", "2", "1000", "x"],
}


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("seed", range(20))
def test_any_address_of_picks_gives_an_answer_or_a_repair(jobs, seed):
    draw = random.Random(seed)
    for _ in range(5):
        names = draw.sample(sorted(PICKS), draw.randint(1, len(PICKS)))
        address = {name: draw.choice(PICKS[name]) for name in names}
        app = open_page("explore", opened=False, **address)
        keys = {each.key for each in app.button}
        runs = [each for each in app.button if each.key == "explore.run"]
        is_dead = bool(runs) and runs[0].disabled and "explore.repair" not in keys
        assert not is_dead, address
        assert len(app.get("plotly_chart")) > 0, address
