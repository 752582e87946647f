"""The frozen ``Dataset``: refused arguments, stored arrays, and its fingerprint."""

import dataclasses

import numpy as np
import pytest

from linearity_lab.data import Dataset, data_fingerprint
from ntk_core.errors import InvalidInput


def arrays(**changes):
    fields = {
        "name": "own",
        "x": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
        "y": np.eye(2)[[0, 1, 1]],
        "labels": [0, 1, 1],
        "x_test": [[1.0, 1.0]],
        "y_test": [[1.0, 0.0]],
        "labels_test": [0],
        "class_names": ("a", "b"),
        "provenance": "typed in",
    }
    return fields | changes


def test_arrays_become_float32_and_int64_and_shapes_follow():
    data = Dataset(**arrays())
    assert [a.dtype for a in (data.x, data.y, data.x_test, data.y_test)] == [np.float32] * 4
    assert (data.labels.dtype, data.labels_test.dtype) == (np.int64, np.int64)
    assert (data.input_shape, data.num_outputs) == ((2,), 2)


def test_dataset_is_read_only_and_copies_the_input():
    x = np.zeros((3, 2), np.float32)
    data = Dataset(**arrays(x=x))
    with pytest.raises(ValueError, match="read-only"):
        data.x[0, 0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"
    x[0, 0] = 1


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("x", {"x": [[0, 1], [np.nan, 3], [4, 5]]}),
        ("x", {"x": [[0, 1], [1e300, 3], [4, 5]]}),  # finite in float64, not in float32
        ("x", {"x": [["a", "b"]] * 3}),
        ("x", {"x": [[1j, 2]] * 3}),
        ("x", {"x": [1.0, 2.0, 3.0]}),
        ("x", {"x": np.zeros((0, 2))}),
        ("y", {"y": [[1, 0], [0, 1]]}),
        ("y", {"y": [1, 0, 1]}),
        ("labels", {"labels": [0, 1, 2]}),
        ("labels", {"labels": [0, -1, 1]}),
        ("labels", {"labels": [0.0, 1.0, 1.0]}),
        ("x_test", {"x_test": [[1.0, 2.0, 3.0]]}),
        ("y_test", {"y_test": [[1.0]]}),
        ("labels_test", {"labels_test": []}),
        ("class_names", {"class_names": ("a", "a")}),
    ],
)
def test_invalid_data_are_refused_by_the_name_of_the_field(field, changes):
    with pytest.raises(InvalidInput) as refusal:
        Dataset(**arrays(**changes))
    assert refusal.value.field == field
    assert str(refusal.value).startswith(f"{field}: ")


def test_missing_values_are_counted_and_located():
    with pytest.raises(InvalidInput, match=r"2 missing or infinite values, the first at \(1, 0\)"):
        Dataset(**arrays(x=[[0, 1], [np.nan, 3], [4, -np.inf]]))


def test_fingerprint_depends_on_every_array_and_on_nothing_else():
    base = Dataset(**arrays())
    assert data_fingerprint(base) == data_fingerprint(
        dataclasses.replace(base, name="x", provenance="y")
    )
    changes = {
        "x": base.x + 1,
        "y": base.y * 2,
        "labels": 1 - base.labels,
        "x_test": base.x_test + 1,
        "y_test": base.y_test * 2,
        "labels_test": 1 - base.labels_test,
    }
    fingerprints = {
        data_fingerprint(dataclasses.replace(base, **{field: value}))
        for field, value in changes.items()
    }
    assert len(fingerprints | {data_fingerprint(base)}) == len(changes) + 1


def test_fingerprint_sees_the_shape_and_not_the_memory_layout():
    images = np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2)
    common = {"x_test": np.zeros((0, 2, 2, 2)), "y_test": np.zeros((0, 2)), "labels_test": []}
    by_layout = [Dataset(**arrays(x=x, **common)) for x in (images, np.asfortranarray(images))]
    assert data_fingerprint(by_layout[0]) == data_fingerprint(by_layout[1])
    flat = Dataset(**arrays(x=images.reshape(3, 8), **common | {"x_test": np.zeros((0, 8))}))
    assert data_fingerprint(flat) != data_fingerprint(by_layout[0])
