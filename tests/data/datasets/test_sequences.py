"""Token data against naive rules: symbols and labels, random targets, patches of images."""

import numpy as np
import pytest

from ntk_core.data import dataset_shapes, load_dataset
from ntk_core.errors import InvalidInput, TooLarge

TASKS = ("copy", "majority", "modular-addition", "induction")
SIZES = {"num_samples": 4000, "num_test": 50, "num_tokens": 5, "input_dim": 6}
STANDARD_ERRORS = 5


def after_the_first_occurrence_of_the_last(symbols):
    return symbols[symbols.index(symbols[-1]) + 1]


LABELS = {
    "copy": lambda symbols: symbols[0],
    "majority": lambda symbols: max(set(symbols), key=symbols.count),
    "modular-addition": lambda symbols: sum(symbols) % 4,
    "induction": after_the_first_occurrence_of_the_last,
}


def symbols_of(x, x_test):
    """Number the tokens by symbol: equal tokens are one symbol."""
    tokens = np.concatenate([x, x_test]).reshape(-1, x.shape[-1])
    vectors, found = np.unique(tokens, axis=0, return_inverse=True)
    return vectors, found.reshape(-1, x.shape[1])


@pytest.mark.parametrize("name", TASKS)
def test_labels_follow_the_rule_and_are_uniform(name):
    data = load_dataset(name, **SIZES)
    vectors, found = symbols_of(data.x, data.x_test)
    classes = 2 if name == "majority" else 4
    assert len(vectors) == classes == len(data.class_names)  # one embedding for both sets
    # np.unique has another order than the symbols, so labels by copying identify each symbol's vector.
    copied = load_dataset("copy", **SIZES | {"num_tokens": 1}, num_symbols=classes)
    order = {token.tobytes(): label for token, label in zip(copied.x[:, 0], copied.labels, strict=True)}
    numbers = np.array([order[vector.tobytes()] for vector in vectors])[found]
    labels = np.concatenate([data.labels, data.labels_test])
    assert [LABELS[name](row) for row in numbers.tolist()] == labels.tolist()
    frequency = np.bincount(data.labels, minlength=classes) / 4000
    assert np.all(np.abs(frequency - 1 / classes) < STANDARD_ERRORS * np.sqrt(1 / classes / 4000))
    if name == "induction":
        assert all(row.count(row[-1]) == 2 for row in numbers.tolist())


def test_random_sequences_are_normal_with_independent_signs():
    data = load_dataset("random-sequences", num_samples=4000, num_tokens=3, input_dim=2)
    assert (data.x.shape, data.y.shape, data.class_names) == ((4000, 3, 2), (4000, 1), ())
    assert set(data.y.ravel()) == {-1.0, 1.0}
    assert abs(data.y.mean()) < STANDARD_ERRORS / np.sqrt(4000)
    assert abs(data.x.mean()) < STANDARD_ERRORS / np.sqrt(data.x.size)
    assert abs((data.x**2).mean() - 1) < STANDARD_ERRORS * np.sqrt(2 / data.x.size)
    assert np.all(np.abs((data.x * data.y[:, :, None]).mean(axis=0)) < STANDARD_ERRORS / np.sqrt(4000))


def test_patches_are_the_squares_of_the_image_row_by_row():
    image = load_dataset("cifar2", num_samples=3, num_test=0, standardize="standard")
    tokens = load_dataset("cifar2", num_samples=3, num_test=0, standardize="standard", patch_size=2)
    assert dataset_shapes("cifar2", patch_size=2).input_shape == tokens.x.shape[1:] == (16, 12)
    assert tokens.x_test.shape == (0, 16, 12)
    for row in range(4):
        for column in range(4):
            square = image.x[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            np.testing.assert_array_equal(tokens.x[:, 4 * row + column], square.reshape(3, -1))


def test_what_fits_no_law_is_refused_by_name():
    cases = (
        ("cifar2", {"patch_size": 3}, "patch_size", 2),
        ("mnist", {"patch_size": 7, "flatten": True}, "patch_size", 0),
        ("majority", {"num_tokens": 6}, "num_tokens", 5),
        ("induction", {"num_tokens": 2}, "num_tokens", 3),
    )
    for name, options, field, nearest in cases:
        with pytest.raises(InvalidInput) as refusal:
            load_dataset(name, **options)
        assert (refusal.value.field, refusal.value.nearest) == (field, nearest)
    with pytest.raises(TooLarge):
        load_dataset("random-sequences", num_samples=100_000, num_tokens=256, input_dim=10_000)
