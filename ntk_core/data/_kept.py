"""Uploaded data, from where they are kept to a data set: subset, test points, targets."""

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import Dataset
from ntk_core.data._info import DatasetInfo, DatasetShapes, labeled, shapes_of, without_classes
from ntk_core.data._options import Options
from ntk_core.data._transforms import balanced_subset, standardize_inputs
from ntk_core.data.uploads import Cleaned, read_upload, upload_shapes

_TRAIN, _TEST = range(2)


class Kept(DatasetInfo):
    """Data by their SHA-256; test points are those that are not trained on."""

    def shapes(self, options: Options) -> DatasetShapes:
        """Sizes for checked options."""
        kept = upload_shapes(options["digest"])
        available = (kept.num_samples, max(0, kept.num_samples - options["num_samples"]))
        return shapes_of(options, kept.input_shape, kept.class_names, available, kept.num_targets)

    def load(self, options: Options) -> Dataset:
        """Training points drawn by the seed, as many of each class as there are, and test points from the others."""
        kept = read_upload(options["digest"])
        train, test = _split(kept, options["num_samples"], options["num_test"], options["seed"])
        x, x_test = kept.x[train], kept.x[test]
        origin = f"Uploaded data, SHA-256 {options['digest']}; origin and licence are for the owner to state."
        if kept.class_names:
            return labeled(
                self.name, options, kept.class_names, (x, kept.labels[train], x_test, kept.labels[test]), origin
            )
        x, x_test = standardize_inputs(x, x_test, options["standardize"])
        return without_classes(self.name, x, kept.targets[train], x_test, kept.targets[test], origin)


def _split(kept: Cleaned, num_samples: int, num_test: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of the training points, and of test points among all others."""
    labels = kept.labels if kept.class_names else np.zeros(len(kept.x), np.int64)
    classes = list(range(max(1, len(kept.class_names))))
    train = balanced_subset(labels, classes, num_samples, seed, _TRAIN)
    left = np.setdiff1d(np.arange(len(labels)), train)
    if not num_test:
        return train, left[:0]
    return train, left[balanced_subset(labels[left], classes, num_test, seed, _TEST)]
