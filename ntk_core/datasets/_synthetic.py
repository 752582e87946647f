"""Data drawn from a stated law."""

from __future__ import annotations

import numpy as np

from ntk_core.datasets._dataset import FloatArray, IntArray

MIXTURE_PROVENANCE = (
    "Synthetic Gaussian mixture: label uniform on C classes, x | y ~ N(μ_y, s²I), μ_y ~ N(0, I). Our choice: Liu, Zhu "
    "& Belkin (2020) use synthetic C-class data without a law that we could read. With C = 3, d = 10 and s = 1 (our "
    "choice) the best possible classifier is right about 95 % of the time, so the classes can be learned but overlap. "
    "No licence applies."
)

# One independent stream for each purpose: a change of one size leaves all other draws as they were.
_MEANS, _TRAIN, _TEST = range(3)


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """The PCG64 generator for one purpose under one seed, the same on every machine."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=purpose)))


def gaussian_mixture(
    *, num_samples: int, num_test: int, num_classes: int, input_dim: int, noise: float, seed: int
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Training and test samples of a Gaussian mixture with shared means.

    label ~ Uniform{0, …, C-1},  x | label ~ N(μ_label, s²I),  μ_c ~ N(0, I).

    Returns:
        x ``(n, d)`` float32, labels ``(n,)``, and the same two for the test set. The first k of n samples do not depend
        on n.
    """
    means = stream(seed, _MEANS).standard_normal((num_classes, input_dim), dtype=np.float32)
    train = _mixture_samples(means, num_samples, noise, seed, _TRAIN)
    test = _mixture_samples(means, num_test, noise, seed, _TEST)
    return *train, *test


def _mixture_samples(means: FloatArray, n: int, noise: float, seed: int, split: int) -> tuple[FloatArray, IntArray]:
    # floor(C·u) instead of Generator.integers, whose algorithm may change between NumPy versions.
    labels = np.floor(len(means) * stream(seed, split, 0).random(n)).astype(np.int64)
    x = stream(seed, split, 1).standard_normal((n, means.shape[1]), dtype=np.float32)
    x *= np.float32(noise)
    x += means[labels]
    return x, labels
