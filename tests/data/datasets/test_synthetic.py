"""Synthetic data: stated distributions, labels by naive rules, Bayes errors, pinned draws."""

import math

import numpy as np
import pytest
from numpy.polynomial import hermite_e

from linearity_lab.data import DATASETS, dataset_options, dataset_shapes, load_dataset
from linearity_lab.data._laws import CENTER_NORM
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.settings.grammar import InvalidSpec, differences, spec_from_texts, with_settings
from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.streams import stream

N, C, D = 40_000, 4, 5
PINNED_LABELS = [2, 1, 1, 1]
PINNED_X = [
    [1.1000888347625732, -1.9355309009552002],
    [-0.08371089398860931, 1.4380877017974854],
    [-0.5058877468109131, 1.4122209548950195],
    [0.10569055378437042, 1.981702446937561],
]
STANDARD_ERRORS = 5  # two-sided 6e-7 for each of the few dozen statistics compared


def means_of(seed, num_classes, input_dim):
    """Class means μ_c from data without noise, where every sample is its class mean."""
    data = load_dataset(
        "gaussian-mixture",
        num_samples=2000,
        num_classes=num_classes,
        input_dim=input_dim,
        noise=0,
        seed=seed,
    )
    return np.stack([data.x[data.labels == c][0] for c in range(num_classes)]).astype(float)


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_samples_have_the_class_mean_and_an_isotropic_covariance(noise):
    data = load_dataset(
        "gaussian-mixture",
        num_samples=N,
        num_test=0,
        num_classes=C,
        input_dim=D,
        noise=noise,
        seed=3,
    )
    means = means_of(3, C, D)
    for label in range(C):
        x = data.x[data.labels == label].astype(float)
        n = len(x)
        assert np.all(np.abs(x.mean(axis=0) - means[label]) < STANDARD_ERRORS * noise / np.sqrt(n))
        covariance = np.cov(x.T) / noise**2
        # A sample variance has standard error √(2/n), a sample covariance of independent
        # coordinates √(1/n).
        standard_errors = np.sqrt((1 + np.eye(D)) / n)
        assert np.all(np.abs(covariance - np.eye(D)) < STANDARD_ERRORS * standard_errors)


def test_class_centers_are_uniform_and_shared_with_the_test_set():
    means = means_of(seed=0, num_classes=100, input_dim=50)
    # A few float32 roundings.
    np.testing.assert_allclose(np.linalg.norm(means, axis=1), CENTER_NORM, rtol=1e-6)
    coordinate_std = CENTER_NORM / np.sqrt(50)
    assert abs(means.mean()) < STANDARD_ERRORS * coordinate_std / np.sqrt(means.size)
    covariance = means.T @ means / len(means)
    assert np.abs(
        covariance - np.diag(np.diag(covariance))
    ).max() < STANDARD_ERRORS * coordinate_std**2 / np.sqrt(len(means))
    data = load_dataset("gaussian-mixture", num_samples=1000, num_test=1000, noise=0)
    for label in range(3):
        train, test = data.x[data.labels == label], data.x_test[data.labels_test == label]
        assert np.all(train == train[0])
        assert np.all(test == train[0])


def test_draws_are_pinned_across_machines_and_numpy_versions():
    """A change here changes every stored result that names this data set."""
    data = load_dataset(
        "gaussian-mixture", num_samples=4, num_test=0, num_classes=3, input_dim=2, seed=0
    )
    assert data.labels.tolist() == PINNED_LABELS
    np.testing.assert_array_equal(data.x, np.array(PINNED_X, np.float32))


def test_streams_of_different_purposes_are_different():
    purposes = [(), (0,), (1,), (0, 0), (1, 0), (1, 1), (1, 0, 0)]
    assert len({stream(0, *purpose).random() for purpose in purposes}) == len(purposes)


def test_oversized_data_are_refused_before_drawing():
    with pytest.raises(TooLarge) as refusal:
        load_dataset("gaussian-mixture", num_samples=100_000, input_dim=10_000)
    assert refusal.value.field == "num_samples"
    assert refusal.value.nearest == 2**27 // 10_000


def test_sine_curve_follows_its_law_on_an_even_test_grid():
    data = load_dataset("sine", num_samples=10_000, num_test=61, noise=0.5, seed=2)
    assert (data.x.shape, data.y.shape, data.x_test.shape, data.num_outputs) == (
        (10_000, 1),
        (10_000, 1),
        (61, 1),
        1,
    )
    assert data.class_names == ()
    assert np.abs(data.x).max() <= 2
    # U[−2, 2] has variance 4/3 and fourth moment 16/5; the rest of y is noise.
    assert abs(data.x.mean()) < STANDARD_ERRORS * np.sqrt(4 / 3 / 10_000)
    assert abs((data.x**2).mean() - 4 / 3) < STANDARD_ERRORS * np.sqrt((16 / 5 - 16 / 9) / 10_000)
    noise = data.y - np.sin(2 * data.x)
    assert abs(noise.std() - 0.5) < STANDARD_ERRORS * 0.5 / np.sqrt(2 * 10_000)
    np.testing.assert_allclose(data.x_test[:, 0], np.linspace(-3, 3, 61), rtol=1e-6)
    np.testing.assert_allclose(data.y_test, np.sin(2 * data.x_test), atol=1e-6)


def test_given_points_are_kept_and_interpolated_for_tests():
    data = load_dataset("points", xs=(1, -1.5, 0), ys=(2.0, 1.0, 0.5), num_test=5)
    np.testing.assert_array_equal(data.x, np.array([[1], [-1.5], [0]], np.float32))
    np.testing.assert_array_equal(data.y, np.array([[2], [1], [0.5]], np.float32))
    np.testing.assert_allclose(
        data.x_test[:, 0], np.linspace(-1.5 - 2.5 / 4, 1 + 2.5 / 4, 5), rtol=1e-6
    )
    # Left of the first point, then the line from (−1.5, 1) to (0, ½), then the line to (1, 2).
    grid = data.x_test[1:4, 0].astype(np.float64)
    np.testing.assert_allclose(data.y_test[0], 1.0)
    np.testing.assert_allclose(data.y_test[1:3, 0], 0.5 - grid[:2] / 3, rtol=1e-6)
    np.testing.assert_allclose(data.y_test[3:, 0], [0.5 + 1.5 * grid[2], 2.0], rtol=1e-6)
    assert load_dataset("points", xs=[0.5], ys=[1]).y_test.shape == (0, 1)


def test_given_points_are_text_and_independent_of_the_seed():
    spec = with_settings(
        KernelChangeSpec(),
        {
            "dataset.name": "points",
            "dataset.xs": [-1, 0.5],
            "dataset.ys": [1, 0],
            "outputs": ["tanh"],
        },
    )
    texts = differences(spec, KernelChangeSpec())
    assert texts["dataset.xs"] == "-1.0,0.5"
    assert spec_from_texts(texts, KernelChangeSpec()) == (spec, ())
    assert spec.model_dump(mode="json")["dataset"] == {
        "name": "points",
        "xs": [-1.0, 0.5],
        "ys": [1.0, 0.0],
    }
    with pytest.raises(InvalidSpec, match="given points are not drawn"):
        with_settings(spec, {"draws": "network and data"})


TASKS = ("copy", "majority", "modular-addition", "induction")
SIZES = {"num_samples": 4000, "num_test": 50, "num_tokens": 5, "input_dim": 6}


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
    # np.unique has another order than the symbols, so labels by copying identify each symbol's
    # vector.
    copied = load_dataset("copy", **SIZES | {"num_tokens": 1}, num_symbols=classes)
    order = {
        token.tobytes(): label for token, label in zip(copied.x[:, 0], copied.labels, strict=True)
    }
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
    assert np.all(
        np.abs((data.x * data.y[:, :, None]).mean(axis=0)) < STANDARD_ERRORS / np.sqrt(4000)
    )


def test_patches_are_the_squares_of_the_image_row_by_row():
    image = load_dataset("cifar2", num_samples=3, num_test=0, standardize="standard")
    tokens = load_dataset("cifar2", num_samples=3, num_test=0, standardize="standard", patch_size=2)
    assert dataset_shapes("cifar2", patch_size=2).input_shape == tokens.x.shape[1:] == (16, 12)
    assert tokens.x_test.shape == (0, 16, 12)
    for row in range(4):
        for column in range(4):
            square = image.x[:, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            np.testing.assert_array_equal(tokens.x[:, 4 * row + column], square.reshape(3, -1))


def test_sequence_that_fits_no_law_is_refused_by_name():
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


TARGETS = ("parity", "staircase", "single-index", "multi-index", "teacher")
M = 20_000


def _least(name: str, **options: object) -> tuple[float, float]:
    return DATASETS[name].least_risk(dataset_options(name, **options))


@pytest.mark.parametrize("name", TARGETS)
def test_targets_are_standardized(name):
    data = (
        load_dataset(name, num_samples=M, num_test=7, input_dim=6, targets="plus-minus")
        if name == "parity"
        else (load_dataset(name, num_samples=M, num_test=7, input_dim=6))
    )
    y = data.y[:, 0].astype(float)
    for moment, expected in ((y, 0.0), (y**2, 1.0)):
        error = moment.std() / math.sqrt(M)
        assert abs(moment.mean() - expected) <= 5 * error + 1e-6
    on_bits = name in ("parity", "staircase")
    assert set(np.unique(data.x)) == {-1, 1} if on_bits else abs(data.x.std() - 1) < 0.02


def test_parity_noise_flips_at_the_bayes_error():
    clean = load_dataset("parity", num_samples=50, num_test=0, input_dim=5, num_relevant=3)
    assert ((clean.x[:, :3].prod(axis=1) > 0) == clean.labels).all()
    assert clean.class_names == ("−1", "+1")
    assert _least("parity") == (0, 0)
    noisy = load_dataset(
        "parity", num_samples=M, num_test=0, input_dim=5, num_relevant=3, noise=1.0
    )
    flips, loss = _least("parity", input_dim=5, num_relevant=3, noise=1.0)
    assert flips == pytest.approx(0.158655, abs=1e-6)  # Φ(−1)
    found = np.mean((noisy.x[:, :3].prod(axis=1) > 0) != noisy.labels)
    assert abs(found - flips) < 5 * math.sqrt(flips * (1 - flips) / M)
    # Among all multiples of the product, the factor (1 − 2p) has the least square loss.
    y, product = 2.0 * noisy.labels - 1, noisy.x[:, :3].prod(axis=1)
    least = np.mean((y - (1 - 2 * flips) * product) ** 2) / 2
    assert least == pytest.approx(
        loss, abs=5 * np.std((y - (1 - 2 * flips) * product) ** 2 / 2) / math.sqrt(M)
    )


def test_each_target_follows_its_law():
    for degree in (1, 2, 3, 8):
        data = load_dataset("single-index", num_samples=40, num_test=0, input_dim=3, degree=degree)
        first = data.x[:, 0].astype(float)
        expected = hermite_e.hermeval(first, [0] * degree + [1]) / math.sqrt(math.factorial(degree))
        assert data.y[:, 0] == pytest.approx(expected, rel=1e-5, abs=1e-5)  # float32
    data = load_dataset("staircase", num_samples=40, num_test=0, input_dim=5, num_relevant=3)
    a, b, c = data.x[:, :3].T
    assert data.y[:, 0] == pytest.approx((a + a * b + a * b * c) / math.sqrt(3), rel=1e-6)
    data = load_dataset("multi-index", num_samples=40, num_test=0, input_dim=5, num_relevant=3)
    assert data.y[:, 0] == pytest.approx(data.x[:, :3].prod(axis=1), rel=1e-5)
    noisy = load_dataset(
        "multi-index", num_samples=M, num_test=0, input_dim=5, num_relevant=3, noise=0.5
    )
    left = noisy.y[:, 0] - noisy.x[:, :3].prod(axis=1)
    assert np.mean(left**2) / 2 == pytest.approx(
        _least("multi-index", noise=0.5)[1], rel=5 * math.sqrt(2 / M)
    )
    assert math.isnan(_least("multi-index", noise=0.5)[0])
    assert all(math.isnan(each) for each in _least("mnist"))


def test_only_a_teacher_may_be_wider_than_its_inputs():
    assert load_dataset(
        "teacher", num_samples=3, num_test=0, input_dim=2, num_relevant=9
    ).y.shape == (3, 1)
    with pytest.raises(InvalidInput, match="num_relevant: 9 cannot be used; use at most 2"):
        load_dataset("parity", input_dim=2, num_relevant=9)
