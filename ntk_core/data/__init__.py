"""Data sets: synthetic laws and image sets as frozen NumPy arrays, with their origin. No JAX here."""

from ntk_core.data._dataset import Dataset, data_fingerprint
from ntk_core.data._load import load_dataset
from ntk_core.data._options import Option
from ntk_core.data._registry import (
    DatasetInfo,
    DatasetShapes,
    dataset_info,
    dataset_names,
    dataset_options,
    dataset_shapes,
)
from ntk_core.data._synthetic import stream

__all__ = [
    "Dataset",
    "DatasetInfo",
    "DatasetShapes",
    "Option",
    "data_fingerprint",
    "dataset_info",
    "dataset_names",
    "dataset_options",
    "dataset_shapes",
    "load_dataset",
    "stream",
]
