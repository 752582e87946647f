"""Specs: canonical text, digest, and one clear sentence for every invalid input."""

import copy
import json
from pathlib import Path

import pytest

import linearity_lab
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import PRESETS, canonical_json, parse_spec, presets, spec_digest
from linearity_lab.runs._presets import presets_beside
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from ntk_core.errors import InvalidInput, TooLarge

SPEC = KernelChangeSpec()


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_json_name_their_source_and_are_public(name):
    preset = PRESETS[name]
    for spec in (preset.spec, preset.paper_spec):
        assert parse_spec(canonical_json(spec)) == spec
        assert spec_digest(parse_spec(json.loads(canonical_json(spec)))) == spec_digest(spec)
        assert not spec.is_private
    assert presets()[name] == preset.spec
    assert "20" in preset.source
    assert "our choice" in preset.our_choice.lower()
    for text in (preset.title, preset.claim, preset.source, preset.our_choice):
        assert text
        assert "\n" not in text


def test_table_of_presets_with_errors_is_refused(tmp_path):
    table = (
        Path(linearity_lab.__file__).parent / "experiments/kernel_change/presets.toml"
    ).read_text(encoding="utf-8")
    for word, error in (("widths", InvalidSpec), ("claim", TypeError)):
        (tmp_path / "presets.toml").write_text(table.replace(word, f"x_{word}"), encoding="utf-8")
        with pytest.raises(error, match=r"x_widths: |claim"):
            presets_beside(str(tmp_path / "__init__.py"), KernelChangeSpec)


def test_digest_ignores_order_spelling_and_unused_settings():
    shuffled = {
        "widths": ["1e3", 100, 100, 30.0],
        "outputs": ["linear", "softmax", "swish", "linear"],
    }
    assert spec_digest(parse_spec(shuffled)) == spec_digest(
        with_settings(SPEC, {"widths": [30, 100, 1000]})
    )
    assert spec_digest(SPEC) != spec_digest(with_settings(SPEC, {"seed": 1}))
    mixture = with_settings(SPEC, {"dataset.noise": 0.7})
    images = with_settings(mixture, {"dataset.name": "mnist"})
    assert "noise" not in canonical_json(images)
    assert spec_digest(images) == spec_digest(with_settings(SPEC, {"dataset.name": "mnist"}))


BAD = [
    ('{"widths": [0]}', "widths", "1 to 10,000,000"),
    ('{"widths": "abc"}', "widths", "an integer"),
    ('{"dataset": {"name": "imagenet"}}', "dataset.name", "gaussian-mixture"),
    ('{"dataset": {"name": "mnist", "noise": 1}}', "dataset.noise", "only with"),
    ('{"dataset": {"noise": NaN}}', "dataset.noise", "a number from 0"),
    ('{"dataset": 3}', "dataset", "an object"),
    ('{"architecture": {"activation": "step"}}', "architecture.activation", "relu"),
    ('{"architecture": {"colour": 1}}', "architecture.colour", "kind"),
    ('{"outputs": ["argmax"]}', "outputs", "softmax"),
    ('{"training": {"learning_rate": -1}}', "training.learning_rate", "auto"),
    ('{"num_seeds": 1.5}', "num_seeds", "an integer from 1 to 100"),
    ('{"experiment": "alchemy"}', "experiment", "kernel_change"),
    ('{"schema_version": 99}', "schema_version", "3"),
    ('{"architecture": {"kind": "bottleneck"}}', "architecture.depth", "2 to 16"),
    ('{"swept": "bottleneck_width"}', "swept", "bottleneck"),
    (
        '{"infinite_width": true, "architecture": {"kind": "densenet"}}',
        "infinite_width",
        "fully-connected",
    ),
    ("{", "spec", "JSON object"),
    ("[" * 100_000, "spec", "JSON object"),
    (b"\xff\xfe\x00", "spec", "JSON object"),
    ('"' + "x" * 2_000_000 + '"', "spec", "bytes"),
]


@pytest.mark.parametrize(
    ("text", "field", "allowed"), BAD, ids=[str(index) for index in range(len(BAD))]
)
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
    assert {problem.field for problem in caught.value.problems} == {
        "widths",
        "architecture.depth",
        "nonsense",
    }


@pytest.mark.parametrize("name", ["nothing.here", "dataset.name.deeper", "colour", ""])
def test_an_unknown_setting_is_answered_with_the_known_ones(name):
    with pytest.raises(InvalidSpec, match="no such setting; the settings are"):
        with_settings(SPEC, {name: 1})


def test_errors_survive_the_way_to_another_process():
    large = TooLarge("width", 9, required=2e9, limit=1e9, unit="bytes", nearest=4)
    for error in (InvalidInput("width", 0, "1 to 9"), large):
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
