"""Synthetic data: stated distributions, and equal draws for equal seeds."""

import numpy as np
import pytest

from ntk_core.data import load_dataset, stream
from ntk_core.data._laws import CENTER_NORM
from ntk_core.errors import TooLarge
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.settings.grammar import InvalidSpec, differences, spec_from_texts, with_settings

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
        "gaussian-mixture", num_samples=2000, num_classes=num_classes, input_dim=input_dim, noise=0, seed=seed
    )
    return np.stack([data.x[data.labels == c][0] for c in range(num_classes)]).astype(float)


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_samples_have_the_class_mean_and_an_isotropic_covariance(noise):
    data = load_dataset("gaussian-mixture", num_samples=N, num_test=0, num_classes=C, input_dim=D, noise=noise, seed=3)
    means = means_of(3, C, D)
    for label in range(C):
        x = data.x[data.labels == label].astype(float)
        n = len(x)
        assert np.all(np.abs(x.mean(axis=0) - means[label]) < STANDARD_ERRORS * noise / np.sqrt(n))
        covariance = np.cov(x.T) / noise**2
        # A sample variance has standard error √(2/n), a sample covariance of independent coordinates √(1/n).
        standard_errors = np.sqrt((1 + np.eye(D)) / n)
        assert np.all(np.abs(covariance - np.eye(D)) < STANDARD_ERRORS * standard_errors)


def test_class_centers_are_uniform_and_shared_with_the_test_set():
    means = means_of(seed=0, num_classes=100, input_dim=50)
    np.testing.assert_allclose(np.linalg.norm(means, axis=1), CENTER_NORM, rtol=1e-6)  # a few float32 roundings
    coordinate_std = CENTER_NORM / np.sqrt(50)
    assert abs(means.mean()) < STANDARD_ERRORS * coordinate_std / np.sqrt(means.size)
    covariance = means.T @ means / len(means)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < STANDARD_ERRORS * coordinate_std**2 / np.sqrt(
        len(means)
    )
    data = load_dataset("gaussian-mixture", num_samples=1000, num_test=1000, noise=0)
    for label in range(3):
        train, test = data.x[data.labels == label], data.x_test[data.labels_test == label]
        assert np.all(train == train[0])
        assert np.all(test == train[0])


def test_draws_are_pinned_across_machines_and_numpy_versions():
    """A change here changes every stored result that names this data set."""
    data = load_dataset("gaussian-mixture", num_samples=4, num_test=0, num_classes=3, input_dim=2, seed=0)
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
    assert (data.x.shape, data.y.shape, data.x_test.shape, data.num_outputs) == ((10_000, 1), (10_000, 1), (61, 1), 1)
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
    np.testing.assert_allclose(data.x_test[:, 0], np.linspace(-1.5 - 2.5 / 4, 1 + 2.5 / 4, 5), rtol=1e-6)
    # Left of the first point, then the line from (−1.5, 1) to (0, ½), then the line to (1, 2).
    grid = data.x_test[1:4, 0].astype(np.float64)
    np.testing.assert_allclose(data.y_test[0], 1.0)
    np.testing.assert_allclose(data.y_test[1:3, 0], 0.5 - grid[:2] / 3, rtol=1e-6)
    np.testing.assert_allclose(data.y_test[3:, 0], [0.5 + 1.5 * grid[2], 2.0], rtol=1e-6)
    assert load_dataset("points", xs=[0.5], ys=[1]).y_test.shape == (0, 1)


def test_given_points_are_text_and_independent_of_the_seed():
    spec = with_settings(
        KernelChangeSpec(),
        {"dataset.name": "points", "dataset.xs": [-1, 0.5], "dataset.ys": [1, 0], "outputs": ["tanh"]},
    )
    texts = differences(spec, KernelChangeSpec())
    assert texts["dataset.xs"] == "-1.0,0.5"
    assert spec_from_texts(texts, KernelChangeSpec()) == (spec, ())
    assert spec.model_dump(mode="json")["dataset"] == {"name": "points", "xs": [-1.0, 0.5], "ys": [1.0, 0.0]}
    with pytest.raises(InvalidSpec, match="given points are not drawn"):
        with_settings(spec, {"draws": "network and data"})
