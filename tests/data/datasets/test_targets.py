"""Targets of a few directions: distributions, Bayes error, and allowed options."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.polynomial import hermite_e

from ntk_core.data import DATASETS, dataset_options, load_dataset
from ntk_core.errors import InvalidInput

NAMES = ("parity", "staircase", "single-index", "multi-index", "teacher")
N = 20_000


def _least(name: str, **options: object) -> tuple[float, float]:
    return DATASETS[name].least_risk(dataset_options(name, **options))


@pytest.mark.parametrize("name", NAMES)
def test_targets_are_standardized(name):
    data = load_dataset(name, num_samples=N, num_test=7, input_dim=6, targets="plus-minus") if name == "parity" else (
        load_dataset(name, num_samples=N, num_test=7, input_dim=6)
    )  # fmt: skip
    y = data.y[:, 0].astype(float)
    for moment, expected in ((y, 0.0), (y**2, 1.0)):
        error = moment.std() / math.sqrt(N)
        assert abs(moment.mean() - expected) <= 5 * error + 1e-6
    on_bits = name in ("parity", "staircase")
    assert set(np.unique(data.x)) == {-1, 1} if on_bits else abs(data.x.std() - 1) < 0.02


def test_parity_noise_flips_at_the_bayes_error():
    clean = load_dataset("parity", num_samples=50, num_test=0, input_dim=5, num_relevant=3)
    assert ((clean.x[:, :3].prod(axis=1) > 0) == clean.labels).all()
    assert clean.class_names == ("−1", "+1")
    assert _least("parity") == (0, 0)
    noisy = load_dataset("parity", num_samples=N, num_test=0, input_dim=5, num_relevant=3, noise=1.0)
    flips, loss = _least("parity", input_dim=5, num_relevant=3, noise=1.0)
    assert flips == pytest.approx(0.158655, abs=1e-6)  # Φ(−1)
    found = np.mean((noisy.x[:, :3].prod(axis=1) > 0) != noisy.labels)
    assert abs(found - flips) < 5 * math.sqrt(flips * (1 - flips) / N)
    # Among all multiples of the product, the factor (1 − 2p) has the least square loss.
    y, product = 2.0 * noisy.labels - 1, noisy.x[:, :3].prod(axis=1)
    least = np.mean((y - (1 - 2 * flips) * product) ** 2) / 2
    assert least == pytest.approx(loss, abs=5 * np.std((y - (1 - 2 * flips) * product) ** 2 / 2) / math.sqrt(N))


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
    noisy = load_dataset("multi-index", num_samples=N, num_test=0, input_dim=5, num_relevant=3, noise=0.5)
    left = noisy.y[:, 0] - noisy.x[:, :3].prod(axis=1)
    assert np.mean(left**2) / 2 == pytest.approx(_least("multi-index", noise=0.5)[1], rel=5 * math.sqrt(2 / N))
    assert math.isnan(_least("multi-index", noise=0.5)[0])
    assert all(math.isnan(each) for each in _least("mnist"))


def test_only_a_teacher_may_be_wider_than_its_inputs():
    assert load_dataset("teacher", num_samples=3, num_test=0, input_dim=2, num_relevant=9).y.shape == (3, 1)
    with pytest.raises(InvalidInput, match="num_relevant: 9 cannot be used; use at most 2"):
        load_dataset("parity", input_dim=2, num_relevant=9)
