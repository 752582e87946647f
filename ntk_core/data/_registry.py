"""The data sets, one entry each, and ``load_dataset``; options and shapes are answered without reading any data."""

from typing import Any

from ntk_core.data._dataset import Dataset
from ntk_core.data._images import ImageSet, ShippedFile
from ntk_core.data._info import DatasetInfo, DatasetShapes
from ntk_core.data._kept import Kept
from ntk_core.data._laws import Curve, Mixture, MultiIndex, Parity, Points, SingleIndex, Staircase, Teacher
from ntk_core.data._sequences import RandomSequences, SymbolTask, copy, induction, majority, modular_addition
from ntk_core.errors import InvalidInput
from ntk_core.settings.vocabulary import table

_FOR_ALL = ("num_samples", "num_test", "seed")
_LABELED = (*_FOR_ALL, "standardize", "targets")
_IMAGES: dict[str, Any] = {
    "uses": (*_LABELED, "classes", "source", "flatten", "patch_size"),
    "defaults": {"num_samples": 200, "num_test": 200},
}
_SYMBOLS = (*_LABELED, "num_tokens", "num_symbols", "input_dim")
_FEW = {"num_samples": 120, "num_test": 1000, "input_dim": 20, "noise": 0.0}
_MNIST_FILE = ShippedFile("mnist_8k.npz", (28, 28), (6_000, 2_000))
_MNIST: dict[str, Any] = {
    **_IMAGES,
    "class_names": tuple("0123456789"),
    "full": (
        (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    ),
}
_MNIST_ORIGIN = (
    "MNIST by Yann LeCun, Corinna Cortes and Christopher J. C. Burges, 'The MNIST database of handwritten digits' "
    "(1998), licence CC BY-SA 3.0."
)

DATASETS: dict[str, DatasetInfo] = table(
    Mixture(
        "gaussian-mixture",
        "Gaussian mixture",
        "Round clouds: the label is uniform on C classes and x given y is N(μ_y, s²I), μ_y uniform, |μ_y| = 2; "
        "our choice of law.",
        uses=(*_LABELED, "num_classes", "input_dim", "noise"),
    ),
    Curve(
        "sine",
        "sine curve",
        "One input, one output: y = sin 2x + s ε at x uniform on [−2, 2]; test points on an even grid on [−3, 3]; "
        "no classes; our choice of law.",
        uses=(*_FOR_ALL, "noise"),
        defaults={"num_samples": 12, "num_test": 61, "noise": 0.0},
    ),
    Points(
        "points",
        "given points",
        "One input, one output: up to 30 points (x, y), each given; no classes; test points on the polygon "
        "through them.",
        uses=("num_test", "xs", "ys"),
        defaults={"num_test": 0},
    ),
    SymbolTask(
        "copy",
        "copying",
        "T symbols s_t uniform on V, each a vector e ~ N(0, I_d) of its own; the label is the first, s_1.",
        rule=copy,
        uses=_SYMBOLS,
    ),
    SymbolTask(
        "majority",
        "majority",
        "T symbols uniform on two, T odd, each a vector e ~ N(0, I_d) of its own; the label is the one that occurs "
        "more often.",
        rule=majority,
        num_symbols=2,
        odd=True,
        uses=(*_LABELED, "num_tokens", "input_dim"),
    ),
    SymbolTask(
        "modular-addition",
        "modular addition",
        "T symbols s_t uniform on 0 … V − 1, each a vector e ~ N(0, I_d) of its own; the label is their sum modulo V.",
        rule=modular_addition,
        uses=_SYMBOLS,
    ),
    SymbolTask(
        "induction",
        "induction",
        "… a b … a → b: T symbols of V, each a vector e ~ N(0, I_d) of its own; the last has occurred once before, and "
        "the label is what came after it there.",
        rule=induction,
        least_tokens=3,
        uses=_SYMBOLS,
    ),
    RandomSequences(
        "random-sequences",
        "random sequences",
        "T tokens x_t ~ N(0, I_d), and y = −1 or +1 at random; no classes, nothing but memory helps.",
        uses=(*_FOR_ALL, "num_tokens", "input_dim"),
        defaults={"num_test": 0},
    ),
    Parity(
        "parity",
        "parity",
        "Bits: x uniform on {−1, +1}^d; two classes, the sign of x₁ x₂ … x_k + s ε. The noise flips a share Φ(−1/s) of "
        "the classes, the Bayes error.",
        uses=(*_LABELED, "input_dim", "noise", "num_relevant"),
        defaults=_FEW,
    ),
    Staircase(
        "staircase",
        "staircase",
        "Bits: x uniform on {−1, +1}^d; y = (x₁ + x₁x₂ + … + x₁x₂⋯x_k) / √k + s ε, no classes.",
        uses=(*_FOR_ALL, "input_dim", "noise", "num_relevant"),
        defaults=_FEW,
    ),
    SingleIndex(
        "single-index",
        "single-index model",
        "x ~ N(0, I_d); y = He_q(x₁) / √q! + s ε with the Hermite polynomial of degree q (1: linear), no classes.",
        uses=(*_FOR_ALL, "input_dim", "noise", "degree"),
        defaults=_FEW,
    ),
    MultiIndex(
        "multi-index",
        "multi-index model",
        "x ~ N(0, I_d); y = x₁ x₂ ⋯ x_k + s ε, no classes.",
        uses=(*_FOR_ALL, "input_dim", "noise", "num_relevant"),
        defaults=_FEW,
    ),
    Teacher(
        "teacher",
        "teacher network",
        "x ~ N(0, I_d); y = Σ_j ± max(⟨u_j, x⟩, 0) + s ε of k neurons with alternating signs and random directions, "
        "centered and scaled to variance 1 before the noise, no classes.",
        uses=(*_FOR_ALL, "input_dim", "noise", "num_relevant"),
        defaults=_FEW,
    ),
    ImageSet(
        "mnist",
        "MNIST",
        "Handwritten digits, 28×28, gray values from 0 to 1.",
        **_MNIST,
        files={28: _MNIST_FILE},
        origin=_MNIST_ORIGIN,
    ),
    ImageSet(
        "fashion-mnist",
        "Fashion-MNIST",
        "Clothes, 28×28, gray values from 0 to 1.",
        **_IMAGES,
        class_names=(
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ),
        files={28: ShippedFile("fashion_mnist_8k.npz", (28, 28), (6_000, 2_000))},
        full=((6000,) * 10, (1000,) * 10),
        origin="Fashion-MNIST by Han Xiao, Kashif Rasul and Roland Vollgraf (2017, arXiv:1708.07747), Zalando "
        "Research, licence MIT.",
    ),
    ImageSet(
        "cifar2",
        "CIFAR-2",
        "Cats and horses of CIFAR-10, color values from 0 to 1, average-pooled to 8×8 or at full size 32×32.",
        uses=(*_IMAGES["uses"], "resolution"),
        defaults=_IMAGES["defaults"],
        class_names=("cat", "horse"),
        files={
            8: ShippedFile("cifar2_8x8.npz", (8, 8, 3), (10_000, 2_000), holds_sums=True),
            32: ShippedFile("cifar2_32x32.npz", (32, 32, 3), (1_000, 200)),
        },
        full=((5000, 5000), (1000, 1000)),
        origin="Cats and horses of CIFAR-10 by Alex Krizhevsky, 'Learning Multiple Layers of Features from Tiny "
        "Images', technical report, University of Toronto (2009); no licence is stated.",
    ),
    ImageSet(
        "digits",
        "digits",
        "MNIST digits average-pooled over 4×4 blocks to 7×7, gray values from 0 to 1.",
        **_MNIST,
        files={7: _MNIST_FILE},
        origin=_MNIST_ORIGIN + " The images are MNIST average-pooled over 4×4 blocks to 7×7 (our choice); they are not "
        "the 8×8 digits of scikit-learn.",
    ),
    Kept(
        "upload",
        "your data",
        "A table, arrays or images that you uploaded on the page Your data, by the SHA-256 of what was kept.",
        uses=(*_LABELED, "digest"),
        defaults={"num_test": 0},
    ),
)


def dataset_names() -> tuple[str, ...]:
    """The names that ``load_dataset`` takes."""
    return tuple(DATASETS)


def dataset_info(name: str) -> DatasetInfo:
    """Title, classes and options of the data set ``name``.

    Raises:
        InvalidInput: no such data set; the names are listed.
    """
    if not isinstance(name, str) or name not in DATASETS:
        raise InvalidInput("name", name, ", ".join(DATASETS))
    return DATASETS[name]


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
    checked = {option.name: option.check(options.get(option.name, option.default)) for option in info.options}
    info.check(checked)
    return checked


def dataset_shapes(name: str, **options: Any) -> DatasetShapes:
    """Shapes of the data set for these options, without loading it.

    Raises:
        InvalidInput: as ``dataset_options``.
    """
    return dataset_info(name).shapes(dataset_options(name, **options))


def load_dataset(name: str, **options: Any) -> Dataset:
    """Load a data set by name.

    Name, options → (x, y): "gaussian-mixture", "sine", "points", "copy", "majority", "modular-addition",
    "induction", "random-sequences", "parity", "staircase", "single-index", "multi-index", "teacher", "mnist",
    "fashion-mnist", "cifar2", "digits", or "upload".

    Every option with its bounds and default is in ``dataset_info(name).options``. For all sets: ``num_samples``,
    ``num_test`` and ``seed``; for "sine" (one input, one output, no classes) also ``noise``. "points" have ``xs`` and
    ``ys``, up to 30 numbers each, in place of ``num_samples`` and ``seed``. For sets with classes: ``standardize``
    ("raw", "unit-norm", "standard", "centered") and ``targets`` ("one-hot" → y (n, C); "plus-minus" for two classes →
    y (n, 1), −1 for the first). The mixture has ``num_classes``, ``input_dim`` and ``noise``; the targets of few
    directions ``input_dim``, ``noise``, and ``num_relevant`` ("single-index": ``degree``); the image sets have
    ``classes`` (names or indices, balanced), ``source`` ("shipped" or "full"), ``flatten``, ``patch_size`` (side of
    patches that become tokens), and for "cifar2" ``resolution`` (8 or 32). Sequences have ``num_tokens`` and
    ``input_dim``, tasks with symbols also ``num_symbols`` (their laws: docs/math/sequences.md). Data of one's own,
    "upload", have the ``digest`` that :func:`ntk_core.data.uploads.keep_upload` gave them; their test points are
    samples that are not trained on.

    Returns:
        Read-only float32 arrays; images are (n, height, width, channels), tokens (n, T, d). Equal options give equal
        data on every machine. A smaller ``num_samples`` draws a subset of the samples of a larger one.

    Raises:
        InvalidInput: unknown name or option, a value outside its bounds, more samples than there are, or a full set
            that is missing or not the original.
        MissingUpload: data of this digest are not, or no longer, kept here.
        TooLarge: synthetic data beyond 512 MiB.

    Source: docs/math/generalization.md, docs/math/sequences.md; ``dataset_info(name)`` has the law or origin of each.

    Example:
        >>> data = load_dataset("gaussian-mixture", num_samples=60, num_classes=3, input_dim=10)
        >>> data.x.shape, data.y.shape
        ((60, 10), (60, 3))
    """
    checked = dataset_options(name, **options)
    return DATASETS[name].load(checked)
