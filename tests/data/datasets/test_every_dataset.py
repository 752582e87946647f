"""Every data set: seeds, sizes known before loading, options, refusals by name."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from pydantic import ValidationError

from linearity_lab.data import (
    DATASETS,
    data_fingerprint,
    dataset_info,
    dataset_options,
    dataset_shapes,
    load_dataset,
)
from linearity_lab.data._laws import Curve
from linearity_lab.data.spec import DatasetSpec
from ntk_core.errors import InvalidInput

SHIPPED = tuple(name for name in DATASETS if name != "upload")
SEEDED = tuple(name for name in SHIPPED if "seed" in DATASETS[name].uses)
DRAWN = tuple(name for name in SEEDED if not hasattr(DATASETS[name], "files"))


@pytest.mark.parametrize("name", SEEDED)
def test_equal_seeds_give_equal_data_and_others_do_not(name):
    first, second, third = (
        load_dataset(name, num_samples=20, num_test=20, seed=seed) for seed in (7, 7, 8)
    )
    assert data_fingerprint(first) == data_fingerprint(second) != data_fingerprint(third)
    assert not np.array_equal(first.x, first.x_test)


@pytest.mark.parametrize("name", DRAWN)
def test_smaller_sample_is_the_beginning_of_a_larger_one(name):
    noise = {"noise": 0.1} if "noise" in DATASETS[name].uses else {}
    small, large = (load_dataset(name, num_samples=n, num_test=n // 2, **noise) for n in (20, 60))
    for field in ("x", "y", "labels"):
        np.testing.assert_array_equal(
            getattr(small, field), getattr(large, field)[: len(getattr(small, field))]
        )
    if name != "sine":  # its test points are an even grid
        np.testing.assert_array_equal(small.x_test, large.x_test[:10])


OTHER_SHAPES: tuple[dict[str, object], ...] = (
    {},
    {"flatten": True},
    {"classes": (1, 0), "targets": "plus-minus", "num_test": 0},
)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, options)
        for name in SHIPPED
        for options in OTHER_SHAPES
        if set(options) <= set(DATASETS[name].uses)
    ],
)
def test_shapes_known_beforehand_are_those_of_the_data(name, options):
    shapes, data = dataset_shapes(name, **options), load_dataset(name, **options)
    assert data.x.shape == (shapes.num_samples, *shapes.input_shape)
    assert data.x_test.shape == (shapes.num_test, *shapes.input_shape)
    assert (data.num_outputs, data.class_names) == (shapes.num_outputs, shapes.class_names)


@pytest.mark.parametrize("name", SHIPPED)
def test_canonical_options_are_complete_and_idempotent(name):
    canonical = dataset_options(name)
    assert list(canonical) == [option.name for option in dataset_info(name).options]
    assert dataset_options(name, **dict(reversed(canonical.items()))) == canonical
    assert dataset_options(name, num_test=canonical["num_test"]) == canonical


@pytest.mark.parametrize("name", SHIPPED)
def test_provenance_states_licence_and_our_choices(name):
    provenance = load_dataset(name).provenance
    assert re.search("licence", provenance, re.IGNORECASE)
    assert re.search("our choice", provenance, re.IGNORECASE)


# Name of a data set → option → refused values.
REFUSED: dict[str, dict[str, list[object]]] = {
    "gaussian-mixture": {
        "num_samples": [0, 100_001, 10.0, True],
        "num_test": [-1],
        "num_classes": [1],
        "input_dim": [0],
        "noise": [-0.1, math.nan, "1", 1001.0],
        "seed": [-1, 2**32],
        "standardize": ["whiten"],
        "targets": [1, "plus-minus"],  # of three classes
    },
    "mnist": {
        "num_samples": [6001],
        "classes": [(0,), (0, 0), (0, "0"), (0, 10), (0, -1), (0, True), "01"],
        "source": ["internet"],
        "flatten": [1],
        "targets": ["plus-minus"],
    },
    "fashion-mnist": {"classes": [("Bag", "bag")]},
    "cifar2": {"resolution": [16, "8"]},
    "copy": {"num_tokens": [257]},
    "points": {"xs": [[0.0] * 31, [], [0, 101], [0, True], "0,1"], "ys": [[0, math.nan], [0]]},
}


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        (name, option, value)
        for name, of in REFUSED.items()
        for option, values in of.items()
        for value in values
    ],
)
def test_value_outside_its_bounds_is_refused_by_name(name, option, value):
    with pytest.raises(InvalidInput) as refusal:
        load_dataset(name, **{option: value})
    assert refusal.value.field == option


@pytest.mark.parametrize(
    ("name", "options", "field", "words"),
    [
        ("mnist", {"num_samples": 1201, "classes": (0, 1)}, "num_samples", "1,200"),
        ("mnist", {"num_test": 401, "classes": (0, 1)}, "num_test", "at most 400"),
        ("cifar2", {"num_samples": 1001, "resolution": 32}, "num_samples", "at most 1,000"),
        (
            "mnist",
            {"colour": 1},
            "options",
            "num_samples, num_test, seed, standardize, targets, classes, source",
        ),
        ("gaussian-mixture", {"classes": (0, 1)}, "options", "num_classes"),
        ("majority", {"num_symbols": 3}, "options", "num_tokens"),
        ("points", {"seed": 0}, "options", "xs, ys"),
        (
            "imagenet",
            {},
            "name",
            "gaussian-mixture, .*, random-sequences, .*, teacher, (.*, )?mnist, .*, digits",
        ),
        (["mnist"], {}, "name", "gaussian-mixture"),
    ],
)
def test_refusals_name_what_is_allowed(name, options, field, words):
    with pytest.raises(InvalidInput, match=words) as refusal:
        load_dataset(name, **options)
    assert refusal.value.field == field


def test_largest_value_is_the_same_for_spec_and_load_dataset():
    small = {"num_samples": 4, "input_dim": 2, "noise": 1000.0}
    assert load_dataset("gaussian-mixture", **small).x.shape == (4, 2)
    assert DatasetSpec(**small).noise == 1000.0
    with pytest.raises(ValidationError, match="noise"):
        DatasetSpec(**{**small, "noise": 1001.0})


def test_one_entry_is_all_that_a_new_data_set_needs(monkeypatch):
    toy = Curve("toy", "toy curve", "y = sin 2x", uses=("num_samples", "num_test", "seed", "noise"))
    monkeypatch.setitem(DATASETS, "toy", toy)
    data = load_dataset("toy", num_samples=5, num_test=3)
    assert (data.name, data.x.shape, data.y_test.shape) == ("toy", (5, 1), (3, 1))
    with pytest.raises(InvalidInput, match="num_classes"):
        load_dataset("toy", num_classes=3)
