"""Data that somebody brought, from where they are kept to a data set: subset, test points, targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ntk_core.data._dataset import Dataset
from ntk_core.data._transforms import balanced_subset, encode_targets, standardize_inputs
from ntk_core.data.uploads import Cleaned, read_upload

_TRAIN, _TEST = range(2)


def kept_dataset(checked: Mapping[str, Any]) -> Dataset:
    """Training points drawn by the seed, as many of each class as there are, and test points from the others.

    Raises:
        MissingUpload: the data are not, or no longer, kept here.
    """
    kept = read_upload(checked["digest"])
    train, test = _split(kept, checked["num_samples"], checked["num_test"], checked["seed"])
    x, x_test = standardize_inputs(kept.x[train], kept.x[test], checked["standardize"])
    if kept.class_names:
        labels, labels_test = kept.labels[train], kept.labels[test]
        num_classes, coding = len(kept.class_names), checked["targets"]
        y, y_test = (encode_targets(each, num_classes, coding) for each in (labels, labels_test))
    else:
        labels = labels_test = np.zeros(0, np.int64)
        y, y_test = kept.targets[train], kept.targets[test]
    return Dataset(
        name="upload",
        x=x,
        y=y,
        labels=labels,
        x_test=x_test,
        y_test=y_test,
        labels_test=labels_test,
        class_names=kept.class_names,
        provenance=f"Uploaded data, SHA-256 {checked['digest']}; origin and licence are for the owner to state.",
    )


def _split(kept: Cleaned, num_samples: int, num_test: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of the training points, and of test points among all others."""
    labels = kept.labels if kept.class_names else np.zeros(len(kept.x), np.int64)
    classes = list(range(max(1, len(kept.class_names))))
    train = balanced_subset(labels, classes, num_samples, seed, _TRAIN)
    left = np.setdiff1d(np.arange(len(labels)), train)
    if not num_test:
        return train, left[:0]
    return train, left[balanced_subset(labels[left], classes, num_test, seed, _TEST)]
