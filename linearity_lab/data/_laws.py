"""Synthetic data sets, given points, and uploaded data.

Networks can learn the directions of targets with few directions; kernels cannot.
"""

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from linearity_lab.data._dataset import MEANS, TRAIN, balanced_subset, uniform_integers
from linearity_lab.data._info import DatasetInfo, DatasetShapes, Drawn, Samples, shapes_of
from linearity_lab.data._options import OPTIONS, Options
from linearity_lab.data.uploads import read_upload, upload_shapes
from ntk_core.errors import InvalidInput
from ntk_core.streams import stream

CENTER_NORM = 2.0

SINE_REACH = 2.0
SINE_TEST_REACH = 3.0
Floats = NDArray[np.float64]
LAW = (
    "Synthetic: inputs and target are drawn from the law that is stated; training and test points "
    "alike. Our choice of law and sizes. No licence applies."
)
SIGNS = ("−1", "+1")


class Mixture(Drawn):
    """A mixture of normal classes.

    Labels c are uniform on the classes, x | c ~ N(μ_c, s²I), μ_c uniform on the sphere of radius 2.
    """

    def shapes(self, options: Options) -> DatasetShapes:
        names = tuple(f"class {index}" for index in range(options["num_classes"]))
        return shapes_of(options, (options["input_dim"],), names)

    def draw(self, options: Options, num: int, split: int) -> Samples:
        size = (options["num_classes"], options["input_dim"])
        seed = options["seed"]
        means = stream(seed, MEANS).standard_normal(size, dtype=np.float32)
        norms = np.linalg.norm(means.astype(np.float64), axis=1, keepdims=True)
        means = (means * (CENTER_NORM / norms)).astype(np.float32)
        labels = uniform_integers(stream(seed, split, 0), (num,), len(means))
        x = stream(seed, split, 1).standard_normal((num, size[1]), dtype=np.float32)
        x *= np.float32(options["noise"])
        x += means[labels]
        return x, labels


class Curve(DatasetInfo):
    """One input and one output, no classes."""

    def shapes(self, options: Options) -> DatasetShapes:
        return shapes_of(options, (1,), ())

    def samples(self, options: Options) -> tuple[Samples, Samples]:
        """Draw x uniform on [−2, 2] and y = sin 2x + s ε.

        Test points are an even grid on [−3, 3] without noise.
        """
        n = options["num_samples"]
        seed = options["seed"]
        x = SINE_REACH * (2 * stream(seed, TRAIN, 0).random((n, 1)) - 1)
        y = np.sin(2 * x) + options["noise"] * stream(seed, TRAIN, 1).standard_normal((n, 1))
        grid = np.linspace(-SINE_TEST_REACH, SINE_TEST_REACH, options["num_test"])[:, None]
        return (x, y), (grid, np.sin(2 * grid))


class GivenPoints(DatasetInfo):
    """Given points, one input and one output."""

    def shapes(self, options: Options) -> DatasetShapes:
        count = len(options["xs"])
        return shapes_of(
            {**options, "num_samples": count}, (1,), (), (count, int(OPTIONS["num_test"].maximum))
        )

    def check(self, options: Options) -> None:
        """Refuse unpaired numbers."""
        xs = options["xs"]
        ys = options["ys"]
        if len(ys) != len(xs):
            raise InvalidInput("ys", f"{len(ys)} numbers", f"{len(xs)}, one for each x")

    def samples(self, options: Options) -> tuple[Samples, Samples]:
        """Return the points, and their polygon on an even grid.

        The grid extends by a quarter of their range at both ends.
        """
        xs = np.asarray(options["xs"])
        ys = np.asarray(options["ys"])
        beyond = (xs.max() - xs.min()) / 4 or 1.0
        grid = np.linspace(xs.min() - beyond, xs.max() + beyond, options["num_test"])
        order = np.argsort(xs, kind="stable")
        heights = np.interp(grid, xs[order], ys[order])
        return (xs[:, None], ys[:, None]), (grid[:, None], heights[:, None])


class Kept(DatasetInfo):
    """Uploaded data by SHA-256; test points are samples not trained on."""

    law = "Uploaded data, SHA-256 {digest}; origin and licence are for the owner to state."

    def shapes(self, options: Options) -> DatasetShapes:
        kept = upload_shapes(options["digest"])
        available = (kept.num_samples, max(0, kept.num_samples - options["num_samples"]))
        return shapes_of(options, kept.input_shape, kept.class_names, available, kept.num_targets)

    def samples(self, options: Options) -> tuple[Samples, Samples]:
        """Draw balanced training points by the seed, and test points from the remaining ones."""
        kept = read_upload(options["digest"])
        seed = options["seed"]
        labels = kept.labels if kept.class_names else np.zeros(len(kept.x), np.int64)
        classes = list(range(max(1, len(kept.class_names))))
        y = kept.labels if kept.class_names else kept.targets
        train = balanced_subset(labels, classes, options["num_samples"], seed, 0)
        test = np.setdiff1d(np.arange(len(labels)), train)
        test = test[balanced_subset(labels[test], classes, options["num_test"], seed, 1)]
        return (kept.x[train], y[train]), (kept.x[test], y[test])


class FewDirections(Drawn):
    """y = target(x) + s ε, ε ~ N(0, 1), with E target = 0 and E target² = 1.

    x ~ N(0, I_d), or uniform on {±1}^d.

    For Gaussian inputs directions are coordinate axes, without loss of generality.
    """

    law = LAW
    on_bits = False
    is_within_inputs = True  # whether the directions are among those of the inputs

    @abstractmethod
    def target(self, x: Floats, options: Options) -> Floats:
        """The target without noise, (n,), at inputs (n, d)."""

    def shapes(self, options: Options) -> DatasetShapes:
        return shapes_of(options, (options["input_dim"],), ())

    def check(self, options: Options) -> None:
        """Also refuse more directions than input dimensions."""
        super().check(options)
        if self.is_within_inputs and options.get("num_relevant", 1) > options["input_dim"]:
            raise InvalidInput(
                "num_relevant",
                options["num_relevant"],
                f"at most {options['input_dim']}, the input dimension",
            )

    def least_risk(self, options: Options) -> tuple[float, float]:
        """Only the noise remains: s²/2."""
        return math.nan, options["noise"] ** 2 / 2

    def draw(self, options: Options, num: int, split: int) -> Samples:
        size = (num, options["input_dim"])
        inputs = stream(options["seed"], split, 1)
        drawn = (
            np.where(inputs.random(size) < 0.5, -1.0, 1.0)
            if self.on_bits
            else inputs.standard_normal(size)
        )
        x = drawn.astype(np.float32)
        noise = options["noise"] * stream(options["seed"], split, 0).standard_normal(num)
        return x, (self.target(x.astype(np.float64), options) + noise)[:, None]


class Parity(FewDirections):
    """Two classes, the sign of x₁ … x_k + s ε.

    Below degree k no polynomial is correlated with it.
    """

    on_bits = True

    def shapes(self, options: Options) -> DatasetShapes:
        return shapes_of(options, (options["input_dim"],), SIGNS)

    def target(self, x: Floats, options: Options) -> Floats:
        return np.prod(x[:, : options["num_relevant"]], axis=1)

    def least_risk(self, options: Options) -> tuple[float, float]:
        """The noise flips a share p = Φ(−1/s).

        The error is p, and the square loss of one column ±1 is 2 p (1 − p).
        """
        flips = math.erfc(1 / (options["noise"] * math.sqrt(2))) / 2 if options["noise"] else 0.0
        return flips, 2 * flips * (1 - flips)

    def draw(self, options: Options, num: int, split: int) -> Samples:
        x, y = super().draw(options, num, split)
        return x, (y[:, 0] > 0).astype(np.int64)


class Staircase(FewDirections):
    """(x₁ + x₁x₂ + … + x₁⋯x_k) / √k.

    Each term leads to the next (Abbe, Boix-Adserà & Misiakiewicz 2022).
    """

    on_bits = True

    def target(self, x: Floats, options: Options) -> Floats:
        steps = options["num_relevant"]
        return np.asarray(np.cumprod(x[:, :steps], axis=1).sum(axis=1) / math.sqrt(steps))


class SingleIndex(FewDirections):
    """He_q(x₁) / √q!, the Hermite polynomial of degree q of one direction; q = 1 is linear."""

    def target(self, x: Floats, options: Options) -> Floats:
        before = np.zeros(len(x))
        now = np.ones(len(x))
        for degree in range(options["degree"]):
            # He_(q+1) = x He_q − q He_(q−1), each divided by √q!.
            following = (x[:, 0] * now - math.sqrt(degree) * before) / math.sqrt(degree + 1)
            before = now
            now = following
        return now


class MultiIndex(FewDirections):
    """x₁ ⋯ x_k, a product of k directions."""

    def target(self, x: Floats, options: Options) -> Floats:
        return np.prod(x[:, : options["num_relevant"]], axis=1)


class Teacher(FewDirections):
    """Σ_j ± max(⟨u_j, x⟩, 0) of k neurons with alternating signs, standardized.

    The u_j are uniform on the sphere. Mean and deviation follow from E max(u·x, 0) max(v·x, 0) =
    (sin θ + (π − θ) cos θ) / 2π at the angle θ (Cho & Saul 2009).
    """

    is_within_inputs = False

    def target(self, x: Floats, options: Options) -> Floats:
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
