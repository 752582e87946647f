"""What can be loaded, its options and its shapes, answered without reading any data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ntk_core.data._options import Option
from ntk_core.data.uploads import DEFAULT_LIMITS, upload_shapes
from ntk_core.errors import InvalidInput, TooLarge

Split = Literal["train", "test"]
Counts = tuple[int, ...]  # images available of each class

UPLOAD = "upload"
MAX_SEED = 2**32 - 1
MAX_SYNTHETIC_VALUES = 2**27  # 512 MiB of float32 in one array

_MNIST_FULL: dict[Split, Counts] = {
    "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
}
_FASHION_NAMES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_DIGIT_NAMES = tuple("0123456789")


@dataclass(frozen=True)
class DatasetInfo:
    """What a form needs to know about a data set.

    Attributes:
        name: the name that ``load_dataset`` takes.
        title: the name for people.
        description: one sentence on what the inputs and classes are.
        class_names: all classes; empty where an option sets their number.
        options: every option with kind, bounds, default and help.
    """

    name: str
    title: str
    description: str
    class_names: tuple[str, ...]
    options: tuple[Option, ...]
    _side: int = 0
    _channels: int = 1
    # Images of each class by (source, side), where a side of 0 stands for every resolution.
    _counts: Mapping[tuple[str, int], dict[Split, Counts]] = field(default_factory=dict, repr=False)

    def option(self, name: str) -> Option:
        """The option called ``name``.

        Raises:
            InvalidInput: there is none; the names are listed.
        """
        for option in self.options:
            if option.name == name:
                return option
        raise InvalidInput("options", name, ", ".join(option.name for option in self.options))


@dataclass(frozen=True)
class DatasetShapes:
    """Sizes that ``load_dataset`` with the same options will give, known beforehand.

    ``available_train`` and ``available_test`` are the largest ``num_samples`` and ``num_test`` for this choice.
    """

    num_samples: int
    num_test: int
    input_shape: tuple[int, ...]
    num_outputs: int
    class_names: tuple[str, ...]
    available_train: int
    available_test: int


def dataset_names() -> tuple[str, ...]:
    """The names that ``load_dataset`` takes."""
    return tuple(_DATASETS)


def dataset_info(name: str) -> DatasetInfo:
    """Title, classes and options of the data set ``name``.

    Raises:
        InvalidInput: no such data set; the names are listed.
    """
    if not isinstance(name, str) or name not in _DATASETS:
        raise InvalidInput("name", name, ", ".join(_DATASETS))
    return _DATASETS[name]


def dataset_options(name: str, **options: Any) -> dict[str, Any]:
    """All options in canonical form and a fixed order, defaults filled in: equal requests become equal dictionaries.

    Raises:
        InvalidInput: unknown name or option, a value outside its bounds, or options that contradict each other.
        MissingUpload: data of somebody's own that are not, or no longer, kept here.
        TooLarge: synthetic data that would not fit into 512 MiB.
    """
    info = dataset_info(name)
    for given in options:
        info.option(given)
    checked: dict[str, Any] = {
        option.name: option.check(options.get(option.name, option.default)) for option in info.options
    }
    shapes = _shapes(info, checked)
    if checked.get("targets") == "plus-minus" and len(shapes.class_names) != 2:
        raise InvalidInput("targets", "plus-minus", f"one-hot, as there are {len(shapes.class_names)} classes")
    for key, available in (("num_samples", shapes.available_train), ("num_test", shapes.available_test)):
        if checked[key] > available:
            raise InvalidInput(key, checked[key], f"at most {available:,}, all that there are for the chosen options")
    if info.name == "gaussian-mixture":
        _check_synthetic_size(checked)
    return checked


def dataset_shapes(name: str, **options: Any) -> DatasetShapes:
    """Shapes of the data set for these options, without loading it.

    Raises:
        InvalidInput: as ``dataset_options``.
    """
    return _shapes(dataset_info(name), dataset_options(name, **options))


def _shapes(info: DatasetInfo, options: Mapping[str, Any]) -> DatasetShapes:
    targets_only = 1
    if info.name == "gaussian-mixture":
        class_names = tuple(f"class {index}" for index in range(options["num_classes"]))
        input_shape: tuple[int, ...] = (options["input_dim"],)
        available = {"train": info.option("num_samples").maximum, "test": info.option("num_test").maximum}
    elif info.name == "sine":
        class_names, input_shape = (), (1,)
        available = {"train": info.option("num_samples").maximum, "test": info.option("num_test").maximum}
    elif info.name == UPLOAD:
        kept = upload_shapes(options["digest"])
        class_names, input_shape = kept.class_names, kept.input_shape
        # Test points are those that are not trained on.
        available = {"train": kept.num_samples, "test": max(0, kept.num_samples - options["num_samples"])}
        targets_only = kept.num_targets
    else:
        class_names = options["classes"]
        side = options.get("resolution", info._side)
        input_shape = (side, side, info._channels)
        if options["flatten"]:
            input_shape = (side * side * info._channels,)
        source = options["source"]
        counts = info._counts[(source, side)] if (source, side) in info._counts else info._counts[(source, 0)]
        indices = [info.class_names.index(class_name) for class_name in class_names]
        available = {split: sum(per_class[index] for index in indices) for split, per_class in counts.items()}
    return DatasetShapes(
        num_samples=options["num_samples"],
        num_test=options["num_test"],
        input_shape=input_shape,
        num_outputs=len(class_names) if class_names and options.get("targets") == "one-hot" else targets_only,
        class_names=class_names,
        available_train=int(available["train"]),
        available_test=int(available["test"]),
    )


def _check_synthetic_size(options: Mapping[str, Any]) -> None:
    per_sample = options["input_dim"]
    for key in ("num_samples", "num_test"):
        if options[key] * per_sample > MAX_SYNTHETIC_VALUES:
            nearest = MAX_SYNTHETIC_VALUES // per_sample
            required, limit = 4 * options[key] * per_sample, 4 * MAX_SYNTHETIC_VALUES
            raise TooLarge(key, options[key], required=required, limit=limit, unit="bytes", nearest=nearest)


def _shared_options(max_train: int, max_test: int, num_samples: int, num_test: int) -> tuple[Option, ...]:
    return (
        Option("num_samples", "integer", num_samples, "Number of training samples n.", 1, max_train),
        Option("num_test", "integer", num_test, "Number of test samples; 0 for none.", 0, max_test),
        Option("seed", "integer", 0, "Seed of the draw; equal seeds give equal data.", 0, MAX_SEED),
    )


_CODING = (
    Option(
        "standardize",
        "choice",
        "raw",
        "unit-norm scales each input to the norm √d; standard gives each feature mean 0 and deviation 1 on the "
        "training set.",
        choices=("raw", "unit-norm", "standard"),
    ),
    Option(
        "targets",
        "choice",
        "one-hot",
        "One column per class, or a single column −1 / +1 for two classes.",
        choices=("one-hot", "plus-minus"),
    ),
)


def _image_options(class_names: tuple[str, ...], max_train: int, max_test: int) -> tuple[Option, ...]:
    return (
        *_shared_options(max_train, max_test, num_samples=200, num_test=200),
        *_CODING,
        Option("classes", "classes", None, "Which classes, in which order; all when not given.", choices=class_names),
        Option(
            "source",
            "choice",
            "shipped",
            "The images that come with the program, or the full set from a copy on this computer.",
            choices=("shipped", "full"),
        ),
        Option("flatten", "flag", False, "One vector per image instead of (height, width, channels)."),
    )


_TEN_CLASSES: dict[tuple[str, int], dict[Split, Counts]] = {
    ("shipped", 0): {"train": (600,) * 10, "test": (200,) * 10},
    ("full", 0): _MNIST_FULL,
}

_DATASETS = {
    info.name: info
    for info in (
        DatasetInfo(
            "gaussian-mixture",
            "Gaussian mixture",
            "Round clouds: the label is uniform on C classes and x given y is N(μ_y, s²I), μ_y uniform, |μ_y| = 2.",
            (),
            (
                *_shared_options(100_000, 100_000, num_samples=60, num_test=60),
                *_CODING,
                Option("num_classes", "integer", 3, "Number of classes C.", 2, 100),
                Option("input_dim", "integer", 10, "Dimension d of the inputs.", 1, 10_000),
                Option(
                    "noise",
                    "number",
                    0.3,
                    "Standard deviation s inside a class; class centers lie about 2√2 apart, so classes overlap "
                    "more when s is near 1 or above.",
                    0.0,
                    1000.0,
                ),
            ),
        ),
        DatasetInfo(
            "sine",
            "Sine curve",
            "One input, one output: y = sin 2x + s ε at x uniform on [−2, 2]; test points on an even grid on [−3, 3].",
            (),
            (
                *_shared_options(10_000, 10_000, num_samples=12, num_test=61),
                Option("noise", "number", 0.0, "Standard deviation s of the noise on y.", 0.0, 1000.0),
            ),
        ),
        DatasetInfo(
            "mnist",
            "MNIST",
            "Handwritten digits, 28×28, gray values from 0 to 1.",
            _DIGIT_NAMES,
            _image_options(_DIGIT_NAMES, 60_000, 10_000),
            _side=28,
            _counts=_TEN_CLASSES,
        ),
        DatasetInfo(
            "fashion-mnist",
            "Fashion-MNIST",
            "Clothes, 28×28, gray values from 0 to 1.",
            _FASHION_NAMES,
            _image_options(_FASHION_NAMES, 60_000, 10_000),
            _side=28,
            _counts={
                ("shipped", 0): _TEN_CLASSES[("shipped", 0)],
                ("full", 0): {"train": (6000,) * 10, "test": (1000,) * 10},
            },
        ),
        DatasetInfo(
            "cifar2",
            "CIFAR-2 (cats and horses)",
            "CIFAR-10 cats against horses, color values from 0 to 1, average-pooled to 8×8 or at full size 32×32.",
            ("cat", "horse"),
            (
                *_image_options(("cat", "horse"), 10_000, 2_000),
                Option("resolution", "choice", 8, "Side of the images in pixels.", choices=(8, 32)),
            ),
            _channels=3,
            _counts={
                ("shipped", 8): {"train": (5000, 5000), "test": (1000, 1000)},
                ("shipped", 32): {"train": (500, 500), "test": (100, 100)},
                ("full", 0): {"train": (5000, 5000), "test": (1000, 1000)},
            },
        ),
        DatasetInfo(
            "digits",
            "Small digits",
            "MNIST digits average-pooled over 4×4 blocks to 7×7, gray values from 0 to 1.",
            _DIGIT_NAMES,
            _image_options(_DIGIT_NAMES, 60_000, 10_000),
            _side=7,
            _counts=_TEN_CLASSES,
        ),
        DatasetInfo(
            UPLOAD,
            "Your data",
            "An uploaded table, arrays or images, by the SHA-256 of what was kept.",
            (),
            (
                *_shared_options(DEFAULT_LIMITS.max_rows, DEFAULT_LIMITS.max_rows, num_samples=60, num_test=0),
                *_CODING,
                Option("digest", "digest", None, "SHA-256 of the data, as the page Your data or the command says."),
            ),
        ),
    )
}
