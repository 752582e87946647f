"""Data sets that are drawn from a stated law, and points that are given."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ntk_core.data._dataset import Dataset
from ntk_core.data._info import DatasetInfo, DatasetShapes, labeled, shapes_of
from ntk_core.data._options import OPTIONS
from ntk_core.data._synthetic import (
    MIXTURE_PROVENANCE,
    POINTS_PROVENANCE,
    SINE_PROVENANCE,
    gaussian_mixture,
    given_points,
    sine,
)
from ntk_core.errors import InvalidInput, TooLarge

MAX_SYNTHETIC_VALUES = 2**27  # 512 MiB of float32 in one array


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
