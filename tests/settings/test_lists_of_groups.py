"""Lists of setting groups, addressed by index (``networks.1.depth``); their value is their length."""

from __future__ import annotations

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from ntk_core.networks.spec import ArchitectureSpec
from ntk_core.settings.grammar import (
    InvalidSpec,
    changed_values,
    differences,
    spec_from_texts,
    validated,
    with_settings,
)
from ntk_core.settings.part import SpecPart
from ntk_core.settings.validation import allowed_values
from ntk_core.settings.walk import settings, value_at, values_of, with_value


class Toy(SpecPart):
    """A spec with up to three networks if ``several`` is set, else none."""

    selector: ClassVar[str] = "kind"
    relevant: ClassVar[dict[str, tuple[str, ...]]] = {"networks": ("several",)}

    networks: tuple[ArchitectureSpec, ...] = Field(
        (ArchitectureSpec(depth=3), ArchitectureSpec(kind="bottleneck", depth=3)),
        min_length=1,
        max_length=3,
        title="Networks",
        json_schema_extra={"each": "Network"},
    )
    kind: str = Field("several", title="Kind")
    seed: int = Field(0, ge=0, le=9, title="Seed")


SETTINGS = {setting.name: setting for setting in settings(Toy)}


def test_every_setting_of_every_group_has_a_name_and_a_place():
    assert list(SETTINGS)[:2] == ["networks", "networks.0.kind"]
    assert list(SETTINGS)[-2:] == ["kind", "seed"]
    assert {name.split(".")[1] for name in SETTINGS if name.count(".")} == {"0", "1", "2"}
    assert SETTINGS["networks.1.depth"].full_title == "Network B, Hidden layers L"
    assert SETTINGS["seed"].full_title == "Seed"
    assert allowed_values(SETTINGS["networks"].info) == "1 to 3 groups of settings"


def test_values_contain_group_count_and_used_settings():
    values = values_of(Toy())
    assert values["networks"] == 2
    assert (values["networks.0.depth"], values["networks.1.kind"]) == (3, "bottleneck")
    assert "networks.1.bottleneck_width" in values
    assert "networks.0.bottleneck_width" not in values
    assert not any(name.startswith("networks.2.") for name in values)
    assert {setting.name for setting in SETTINGS.values() if setting.is_used(values)} == set(values)


@pytest.mark.parametrize(
    ("name", "unmet"),
    [
        ("networks.2.depth", "networks"),
        ("networks.0.bottleneck_width", "networks.0.kind"),
        ("networks.1.bottleneck_width", None),
        ("seed", None),
    ],
)
def test_an_unused_setting_names_its_unmet_condition(name, unmet):
    assert SETTINGS[name].unmet_condition(values_of(Toy())) == unmet


def test_one_setting_of_one_group_changes():
    spec = with_settings(Toy(), {"networks.1.bottleneck_width": 7})
    assert spec.networks == (
        ArchitectureSpec(depth=3),
        ArchitectureSpec(kind="bottleneck", depth=3, bottleneck_width=7),
    )
    assert value_at(spec, "networks.1.bottleneck_width") == 7
    assert with_value(spec, "networks.1.bottleneck_width", 3) == Toy()


def test_settings_unused_by_new_kind_are_dropped():
    spec = with_settings(Toy(), {"networks.1.kind": "resnet"})
    assert spec.networks[1] == ArchitectureSpec(kind="resnet", depth=3)


def test_the_number_of_groups_is_a_setting():
    more = with_settings(Toy(), {"networks.2.kind": "resnet", "networks": 3})
    assert more.networks == (*Toy().networks, ArchitectureSpec(kind="resnet"))
    assert with_settings(more, {"networks": 1}).networks == (ArchitectureSpec(depth=3),)
    assert with_settings(Toy(), {"networks": [{"depth": 2}]}).networks == (ArchitectureSpec(depth=2),)


def test_groups_that_the_chosen_kind_does_not_use_are_dropped():
    spec = with_settings(Toy(), {"kind": "alone"})
    assert values_of(spec) == {"kind": "alone", "seed": 0}
    assert "networks" not in spec.model_dump()
    with pytest.raises(InvalidSpec, match="this setting only with kind several"):
        with_settings(Toy(), {"kind": "alone", "networks.0.depth": 2})


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("networks", 0, "1 to 3 groups of settings"),
        ("networks", 10**9, "1 to 3 groups of settings"),
        ("networks", True, "1 to 3 groups of settings"),
        ("networks", "two", "1 to 3 groups of settings"),
        ("networks", [], "1 to 3 groups of settings"),
        ("networks.2.depth", 2, "did you mean networks.0.depth or networks.1.depth?"),
        ("networks.x.depth", 2, "did you mean networks.0.depth or networks.1.depth?"),
        (f"networks.{'9' * 40}.depth", 2, "did you mean networks.0.depth or networks.1.depth?"),
        ("networks.0", 2, "the settings are networks, networks.0.kind"),
        ("networks.1.depth", 0, "an integer from 1 to 16"),
        ("networks.1.color", 0, "the settings are networks, networks.0.kind"),
        ("networks.1.depth", 1, "2 to 16 with a bottleneck"),  # refused by the group's own validator
    ],
)
def test_what_cannot_be_used_is_named_with_its_index(name, value, allowed):
    with pytest.raises(InvalidSpec) as caught:
        with_settings(Toy(), {name: value})
    (problem,) = caught.value.problems
    assert problem.field == name
    assert allowed in problem.allowed


def test_problems_in_several_groups_are_named_one_by_one():
    with pytest.raises(InvalidSpec) as caught:
        validated(Toy, {"networks": [{"depth": "deep"}, {"nonsense": 1}], "seed": -1})
    assert {problem.field for problem in caught.value.problems} == {"networks.0.depth", "networks.1.nonsense", "seed"}


def test_missing_group_is_reported_and_rest_is_used():
    spec, problems = spec_from_texts({"networks.2.depth": "2", "seed": "4"}, Toy())
    assert spec == Toy(seed=4)
    assert [problem.field for problem in problems] == ["networks.2.depth"]


NETWORKS = st.builds(
    ArchitectureSpec,
    kind=st.sampled_from(["fully-connected", "resnet", "densenet"]),
    depth=st.integers(1, 4),
    use_bias=st.booleans(),
)
TOYS = st.builds(
    Toy, networks=st.lists(NETWORKS, min_size=1, max_size=3).map(tuple), seed=st.integers(0, 9)
) | st.builds(Toy, kind=st.just("alone"))


@given(TOYS, TOYS)
def test_a_spec_comes_back_from_its_differences(spec, base):
    assert spec_from_texts(differences(spec, base), base) == (spec, ())
    assert with_settings(base, changed_values(spec, base)) == spec
