"""Data sets that are drawn from a stated law."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ntk_core.data._dataset import Dataset
from ntk_core.data._info import DatasetInfo, DatasetShapes, labeled, shapes_of
from ntk_core.data._synthetic import MIXTURE_PROVENANCE, SINE_PROVENANCE, gaussian_mixture, sine
from ntk_core.errors import TooLarge

MAX_SYNTHETIC_VALUES = 2**27  # 512 MiB of float32 in one array


class Mixture(DatasetInfo):
    """Round clouds, one for each class."""

    def shapes(self, options: Mapping[str, Any]) -> DatasetShapes:
        names = tuple(f"class {index}" for index in range(options["num_classes"]))
        return shapes_of(options, (options["input_dim"],), names)

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse also what would not fit into 512 MiB.

        Raises:
            TooLarge: then.
        """
        super().check(options)
        per_sample = options["input_dim"]
        for key in ("num_samples", "num_test"):
            if options[key] * per_sample > MAX_SYNTHETIC_VALUES:
                nearest = MAX_SYNTHETIC_VALUES // per_sample
                required, limit = 4 * options[key] * per_sample, 4 * MAX_SYNTHETIC_VALUES
                raise TooLarge(key, options[key], required=required, limit=limit, unit="bytes", nearest=nearest)

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
