"""Data sets of ``datasets.toml``, and ``load_dataset``.

Options and shapes are known without reading data.
"""

from types import ModuleType
from typing import Any

from linearity_lab.data import _images, _sequences
from linearity_lab.data import _laws as _laws_module
from linearity_lab.data._dataset import TABLE, Dataset
from linearity_lab.data._info import DatasetInfo, DatasetShapes
from ntk_core.errors import InvalidInput
from ntk_core.terms import table


def _laws(*modules: ModuleType) -> dict[str, type[DatasetInfo]]:
    """Return the classes of these modules that draw or read data, by name."""
    found = {}
    for module in modules:
        for name, each in vars(module).items():
            if isinstance(each, type) and issubclass(each, DatasetInfo):
                found[name] = each
    return found


_LAWS = _laws(_laws_module, _sequences, _images)


def _dataset(name: str, law: str, **entry: Any) -> DatasetInfo:
    return _LAWS[law](name, **entry)


DATASETS = table(*(_dataset(name, **entry) for name, entry in TABLE["datasets"].items()))


def dataset_names() -> tuple[str, ...]:
    """Return the names of all data sets."""
    return tuple(DATASETS)


def dataset_info(name: str) -> DatasetInfo:
    """Return title, classes and options of a data set.

    Raises:
        InvalidInput: for an unknown name, with all names.
    """
    if not isinstance(name, str) or name not in DATASETS:
        raise InvalidInput("name", name, ", ".join(DATASETS))
    return DATASETS[name]


def dataset_options(name: str, **options: object) -> dict[str, Any]:
    """Return all options with defaults in canonical form and order.

    So equal requests give equal dictionaries.

    Raises:
        InvalidInput: for an unknown name or option, a value out of bounds, or
            contradictory options.
        MissingUpload: if uploaded data are not stored here.
        TooLarge: for synthetic data beyond 512 MiB.
    """
    info = dataset_info(name)
    for given in options:
        info.option(given)
    checked = {
        option.name: option.check(options.get(option.name, option.default))
        for option in info.options
    }
    info.check(checked)
    return checked


def dataset_shapes(name: str, **options: object) -> DatasetShapes:
    """Return the shapes of a data set without loading it.

    Raises:
        InvalidInput: as ``dataset_options``.
    """
    return dataset_info(name).shapes(dataset_options(name, **options))


def load_dataset(name: str, **options: object) -> Dataset:
    """Load a data set by name.

    Name, options → (x, y), such as "gaussian-mixture", "sine", "parity", "mnist", or "upload" for
    your own data; ``dataset_names()`` lists all.

    Every option with its bounds and default is in ``dataset_info(name).options``. For all sets:
    ``num_samples``, ``num_test`` and ``seed``; for "sine" (one input, one output, no classes) also
    ``noise``. "points" have ``xs`` and ``ys``, up to 30 numbers each, instead of ``num_samples``
    and ``seed``. For sets with classes: ``standardize`` ("raw", "unit-norm", "standard",
    "centered") and ``targets`` ("one-hot" → y (n, C); "plus-minus" for two classes → y (n, 1), −1
    for the first). The mixture has ``num_classes``, ``input_dim`` and ``noise``; the targets of few
    directions ``input_dim``, ``noise``, and ``num_relevant`` ("single-index": ``degree``); the
    image sets have ``classes`` (names or indices, balanced), ``source`` ("shipped" or "full"),
    ``flatten``, ``patch_size`` (side of patches used as tokens), and for "cifar2" ``resolution`` (8
    or 32). Sequences have ``num_tokens`` and ``input_dim``, tasks with symbols also ``num_symbols``
    (see docs/math/sequences.md). Your own data, "upload", have the ``digest`` from
    :func:`linearity_lab.data.uploads.keep_upload`; their test points are samples not trained on.

    Args:
        name: one of ``dataset_names()``.
        options: settings of the data set; see ``dataset_info(name).options``.

    Returns:
        Read-only float32 arrays; images are (n, height, width, channels), tokens (n, T, d). Equal
        options give equal data on every machine. A smaller ``num_samples`` draws a subset of the
        samples of a larger one.

    Raises:
        InvalidInput: for an unknown name or option, a value out of bounds, too many samples, or a
            full set that is missing or not the original.
        MissingUpload: if data of this digest are not stored here.
        TooLarge: for synthetic data beyond 512 MiB.

    Source: docs/math/generalization.md, docs/math/sequences.md; ``dataset_info(name)`` has the
    law or origin of each.

    Example:
        >>> data = load_dataset("gaussian-mixture", num_samples=60, num_classes=3, input_dim=10)
        >>> data.x.shape, data.y.shape
        ((60, 10), (60, 3))
    """
    checked = dataset_options(name, **options)
    return DATASETS[name].load(checked)
