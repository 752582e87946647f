"""Settings as text: URLs and fields give a spec or an error sentence."""

import shlex
from typing import Any

import hypothesis
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearity_lab.cli._targets import assignment  # the reader of --set
from linearity_lab.dashboard.export_formats import command_line
from linearity_lab.experiments.architectures.point import ArchitecturesSpec
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.runs import KINDS, PRESETS, parse_spec
from linearity_lab.settings.grammar import (
    InvalidSpec,
    changed_values,
    differences,
    settings,
    spec_from_texts,
    validated,
    value_of,
    values_of,
    with_settings,
)
from linearity_lab.settings.validation import bounds
from linearity_lab.settings.walk import with_value
from ntk_core.markup import without_marks
from ntk_core.networks.graphs import composition_examples

SETTINGS = {setting.name: setting for setting in settings(KernelChangeSpec)}
# With a list of networks, addressed by index (``architectures.1.depth``); the list's
# value is its length.
GROUPS = {setting.name: setting for setting in settings(ArchitecturesSpec)}
PAIR = ArchitecturesSpec()


def bases(kind: type) -> st.SearchStrategy:
    """Specs of the presets of an experiment, and their paper sizes."""
    presets = [preset for preset in PRESETS.values() if type(preset.spec) is kind]
    return st.sampled_from(
        [spec for preset in presets for spec in (preset.spec, preset.paper_spec)]
    )


BASES = bases(KernelChangeSpec)
SOME = hypothesis.settings(max_examples=40)


def values(setting) -> st.SearchStrategy:
    """Values within a setting's bounds."""
    low, high = bounds(setting.info)
    whole = st.integers(int(low or 0), int(high or 100))
    real = st.floats(low or 0, high or 1, exclude_min=True, allow_subnormal=False)
    return {
        "choice": st.sampled_from(setting.options or (None,)),
        "choices": st.lists(
            st.sampled_from(setting.options or (None,)), min_size=1, max_size=4, unique=True
        ),
        "switch": st.booleans(),
        "integer": whole,
        "parts": st.integers(1, 4),
        "number": real,
        "list": st.lists(whole, min_size=1, max_size=24),
        "upload": st.text("0123456789abcdef", min_size=64, max_size=64),
        "composition": st.sampled_from([str(each) for each in composition_examples().values()]),
        "text": st.one_of(st.just("auto"), real),
    }[setting.entry]


@st.composite
def specs(draw, kind: type = KernelChangeSpec) -> Any:
    """Random specs: settings drawn one by one, each kept if the spec remains valid."""
    spec, known = draw(bases(kind)), SETTINGS if kind is KernelChangeSpec else GROUPS
    for name in draw(st.lists(st.sampled_from(sorted(known)), max_size=6)):
        try:
            spec = with_settings(spec, {name: draw(values(known[name]))})
        except InvalidSpec:
            continue
    return spec


@pytest.mark.parametrize("kind", [KernelChangeSpec, ArchitecturesSpec])
@SOME
@given(data=st.data())
def test_a_spec_comes_back_from_its_differences(kind, data):
    spec, base = data.draw(specs(kind)), data.draw(bases(kind))
    assert spec_from_texts(differences(spec, base), base) == (spec, ())
    assert with_settings(base, changed_values(spec, base)) == spec


TEXTS = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "-1",
            "0",
            "2",
            "1e4",
            "1e9",
            "nan",
            "none",
            "auto",
            "true",
            "mnist",
            "bottleneck",
            "mixed",
        ]
    ),
)


@SOME
@given(
    st.dictionaries(
        st.one_of(st.sampled_from(sorted(SETTINGS)), st.text(max_size=12)), TEXTS, max_size=6
    ),
    BASES,
)
def test_any_text_gives_a_spec_and_reports_unused_parts(texts, base):
    spec, problems = spec_from_texts(texts, base)
    assert parse_spec(spec.model_dump(mode="json")) == spec
    unknown = {without_marks(name) for name in set(texts) - set(SETTINGS)}
    assert {problem.field for problem in problems} >= unknown
    if not problems:
        used = values_of(spec)
        assert {name: used[name] for name in texts} == {
            name: settled(SETTINGS[name], texts[name]) for name in texts
        }


def settled(setting, text):
    """The value in a spec: lists without duplicates, widths ascending,
    0 and 1 of switches as truth values.
    """
    value = value_of(setting, text)
    if setting.info.annotation is bool:
        return pydantic.TypeAdapter(bool).validate_python(value)
    if not isinstance(value, list):
        return value
    return tuple(sorted(set(value))) if setting.name == "widths" else tuple(dict.fromkeys(value))


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("widths", "30, 1e4,100", (30, 100, 10_000)),
        ("widths", "1e2 3e2;1000", (100, 300, 1000)),
        ("widths", "[30, 100]", (30, 100)),
        ("architecture.use_bias", "False", False),
        ("training.learning_rate", "1e-2", 0.01),
        ("training.max_steps", "1e3", 1000),
        ("outputs", "linear,tanh", ("linear", "tanh")),
    ],
)
def test_text_is_read_as_people_write_it(name, text, value):
    spec, problems = spec_from_texts({name: text}, KernelChangeSpec())
    assert problems == ()
    assert values_of(spec)[name] == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(
            ("widths", text)
            for text in ("0", "1e9", "abc", "30.5", "nan", "", ",".join(map(str, range(1, 40))))
        ),
        ("training.max_steps", "1e999"),
        ("outputs", "linear,argmax"),
        ("architecture.depth", "9" * 5000),
        ("dataset.resolution", "8"),  # an option of another data set
    ],
)
def test_what_cannot_be_used_keeps_its_default_and_is_named(name, text):
    spec, problems = spec_from_texts({name: text, "num_seeds": "7"}, KernelChangeSpec())
    assert spec == KernelChangeSpec(num_seeds=7)
    assert [problem.field for problem in problems] == [name]
    sentence = SETTINGS[name].sentence(problems[0])
    assert sentence.startswith(SETTINGS[name].title + ": ")
    assert len(sentence) < 300


def test_depth_follows_a_kind_that_needs_two_layers():
    texts = {"architecture.kind": "bottleneck", "num_seeds": "7"}
    spec, (reason,) = spec_from_texts(texts, KernelChangeSpec())
    assert reason.field == "architecture.depth"
    assert spec.num_seeds == 7
    assert (spec.architecture.kind, spec.architecture.depth) == ("bottleneck", 2)


def test_a_kind_that_the_rest_does_not_fit_falls_back_alone():
    texts = {"architecture.kind": "convnet", "num_seeds": "7"}  # vectors are no images
    spec, (dropped,) = spec_from_texts(texts, KernelChangeSpec())
    assert spec == KernelChangeSpec(num_seeds=7)
    assert dropped.field == "architecture.kind"


@SOME
@given(specs())
def test_command_line_computes_the_same_spec(spec):
    words = shlex.split(command_line(spec))
    assert words[:2] == ["linearity-lab", "run"]
    base = PRESETS[words[2]].spec
    given = dict(assignment(words[i + 1], base) for i, word in enumerate(words) if word == "--set")
    assert with_settings(base, given) == spec


def test_no_option_shows_an_internal_name():
    for kind in KINDS.values():
        for setting in settings(kind.spec):
            assert [
                each for each in setting.options if "_" in str(each) and setting.term(each) is None
            ] == []


def test_settings_of_groups_are_named_and_changed_by_index():
    values = values_of(PAIR)
    assert values["architectures"] == 2
    assert {name for name, setting in GROUPS.items() if setting.is_used(values)} == set(values)
    for name, unmet in (
        ("architectures.2.depth", "architectures"),
        ("architectures.0.bottleneck_width", "architectures.0.kind"),
        ("architectures.1.bottleneck_width", None),
    ):
        assert GROUPS[name].unmet_condition(values) == unmet
    first, second = PAIR.architectures
    spec = with_settings(PAIR, {"architectures.1.bottleneck_width": 7})
    assert spec.architectures == (
        first,
        ArchitectureSpec(kind="bottleneck", depth=3, bottleneck_width=7),
    )
    assert with_value(spec, "architectures.1.bottleneck_width", second.bottleneck_width) == PAIR
    other = with_settings(spec, {"architectures.1.kind": "resnet"})
    assert other.architectures[1] == ArchitectureSpec(kind="resnet", depth=3), (
        "unused settings are dropped"
    )
    more = with_settings(PAIR, {"architectures.2.kind": "resnet", "architectures": 3})
    assert more.architectures == (first, second, ArchitectureSpec(kind="resnet"))
    assert with_settings(more, {"architectures": 1}).architectures == (first,)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        *(("architectures", each, "1 to 4 groups of settings") for each in (10**9, True, "two")),
        *(
            (f"architectures.{at}.depth", 2, "did you mean architectures.0.depth")
            for at in (4, "x", 9**40)
        ),
        ("architectures.0", 2, "the settings are "),
        ("architectures.1.depth", 0, "an integer from 1 to 16"),
        ("architectures.1.color", 0, "the settings are "),
        (
            "architectures.1.depth",
            1,
            "2 to 16 with a bottleneck",
        ),  # refused by the group's own validator
    ],
)
def test_what_groups_cannot_use_is_named_with_its_index(name, value, allowed):
    with pytest.raises(InvalidSpec) as caught:
        with_settings(PAIR, {name: value})
    (problem,) = caught.value.problems
    assert problem.field == name
    assert allowed in problem.allowed


def test_problems_in_several_groups_are_named_one_by_one():
    with pytest.raises(InvalidSpec) as caught:
        validated(
            ArchitecturesSpec, {"architectures": [{"depth": "deep"}, {"nonsense": 1}], "seed": -1}
        )
    found = {problem.field for problem in caught.value.problems}
    assert found == {"architectures.0.depth", "architectures.1.nonsense", "seed"}
    spec, problems = spec_from_texts({"architectures.2.depth": "2", "seed": "4"}, PAIR)
    assert spec == PAIR.model_copy(update={"seed": 4}), "the rest of a text is used"
    assert [problem.field for problem in problems] == ["architectures.2.depth"]
