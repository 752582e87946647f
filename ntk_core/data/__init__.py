"""Data sets as frozen NumPy arrays, without JAX."""

from ntk_core.data._dataset import Dataset, data_fingerprint
from ntk_core.data._info import DatasetInfo, DatasetShapes
from ntk_core.data._options import OPTIONS, Option
from ntk_core.data._registry import (
    DATASETS,
    dataset_info,
    dataset_names,
    dataset_options,
    dataset_shapes,
    load_dataset,
)
