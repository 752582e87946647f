"""Settings as text: URLs and fields give a spec or an error sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearity_lab.components.exports import command_line
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.networks.graphs import composition_examples
from ntk_core.runs import PRESETS, parse_spec
from ntk_core.settings.grammar import (
    InvalidSpec,
    differences,
    settings,
    spec_from_texts,
    text_of,
    value_of,
    values_of,
    with_settings,
)
from ntk_core.settings.validation import bounds

SETTINGS = {setting.name: setting for setting in settings(KernelChangeSpec)}
KERNEL_CHANGES = [preset for preset in PRESETS.values() if isinstance(preset.spec, KernelChangeSpec)]
BASES = st.sampled_from([preset.spec for preset in KERNEL_CHANGES] + [preset.paper_spec for preset in KERNEL_CHANGES])


def values(setting) -> st.SearchStrategy:
    """Values within a setting's bounds."""
    low, high = bounds(setting.info)
    whole = st.integers(int(low or 0), int(high or 100))
    real = st.floats(low or 0, high or 1, exclude_min=True, allow_subnormal=False)
    return {
        "choice": st.sampled_from(setting.options or (None,)),
        "choices": st.lists(st.sampled_from(setting.options or (None,)), min_size=1, max_size=4, unique=True),
        "switch": st.booleans(),
        "integer": whole,
        "number": real,
        "list": st.lists(whole, min_size=1, max_size=24),
        "upload": st.text("0123456789abcdef", min_size=64, max_size=64),
        "composition": st.sampled_from([str(each) for each in composition_examples().values()]),
        "text": st.one_of(st.just("auto"), real),
    }[setting.entry]


@st.composite
def specs(draw) -> KernelChangeSpec:
    """Random specs: settings drawn one by one, each kept if the spec remains valid."""
    spec = draw(BASES)
    for name in draw(st.lists(st.sampled_from(sorted(SETTINGS)), max_size=6)):
        try:
            spec = with_settings(spec, {name: draw(values(SETTINGS[name]))})
        except InvalidSpec:
            continue
    return spec


@given(specs(), BASES)
def test_a_spec_comes_back_from_its_differences_as_text(spec, base):
    assert spec_from_texts(differences(spec, base), base) == (spec, ())


TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["-1", "0", "2", "1e4", "1e9", "nan", "none", "auto", "true", "mnist", "bottleneck", "mixed"]),
)


@given(st.dictionaries(st.one_of(st.sampled_from(sorted(SETTINGS)), st.text(max_size=12)), TEXTS, max_size=6), BASES)
def test_any_text_gives_a_spec_and_reports_unused_parts(texts, base):
    spec, problems = spec_from_texts(texts, base)
    assert parse_spec(spec.model_dump(mode="json")) == spec
    assert {problem.field for problem in problems} >= set(texts) - set(SETTINGS)
    if not problems:
        used = values_of(spec)
        assert {name: used[name] for name in texts} == {name: settled(SETTINGS[name], texts[name]) for name in texts}


def settled(setting, text):
    """The value in a spec: lists without duplicates, widths ascending."""
    value = value_of(setting, text)
    if not isinstance(value, list):
        return value
    return tuple(sorted(set(value))) if setting.name == "widths" else tuple(dict.fromkeys(value))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("widths", "30, 1e4,100", (30, 100, 10_000)), ("widths", "1e2 3e2;1000", (100, 300, 1000)),
        ("widths", "[30, 100]", (30, 100)), ("num_seeds", "1e1", 10), ("architecture.use_bias", "False", False),
        ("training.learning_rate", "auto", "auto"), ("training.learning_rate", "1e-2", 0.01),
        ("training.max_steps", "1e3", 1000), ("outputs", "linear,tanh", ("linear", "tanh")),
    ],
)  # fmt: skip
def test_text_is_read_as_people_write_it(name, text, value):
    spec, problems = spec_from_texts({name: text}, KernelChangeSpec())
    assert problems == ()
    assert values_of(spec)[name] == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("widths", text) for text in ("0", "1e9", "abc", "30.5", "nan", "", ",".join(map(str, range(1, 40))))),
        ("training.max_steps", "1e999"), ("outputs", "linear,argmax"), ("architecture.depth", "-1"),
        ("architecture.depth", "9" * 5000), ("architecture.activation", "RELU "), ("dataset.name", "imagenet"),
        *(("training.learning_rate", text) for text in ("inf", "0", "fast")), ("dataset.noise", "nan"),
        ("dataset.resolution", "8"),  # an option of another data set
    ],
)  # fmt: skip
def test_what_cannot_be_used_keeps_its_default_and_is_named(name, text):
    spec, problems = spec_from_texts({name: text, "num_seeds": "7"}, KernelChangeSpec())
    assert spec == KernelChangeSpec(num_seeds=7)
    assert [problem.field for problem in problems] == [name]
    sentence = SETTINGS[name].sentence(problems[0])
    assert sentence.startswith(SETTINGS[name].title + ": ")
    assert len(sentence) < 300


def test_a_kind_that_the_rest_does_not_fit_falls_back_alone():
    texts = {"architecture.kind": "bottleneck", "num_seeds": "7"}  # one hidden layer cannot have a bottleneck
    spec, problems = spec_from_texts(texts, KernelChangeSpec())
    assert spec == KernelChangeSpec(num_seeds=7)
    assert [problem.field for problem in problems] == [
        "architecture.depth",
        "architecture.kind",
    ]  # the reason, and the dropped setting


@given(specs())
def test_command_line_computes_the_same_spec(spec):
    import shlex

    from ntk_core.cli._targets import assignment  # the reader of --set

    words = shlex.split(command_line(spec))
    assert words[:2] == ["linearity-lab", "run"]
    base = PRESETS[words[2]].spec
    given = dict(assignment(words[i + 1], base) for i, word in enumerate(words) if word == "--set")
    assert with_settings(base, given) == spec


def test_values_are_written_and_read_back_as_words():
    assert SETTINGS["outputs"].label("leaky_softplus") == "0.2 f + 0.8 softplus(f)"
    assert SETTINGS["architecture.activation"].label("relu") == "ReLU"
    assert text_of(None) == "none"
    assert value_of(SETTINGS["dataset.classes"], "none") is None
    assert value_of(SETTINGS["dataset.classes"], "") is None
