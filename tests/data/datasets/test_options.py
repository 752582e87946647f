"""Options of data sets, each declared once: specs and ``load_dataset`` accept the same ones."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ntk_core.data import DATASETS, OPTIONS, load_dataset
from ntk_core.data._laws import Curve
from ntk_core.data.spec import DatasetSpec
from ntk_core.errors import InvalidInput
from ntk_core.experiments.early_time.spec import EarlyDataSpec
from ntk_core.settings.validation import bounds

FIELDS = {name: info for name, info in DatasetSpec.model_fields.items() if name != "name"}


@pytest.mark.parametrize("name", FIELDS)
def test_settings_and_options_have_the_same_help(name):
    option, info = OPTIONS[name], FIELDS[name]
    assert (info.title, info.description, info.default) == (option.title, option.help, option.default)
    if option.kind in ("integer", "number"):
        assert bounds(info) == (option.minimum, option.maximum)


def test_bounds_of_a_law_are_those_of_its_specs():
    for name in ("resolution", "source", "seed"):
        assert EarlyDataSpec.model_fields[name].title == OPTIONS[name].title
        assert bounds(EarlyDataSpec.model_fields[name]) == bounds(OPTIONS[name].field())


@pytest.mark.parametrize("name", DATASETS)
def test_a_spec_has_exactly_the_options_of_its_data_set(name):
    spec = DatasetSpec.model_construct(name=name)
    assert {option for option in FIELDS if spec.uses(option)} == set(FIELDS) & set(DATASETS[name].uses)


@pytest.mark.parametrize(("option", "most"), [("num_classes", 100), ("noise", 1000.0), ("num_samples", 100_000)])
def test_largest_value_is_the_same_for_spec_and_load_dataset(option, most):
    small = {"num_samples": 4, "input_dim": 2, option: most}
    assert load_dataset("gaussian-mixture", **small).x.shape == (small["num_samples"], 2)
    assert getattr(DatasetSpec(**small), option) == most
    with pytest.raises(InvalidInput, match=option):
        load_dataset("gaussian-mixture", **{**small, option: most + 1})
    with pytest.raises(ValidationError, match=option):
        DatasetSpec(**{**small, option: most + 1})


def test_one_entry_is_all_that_a_new_data_set_needs(monkeypatch):
    toy = Curve("toy", "toy curve", "y = sin 2x", uses=("num_samples", "num_test", "seed", "noise"))
    monkeypatch.setitem(DATASETS, "toy", toy)
    data = load_dataset("toy", num_samples=5, num_test=3)
    assert (data.name, data.x.shape, data.y_test.shape) == ("toy", (5, 1), (3, 1))
    with pytest.raises(InvalidInput, match="num_classes"):
        load_dataset("toy", num_classes=3)
