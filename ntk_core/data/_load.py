"""``load_dataset``: checked options in, a frozen ``Dataset`` out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ntk_core.data._dataset import Dataset
from ntk_core.data._images import image_provenance, load_images
from ntk_core.data._kept import kept_dataset
from ntk_core.data._registry import UPLOAD, dataset_info, dataset_options, dataset_shapes
from ntk_core.data._synthetic import MIXTURE_PROVENANCE, SINE_PROVENANCE, gaussian_mixture, sine
from ntk_core.data._transforms import encode_targets, standardize_inputs


def load_dataset(name: str, **options: Any) -> Dataset:
    """The data set ``name``: "gaussian-mixture", "sine", "mnist", "fashion-mnist", "cifar2", "digits", or "upload".

    Every option with its bounds and default is in ``dataset_info(name).options``. For all sets: ``num_samples``,
    ``num_test`` and ``seed``; for "sine" (one input, one output, no classes) also ``noise``. For sets with classes:
    ``standardize`` ("raw", "unit-norm", "standard") and ``targets`` ("one-hot" → y (n, C);
    "plus-minus" for two classes → y (n, 1), −1 for the first). The mixture has ``num_classes``, ``input_dim`` and
    ``noise``; the image sets have ``classes`` (names or indices, balanced), ``source`` ("shipped" or "full"),
    ``flatten``, and for "cifar2" ``resolution`` (8 or 32). Data of one's own, "upload", have the ``digest`` that
    :func:`ntk_core.data.uploads.keep_upload` gave them; their test points are samples that are not trained on.

    Returns:
        Read-only float32 arrays; images are (n, height, width, channels). Equal options give equal data on every
        machine. A smaller ``num_samples`` draws a subset of the samples of a larger one.

    Raises:
        InvalidInput: unknown name or option, a value outside its bounds, more samples than there are, or a full set
            that is missing or not the original.
        MissingUpload: data of this digest are not, or no longer, kept here.
        TooLarge: synthetic data beyond 512 MiB.

    Example:
        >>> data = load_dataset("gaussian-mixture", num_samples=60, num_classes=3, input_dim=10)
        >>> data.x.shape, data.y.shape
        ((60, 10), (60, 3))
    """
    checked = dataset_options(name, **options)
    if name == "sine":
        return _curve(checked)
    if name == UPLOAD:
        return kept_dataset(checked)
    shapes = dataset_shapes(name, **checked)
    if name == "gaussian-mixture":
        law = ("num_samples", "num_test", "num_classes", "input_dim", "noise", "seed")
        x, labels, x_test, labels_test = gaussian_mixture(**{key: checked[key] for key in law})
        provenance = MIXTURE_PROVENANCE
    else:
        all_names = dataset_info(name).class_names
        class_indices = [all_names.index(class_name) for class_name in shapes.class_names]
        x, labels, x_test, labels_test = load_images(name, checked, class_indices)
        x, x_test = x.reshape(-1, *shapes.input_shape), x_test.reshape(-1, *shapes.input_shape)
        provenance = image_provenance(name, checked)
    x, x_test = standardize_inputs(x, x_test, checked["standardize"])
    return Dataset(
        name=name,
        x=x,
        y=encode_targets(labels, len(shapes.class_names), checked["targets"]),
        labels=labels,
        x_test=x_test,
        y_test=encode_targets(labels_test, len(shapes.class_names), checked["targets"]),
        labels_test=labels_test,
        class_names=shapes.class_names,
        provenance=provenance,
    )


def _curve(checked: dict[str, Any]) -> Dataset:
    x, y, x_test, y_test = sine(**checked)
    none = np.zeros(0, np.int64)
    return Dataset("sine", x, y, none, x_test, y_test, none, (), SINE_PROVENANCE)
