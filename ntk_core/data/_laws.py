"""Data sets that are drawn from a stated law, and points that are given.

Of the targets of few directions, networks learn the directions, and kernels have to guess them.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import MEANS, TEST, TRAIN, Dataset, FloatArray, IntArray, stream
from ntk_core.data._info import DatasetInfo, DatasetShapes, labeled, shapes_of
from ntk_core.data._options import OPTIONS
from ntk_core.errors import InvalidInput, TooLarge

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
MAX_SYNTHETIC_VALUES = 2**27  # 512 MiB of float32 in one array
Floats = NDArray[np.float64]
LAW = (
    "Synthetic: inputs and target are drawn from the law that is stated; training and test points alike. Our choice of "
    "law and sizes. No licence applies."
)
SIGNS = ("−1", "+1")


def check_room(options: Mapping[str, Any], per_sample: int) -> None:
    """Refuse samples of so many numbers each that would not fit into 512 MiB.

    Raises:
        TooLarge: then.
    """
    for key in ("num_samples", "num_test"):
        if options[key] * per_sample > MAX_SYNTHETIC_VALUES:
            nearest = MAX_SYNTHETIC_VALUES // per_sample
            required, limit = 4 * options[key] * per_sample, 4 * MAX_SYNTHETIC_VALUES
            raise TooLarge(key, options[key], required=required, limit=limit, unit="bytes", nearest=nearest)


class Drawn(DatasetInfo):
    """Inputs of a chosen dimension, drawn from a law."""

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse also what would not fit into 512 MiB.

        Raises:
            TooLarge: then.
        """
        super().check(options)
        check_room(options, options["input_dim"])


class Mixture(Drawn):
    """Round clouds, one for each class."""

    def shapes(self, options: Mapping[str, Any]) -> DatasetShapes:
        names = tuple(f"class {index}" for index in range(options["num_classes"]))
        return shapes_of(options, (options["input_dim"],), names)

    def load(self, options: Mapping[str, Any]) -> Dataset:
        law = ("num_samples", "num_test", "num_classes", "input_dim", "noise", "seed")
        samples = gaussian_mixture(**{key: options[key] for key in law})
        return labeled(self.name, options, self.shapes(options).class_names, samples, MIXTURE_PROVENANCE)


class Curve(DatasetInfo):
    """One input and one output, no classes."""

    def shapes(self, options: Mapping[str, Any]) -> DatasetShapes:
        return shapes_of(options, (1,), ())

    def load(self, options: Mapping[str, Any]) -> Dataset:
        x, y, x_test, y_test = sine(**options)
        none = np.zeros(0, np.int64)
        return Dataset(self.name, x, y, none, x_test, y_test, none, (), SINE_PROVENANCE)


class Points(DatasetInfo):
    """One input and one output, each point given; nothing is drawn."""

    def shapes(self, options: Mapping[str, Any]) -> DatasetShapes:
        count = len(options["xs"])
        return shapes_of({**options, "num_samples": count}, (1,), (), (count, int(OPTIONS["num_test"].maximum)))

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse what are no pairs.

        Raises:
            InvalidInput: then.
        """
        xs, ys = options["xs"], options["ys"]
        if len(ys) != len(xs):
            raise InvalidInput("ys", f"{len(ys)} numbers", f"{len(xs)}, one for each x")

    def load(self, options: Mapping[str, Any]) -> Dataset:
        x, y, x_test, y_test = given_points(**options)
        none = np.zeros(0, np.int64)
        return Dataset(self.name, x, y, none, x_test, y_test, none, (), POINTS_PROVENANCE)


def gaussian_mixture(
    *, num_samples: int, num_test: int, num_classes: int, input_dim: int, noise: float, seed: int
) -> tuple[FloatArray, IntArray, FloatArray, IntArray]:
    """Training and test samples of a Gaussian mixture with shared means.

    label ~ Uniform{0, …, C-1},  x | label ~ N(μ_label, s²I),  μ_c uniform on the sphere of radius 2 in R^d.

    Returns:
        x ``(n, d)`` float32, labels ``(n,)``, and the same two for the test set. The first k of n samples do not depend
        on n.
    """
    means = stream(seed, MEANS).standard_normal((num_classes, input_dim), dtype=np.float32)
    norms = np.linalg.norm(means.astype(np.float64), axis=1, keepdims=True)
    means = (means * (CENTER_NORM / norms)).astype(np.float32)
    train = _mixture_samples(means, num_samples, noise, seed, TRAIN)
    test = _mixture_samples(means, num_test, noise, seed, TEST)
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
    x = SINE_REACH * (2 * stream(seed, TRAIN, 0).random((num_samples, 1)) - 1)
    y = np.sin(2 * x) + noise * stream(seed, TRAIN, 1).standard_normal((num_samples, 1))
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


class FewDirections(Drawn):
    """y = target(x) + s ε, ε ~ N(0, 1), with E target = 0 and E target² = 1, at x ~ N(0, I_d) or uniform on {±1}^d.

    Directions are coordinate axes where the inputs are Gaussian: nothing is lost, as no network here knows them.
    """

    on_bits = False
    is_within_inputs = True  # whether the directions are among those of the inputs

    @abstractmethod
    def target(self, x: Floats, options: Mapping[str, Any]) -> Floats:
        """The target without noise, (n,), at inputs (n, d)."""

    def shapes(self, options: Mapping[str, Any]) -> DatasetShapes:
        return shapes_of(options, (options["input_dim"],), ())

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse also more directions than the inputs have.

        Raises:
            InvalidInput: then.
        """
        super().check(options)
        if self.is_within_inputs and options.get("num_relevant", 1) > options["input_dim"]:
            raise InvalidInput(
                "num_relevant", options["num_relevant"], f"at most {options['input_dim']}, the input dimension"
            )

    def least_risk(self, options: Mapping[str, Any]) -> tuple[float, float]:
        """The noise is left over: s²/2."""
        return math.nan, options["noise"] ** 2 / 2

    def load(self, options: Mapping[str, Any]) -> Dataset:
        none = np.zeros(0, np.int64)
        (x, y), (x_test, y_test) = self._samples(options)
        columns = (each.astype(np.float32)[:, None] for each in (y, y_test))
        return Dataset(self.name, x, next(columns), none, x_test, next(columns), none, (), LAW)

    def _samples(self, options: Mapping[str, Any]) -> list[tuple[NDArray[np.float32], Floats]]:
        """(x, y) to train and to test; the first k of n samples do not depend on n."""
        found = []
        for split, key in ((TRAIN, "num_samples"), (TEST, "num_test")):
            size, inputs = (options[key], options["input_dim"]), stream(options["seed"], split, 1)
            drawn = np.where(inputs.random(size) < 0.5, -1.0, 1.0) if self.on_bits else inputs.standard_normal(size)
            x = drawn.astype(np.float32)
            noise = options["noise"] * stream(options["seed"], split, 0).standard_normal(options[key])
            found.append((x, self.target(x.astype(np.float64), options) + noise))
        return found


class Parity(FewDirections):
    """Two classes, the sign of x₁ … x_k + s ε; below degree k no polynomial is correlated with it."""

    on_bits = True

    def shapes(self, options: Mapping[str, Any]) -> DatasetShapes:
        return shapes_of(options, (options["input_dim"],), SIGNS)

    def target(self, x: Floats, options: Mapping[str, Any]) -> Floats:
        return np.prod(x[:, : options["num_relevant"]], axis=1)

    def least_risk(self, options: Mapping[str, Any]) -> tuple[float, float]:
        """The noise flips a share p = Φ(−1/s): error p, and with one column ±1 the square loss 2 p (1 − p)."""
        flips = math.erfc(1 / (options["noise"] * math.sqrt(2))) / 2 if options["noise"] else 0.0
        return flips, 2 * flips * (1 - flips)

    def load(self, options: Mapping[str, Any]) -> Dataset:
        (x, y), (x_test, y_test) = self._samples(options)
        samples = (x, (y > 0).astype(np.int64), x_test, (y_test > 0).astype(np.int64))
        return labeled(self.name, options, SIGNS, samples, LAW)


class Staircase(FewDirections):
    """(x₁ + x₁x₂ + … + x₁⋯x_k) / √k: each term leads to the next (Abbe, Boix-Adserà & Misiakiewicz 2022)."""

    on_bits = True

    def target(self, x: Floats, options: Mapping[str, Any]) -> Floats:
        steps = options["num_relevant"]
        return np.asarray(np.cumprod(x[:, :steps], axis=1).sum(axis=1) / math.sqrt(steps))


class SingleIndex(FewDirections):
    """He_q(x₁) / √q!, the Hermite polynomial of degree q of one direction; q = 1 is linear."""

    def target(self, x: Floats, options: Mapping[str, Any]) -> Floats:
        before, now = np.zeros(len(x)), np.ones(len(x))
        for degree in range(options["degree"]):
            before, now = now, (x[:, 0] * now - math.sqrt(degree) * before) / math.sqrt(degree + 1)
        return now


class MultiIndex(FewDirections):
    """x₁ ⋯ x_k, a product of k directions."""

    def target(self, x: Floats, options: Mapping[str, Any]) -> Floats:
        return np.prod(x[:, : options["num_relevant"]], axis=1)


class Teacher(FewDirections):
    """Σ_j ± max(⟨u_j, x⟩, 0) of k neurons with signs in turn and u_j uniform on the sphere, less its mean, over its
    deviation: E max(u·x, 0) max(v·x, 0) = (sin θ + (π − θ) cos θ) / 2π at the angle θ (Cho & Saul 2009)."""

    is_within_inputs = False

    def target(self, x: Floats, options: Mapping[str, Any]) -> Floats:
        size = (options["num_relevant"], options["input_dim"])
        directions = stream(options["seed"], MEANS).standard_normal(size)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        signs = np.where(np.arange(size[0]) % 2, -1.0, 1.0)
        cosines = np.clip(directions @ directions.T, -1, 1)
        angles = np.arccos(cosines)
        products = (np.sin(angles) + (math.pi - angles) * cosines) / (2 * math.pi)
        mean = signs.sum() / math.sqrt(2 * math.pi)
        deviation = math.sqrt(signs @ products @ signs - mean**2)
        return np.asarray((np.maximum(x @ directions.T, 0) @ signs - mean) / deviation)
