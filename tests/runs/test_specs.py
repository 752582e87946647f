"""Specs: canonical text, digest, and one clear sentence for every invalid input."""

import json
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ntk_core
from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec, training_groups
from ntk_core.runs import EXPERIMENTS, PRESETS, canonical_json, parse_spec, preset, presets, spec_digest
from ntk_core.settings.grammar import InvalidSpec, with_settings
from ntk_core.settings.grammar import settings as settings_of
from ntk_core.settings.validation import part_type

SPEC = KernelChangeSpec()


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_the_round_trip_through_json(name):
    for spec in (PRESETS[name].spec, PRESETS[name].paper_spec):
        assert parse_spec(canonical_json(spec)) == spec
        assert spec_digest(parse_spec(json.loads(canonical_json(spec)))) == spec_digest(spec)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_names_its_source_and_what_is_our_choice(name):
    assert presets()[name] == preset(name).spec
    assert "20" in preset(name).source
    assert "our choice" in preset(name).our_choice.lower()


@pytest.mark.parametrize("name", PRESETS)
def test_no_preset_is_private(name):
    assert not PRESETS[name].spec.is_private
    assert not PRESETS[name].paper_spec.is_private


def test_a_spec_on_uploaded_data_is_private():
    assert SPEC.model_copy(update={"dataset": SPEC.dataset.model_copy(update={"name": "upload"})}).is_private


def test_digest_ignores_order_and_spelling():
    shuffled = {"widths": ["1e3", 100, 100, 30.0], "outputs": ["linear", "softmax", "swish", "linear"]}
    assert spec_digest(parse_spec(shuffled)) == spec_digest(with_settings(SPEC, {"widths": [30, 100, 1000]}))
    assert spec_digest(SPEC) != spec_digest(with_settings(SPEC, {"seed": 1}))


def test_digest_ignores_unused_settings():
    mixture = with_settings(SPEC, {"dataset.noise": 0.7})
    images = with_settings(mixture, {"dataset.name": "mnist"})
    assert "noise" not in canonical_json(images)
    assert spec_digest(images) == spec_digest(with_settings(SPEC, {"dataset.name": "mnist"}))


BAD = [
    ('{"widths": [0]}', "widths", "1 to 10,000,000"),
    ('{"widths": [1000000000]}', "widths", "1 to 10,000,000"),
    ('{"widths": "abc"}', "widths", "an integer"),
    ('{"widths": []}', "widths", "1 to 24 values"),
    ('{"dataset": {"name": "imagenet"}}', "dataset.name", "gaussian-mixture"),
    ('{"dataset": {"name": "mnist", "noise": 1}}', "dataset.noise", "only with"),
    ('{"dataset": {"name": "digits", "num_samples": 9999}}', "dataset.num_samples", ""),
    ('{"dataset": {"noise": NaN}}', "dataset.noise", "a number from 0"),
    ('{"dataset": 3}', "dataset", "an object"),
    ('{"architecture": {"depth": 17}}', "architecture.depth", "1 to 16"),
    ('{"architecture": {"activation": "step"}}', "architecture.activation", "relu"),
    ('{"architecture": {"colour": 1}}', "architecture.colour", "kind"),
    ('{"outputs": ["argmax"]}', "outputs", "softmax"),
    ('{"training": {"learning_rate": -1}}', "training.learning_rate", "auto"),
    ('{"training": {"learning_rate": Infinity}}', "training.learning_rate", "auto"),
    ('{"training": {"learning_rate": "fast"}}', "training.learning_rate", "auto"),
    ('{"num_seeds": 1.5}', "num_seeds", "an integer from 1 to 100"),
    ('{"experiment": "alchemy"}', "experiment", "kernel_change"),
    ('{"experiment": []}', "experiment", "kernel_change"),
    ('{"schema_version": 99}', "schema_version", "3"),
    ('{"architecture": {"kind": "bottleneck"}}', "architecture.depth", "2 to 16"),
    ('{"architecture": {"kind": "convnet"}}', "architecture.kind", "images"),
    ('{"swept": "bottleneck_width"}', "swept", "bottleneck"),
    ('{"hidden_width": 10}', "hidden_width", "only with swept bottleneck_width"),
    ('{"infinite_width": true, "architecture": {"kind": "densenet"}}', "infinite_width", "fully-connected"),
    ("[1, 2]", "spec", "JSON object"),
    ("{", "spec", "JSON object"),
    ("", "spec", "JSON object"),
    ("[" * 100_000, "spec", "JSON object"),
    (b"\xff\xfe\x00", "spec", "JSON object"),
    ('"' + "x" * 2_000_000 + '"', "spec", "bytes"),
]


@pytest.mark.parametrize(("text", "field", "allowed"), BAD, ids=[str(index) for index in range(len(BAD))])
def test_bad_input_names_the_field_and_allowed_values(text, field, allowed):
    with pytest.raises(InvalidSpec) as caught:
        parse_spec(text)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert allowed in problem.allowed
    assert "\n" not in str(problem)
    assert len(str(problem)) < 600


def test_every_problem_of_a_spec_is_named_at_once():
    with pytest.raises(InvalidSpec) as caught:
        parse_spec({"widths": [0], "architecture": {"depth": "deep"}, "nonsense": 1})
    assert {problem.field for problem in caught.value.problems} == {"widths", "architecture.depth", "nonsense"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


NAMES = ["experiment", "schema_version", *(each.name for each in settings_of(KernelChangeSpec))]


@settings(max_examples=300)
@given(name=st.sampled_from(NAMES), value=JSON)
def test_any_value_for_any_setting_is_taken_or_answered(name, value):
    spec = taken_or_answered(name, value)
    assert spec is None or parse_spec(canonical_json(spec)) == spec


def taken_or_answered(name, value):
    """The spec, or None for an error that names a field; other exceptions fail the test."""
    try:
        return with_settings(SPEC, {name: value})
    except InvalidSpec as error:
        return None if error.problems and all(problem.field for problem in error.problems) else error


@pytest.mark.parametrize("name", ["nothing.here", "dataset.name.deeper", "colour", ""])
def test_an_unknown_setting_is_answered_with_the_known_ones(name):
    with pytest.raises(InvalidSpec, match="no such setting; the settings are"):
        with_settings(SPEC, {name: 1})


def test_linear_and_softmax_share_their_training():
    groups = training_groups(("softmax", "swish", "linear", "tanh"))
    assert [(g.trained_output, g.loss_output, g.observed) for g in groups] == [
        ("linear", "softmax", ("softmax", "linear")),
        ("swish", "swish", ("swish",)),
        ("tanh", "tanh", ("tanh",)),
    ]


def test_an_unknown_preset_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match="liu-fig1-left"):
        preset("liu-fig9")


def test_every_setting_has_a_title_and_a_help():
    for model in (each.spec for each in EXPERIMENTS.values()):
        parts = [model, *(found for f in model.model_fields.values() if (found := part_type(f)))]
        for part in parts:
            for name, info in part.model_fields.items():
                if name in ("experiment", "schema_version") or part_type(info):
                    continue
                assert info.title, name
                assert info.description.endswith("."), name


def test_errors_survive_the_way_to_another_process():
    import copy

    for error in (
        InvalidInput("width", 0, "1 to 9"),
        TooLarge("width", 9, required=2e9, limit=1e9, unit="bytes", nearest=4),
    ):
        again = copy.copy(error)  # by __reduce__, as in any transport
        assert str(again) == str(error)
        assert type(again) is type(error)


def test_settings_of_what_was_swept_before_are_dropped():
    bottleneck = PRESETS["liu-fig2"].spec
    spec = with_settings(bottleneck, {"swept": "width", "architecture.kind": "resnet"})
    assert "hidden_width" not in spec.model_dump()
    assert spec.model_dump()["architecture"]["kind"] == "resnet"
    with pytest.raises(InvalidSpec, match="hidden_width: 30"):
        with_settings(bottleneck, {"swept": "width", "hidden_width": 30})


def test_no_public_name_is_hidden_by_a_module_of_the_same_name():
    """Importing a submodule binds its name on the package, in place of an equal public name."""
    modules = {path.stem for path in Path(ntk_core.__file__).parent.iterdir() if path.suffix == ".py" or path.is_dir()}
    hidden = modules & set(dir(ntk_core))
    assert all(isinstance(getattr(ntk_core, name), ModuleType) for name in hidden), hidden
    assert callable(ntk_core.presets)
