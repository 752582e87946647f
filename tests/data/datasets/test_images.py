"""The shipped image sets: intact, balanced, pooled and standardized as stated."""

import hashlib
import re

import numpy as np
import pytest

from linearity_lab.data import dataset_options, dataset_shapes, load_dataset
from linearity_lab.data._dataset import standardize_inputs
from linearity_lab.data._images import SHIPPED_FILES, block_sums

IMAGE_SETS = ("mnist", "fashion-mnist", "cifar2", "digits")


def test_every_shipped_file_has_the_checksum_of_its_readme():
    stated = dict(
        re.findall(
            r"`(\w+\.npz)`.*`([0-9a-f]{64})`", (SHIPPED_FILES / "README.md").read_text("utf-8")
        )
    )
    actual = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in SHIPPED_FILES.glob("*.npz")
    }
    assert actual == stated
    assert len(actual) == 4


def test_pooled_cifar2_equals_pooling_of_the_full_size_images():
    pooled, full = (
        np.load(SHIPPED_FILES / f"cifar2_{side}.npz", allow_pickle=False)
        for side in ("8x8", "32x32")
    )
    with pooled, full:
        for split, per_class in (("train", 500), ("test", 100)):
            for label in (0, 1):
                sums = pooled[f"x_{split}_sum16"][pooled[f"y_{split}"] == label][:per_class]
                images = full[f"x_{split}"][full[f"y_{split}"] == label]
                averages = images.reshape(-1, 8, 4, 8, 4, 3).mean(axis=(2, 4))
                np.testing.assert_array_equal(sums / 16, averages)
                np.testing.assert_array_equal(block_sums(images), sums)


def test_digits_are_the_mnist_images_pooled_to_seven_pixels():
    options = {"num_samples": 40, "num_test": 20, "seed": 5, "classes": (2, 7)}
    digits, mnist = load_dataset("digits", **options), load_dataset("mnist", **options)
    pooled = mnist.x.reshape(-1, 7, 4, 7, 4, 1).mean(axis=(2, 4))
    # A few roundings of numbers in [0, 1] in float32.
    np.testing.assert_allclose(digits.x, pooled, atol=4e-7)
    assert "7×7" in digits.provenance
    assert "scikit-learn" in digits.provenance


@pytest.mark.parametrize("name", IMAGE_SETS)
def test_shipped_images_have_registered_counts_and_range(name):
    shapes = dataset_shapes(name)
    data = load_dataset(name, num_samples=shapes.available_train, num_test=shapes.available_test)
    for labels, available in (
        (data.labels, shapes.available_train),
        (data.labels_test, shapes.available_test),
    ):
        assert (
            np.bincount(labels).tolist() == [available // shapes.num_outputs] * shapes.num_outputs
        )
    assert 0 <= data.x.min() < 0.1
    assert 0.9 < data.x.max() <= 1


def test_class_counts_differ_by_at_most_one():
    for num_samples in (1, 60, 1001, 1799):
        data = load_dataset("mnist", num_samples=num_samples, classes=(8, 1, 3))
        counts = np.bincount(data.labels, minlength=3)
        assert counts.sum() == num_samples
        assert counts.max() - counts.min() <= 1


def test_no_image_is_drawn_twice():
    data = load_dataset("mnist", num_samples=6000, flatten=True)
    with np.load(SHIPPED_FILES / "mnist_8k.npz", allow_pickle=False) as shipped:
        stored = (shipped["x_train"].reshape(6000, -1) / np.float32(255)).astype(np.float32)
    assert sorted(map(bytes, data.x)) == sorted(map(bytes, stored))


def test_chosen_classes_have_their_images_in_order():
    with np.load(SHIPPED_FILES / "fashion_mnist_8k.npz", allow_pickle=False) as shipped:
        images = shipped["x_train"].astype(np.float32) / 255
        by_class = {
            c: {image.tobytes() for image in images[shipped["y_train"] == c]} for c in (9, 0)
        }
    data = load_dataset("fashion-mnist", classes=("Ankle boot", 0), num_samples=50)
    assert data.class_names == ("Ankle boot", "T-shirt/top")
    for image, label in zip(data.x, data.labels, strict=True):
        assert image.tobytes() in by_class[(9, 0)[label]]


def test_smaller_subset_is_contained_in_a_larger_one():
    def images(n):
        return {image.tobytes() for image in load_dataset("cifar2", num_samples=n, seed=4).x}

    assert images(31) < images(64) < images(100)


def test_targets_encode_the_labels():
    one_hot, signs = (
        load_dataset("mnist", num_samples=30),
        load_dataset("cifar2", num_samples=30, targets="plus-minus"),
    )
    np.testing.assert_array_equal(one_hot.y, np.eye(10)[one_hot.labels])
    np.testing.assert_array_equal(signs.y, np.where(signs.labels == 1, 1, -1)[:, None])


@pytest.mark.parametrize("name", ["mnist", "cifar2", "gaussian-mixture"])
def test_unit_norm_inputs_have_norm_root_d(name):
    raw, data = load_dataset(name), load_dataset(name, standardize="unit-norm")
    for before, after in ((raw.x, data.x), (raw.x_test, data.x_test)):
        flat = after.reshape(len(after), -1).astype(float)
        np.testing.assert_allclose(np.linalg.norm(flat, axis=1), np.sqrt(flat.shape[1]), rtol=1e-6)
        cosine = (flat * before.reshape(len(after), -1)).sum(axis=1) / np.linalg.norm(flat, axis=1)
        np.testing.assert_allclose(
            cosine, np.linalg.norm(before.reshape(len(after), -1), axis=1), rtol=1e-5
        )


def test_standard_uses_the_training_set_for_both():
    raw, data = (
        load_dataset("mnist", num_samples=500, standardize=how) for how in ("raw", "standard")
    )
    mean, deviation = raw.x.astype(float).mean(axis=0), raw.x.astype(float).std(axis=0)
    constant = raw.x.max(axis=0) == raw.x.min(axis=0)
    assert 0 < constant.sum() < constant.size
    for before, after in ((raw.x, data.x), (raw.x_test, data.x_test)):
        assert not after[:, constant].any()
        expected = ((before - mean) / np.where(constant, 1, deviation))[:, ~constant]
        np.testing.assert_allclose(after[:, ~constant], expected, rtol=1e-5, atol=1e-5)
    # Pixels that only test images use are dropped, not divided by zero.
    assert np.any(raw.x_test[:, constant])


def test_centered_uses_the_training_mean_for_both():
    raw, data = (
        load_dataset("digits", num_samples=50, standardize=how) for how in ("raw", "centered")
    )
    for before, after in ((raw.x, data.x), (raw.x_test, data.x_test)):
        moved = (before - raw.x.astype(float).mean(axis=0)).reshape(len(before), -1)
        expected = 7 * moved / np.linalg.norm(moved, axis=1, keepdims=True)
        np.testing.assert_allclose(after.reshape(len(before), -1), expected, atol=1e-5)


def test_zero_image_stays_zero_when_it_is_standardized():
    zeros, empty = np.zeros((2, 3, 3, 1), np.float32), np.zeros((0, 3, 3, 1), np.float32)
    for how in ("raw", "unit-norm", "standard", "centered"):
        x, x_test = standardize_inputs(zeros, empty, how)
        assert not x.any()
        assert x_test.shape == empty.shape


def test_tiny_inputs_have_norm_root_d():
    x = np.array([[3, 4], [3e-40, 4e-40]], np.float32)
    found, _ = standardize_inputs(x, x[:0], "unit-norm")
    np.testing.assert_allclose(found, np.sqrt(2) * np.array([[0.6, 0.8]] * 2), rtol=1e-4)


def test_classes_by_index_and_by_name_are_the_same_request():
    by_index, by_name = (
        dataset_options("cifar2", classes=classes) for classes in ([1, 0], ("horse", "cat"))
    )
    assert by_index == by_name
    assert dataset_options("cifar2", classes=None) == dataset_options("cifar2", classes=(0, 1))
