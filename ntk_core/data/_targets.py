"""Targets that depend on a few directions of the inputs: networks learn these, kernels have to guess them."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import Dataset
from ntk_core.data._info import DatasetShapes, labeled, shapes_of
from ntk_core.data._laws import Drawn
from ntk_core.data._synthetic import _MEANS, _TEST, _TRAIN, stream
from ntk_core.errors import InvalidInput

Floats = NDArray[np.float64]
LAW = (
    "Synthetic: inputs and target are drawn from the law that is stated; training and test points alike. Our choice of "
    "law and sizes. No licence applies."
)
SIGNS = ("−1", "+1")


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
        for split, key in ((_TRAIN, "num_samples"), (_TEST, "num_test")):
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
        directions = stream(options["seed"], _MEANS).standard_normal(size)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        signs = np.where(np.arange(size[0]) % 2, -1.0, 1.0)
        cosines = np.clip(directions @ directions.T, -1, 1)
        angles = np.arccos(cosines)
        products = (np.sin(angles) + (math.pi - angles) * cosines) / (2 * math.pi)
        mean = signs.sum() / math.sqrt(2 * math.pi)
        deviation = math.sqrt(signs @ products @ signs - mean**2)
        return np.asarray((np.maximum(x @ directions.T, 0) @ signs - mean) / deviation)
