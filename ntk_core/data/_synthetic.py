"""Data drawn from a stated law."""

import numpy as np

from ntk_core.data._dataset import FloatArray, IntArray

MIXTURE_PROVENANCE = (
    "Synthetic Gaussian mixture: label uniform on C classes, x | y ~ N(μ_y, s²I), μ_y uniform on the sphere of radius "
    "2. Our choice: Liu, Zhu & Belkin (2020) use synthetic C-class data without a law that we could read. Short inputs "
    "keep the outputs at initialization small, and with s = 0.3 (our default) the classes hardly overlap, so that most "
    "networks reach a small training loss. No licence applies."
)

CENTER_NORM = 2.0

SINE_PROVENANCE = (
    "Synthetic curve: x uniform on [−2, 2], y = sin 2x + s ε, ε ~ N(0, 1); the test points are an even grid on "
    "[−3, 3] without noise, so that whole curves can be drawn and seen beyond the data. Our choice. No licence applies."
)
POINTS_PROVENANCE = (
    "Points given one by one; between two of them the test points lie on the line that joins them, beyond the last on "
    "a level one, evenly over a range half as long again. Our choice. No licence applies."
)
SINE_REACH, SINE_TEST_REACH = 2.0, 3.0

# One independent stream for each purpose: a change of one size leaves all other draws as they were.
_MEANS, _TRAIN, _TEST = range(3)


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """The PCG64 generator for one purpose under one seed, the same on every machine."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=purpose)))


def gaussian_mixture(
    *, num_samples: int, num_test: int, num_classes: int, input_dim: int, noise: float, seed: int
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Training and test samples of a Gaussian mixture with shared means.

    label ~ Uniform{0, …, C-1},  x | label ~ N(μ_label, s²I),  μ_c uniform on the sphere of radius 2 in R^d.

    Returns:
        x ``(n, d)`` float32, labels ``(n,)``, and the same two for the test set. The first k of n samples do not depend
        on n.
    """
    means = stream(seed, _MEANS).standard_normal((num_classes, input_dim), dtype=np.float32)
    norms = np.linalg.norm(means.astype(np.float64), axis=1, keepdims=True)
    means = (means * (CENTER_NORM / norms)).astype(np.float32)
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


def sine(
    *, num_samples: int, num_test: int, noise: float, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Samples of y = sin 2x + s ε with x ~ U[−2, 2], and an even grid on [−3, 3] with y = sin 2x.

    Returns:
        x, y ``(n, 1)`` float32, and the same two for the grid.
    """
    x = SINE_REACH * (2 * stream(seed, _TRAIN, 0).random((num_samples, 1)) - 1)
    y = np.sin(2 * x) + noise * stream(seed, _TRAIN, 1).standard_normal((num_samples, 1))
    grid = np.linspace(-SINE_TEST_REACH, SINE_TEST_REACH, num_test)[:, None]
    return tuple(array.astype(np.float32) for array in (x, y, grid, np.sin(2 * grid)))  # type: ignore[return-value]


def given_points(
    xs: tuple[float, ...], ys: tuple[float, ...], num_test: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The points (x_i, y_i) as they are given, and an even grid with the polygon through them.

    Returns:
        x, y ``(n, 1)`` float32, and the same two for the grid, from a quarter of their range before the first to a
        quarter behind the last (of one point alone: one to either side).
    """
    low, high = min(xs), max(xs)
    beyond = (high - low) / 4 or 1.0
    grid = np.linspace(low - beyond, high + beyond, num_test)
    order = np.argsort(xs, kind="stable")
    heights = np.interp(grid, np.asarray(xs)[order], np.asarray(ys)[order])
    columns = (np.asarray(each, np.float32)[:, None] for each in (xs, ys, grid, heights))
    return tuple(columns)  # type: ignore[return-value]
