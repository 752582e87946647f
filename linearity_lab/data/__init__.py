"""Data sets as frozen NumPy arrays, without JAX."""

from linearity_lab.data._dataset import Dataset, data_fingerprint
from linearity_lab.data._info import DatasetInfo, DatasetShapes
from linearity_lab.data._options import OPTIONS, Option
from linearity_lab.data._registry import (
    DATASETS,
    dataset_info,
    dataset_names,
    dataset_options,
    dataset_shapes,
    load_dataset,
)
