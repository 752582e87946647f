"""Random inputs with targets computed from them, and image pairs with labels ±1."""

import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ntk_core.data import Dataset, load_dataset, stream
from ntk_core.errors import InvalidInput, check_choice
from ntk_core.networks.architectures import activation_function

ENTRIES = ("gaussian", "rademacher", "uniform")
TARGETS = ("teacher", "norm", "sign", "linear")
IMAGE_PAIRS = ("cifar2", "mnist", "fashion-mnist")

# One independent stream for each purpose.
_TRAIN, _TEST, _TARGET, _NOISE = range(4)


def covariance_spectrum(eigenvalues: tuple[float, ...], d: int) -> NDArray[np.float64]:
    """Return eigenvalues of Σ with Tr Σ = d: the given ones spread evenly over d directions, scaled.

    >>> covariance_spectrum((1.0, 3.0), 4).tolist()
    [0.5, 0.5, 1.5, 1.5]

    Raises:
        InvalidInput: for more eigenvalues than directions, or values that are not positive.
    """
    if not 1 <= len(eigenvalues) <= d:
        raise InvalidInput(
            "spectrum",
            f"{len(eigenvalues)} values",
            f"1 to {d} values, each for one direction or several",
        )
    if not min(eigenvalues) > 0:
        raise InvalidInput("spectrum", eigenvalues, "numbers above 0")
    values = np.asarray(eigenvalues, np.float64)[np.arange(d) * len(eigenvalues) // d]
    return values * (d / values.sum())


def draw_inputs(
    entries: str, spectrum: NDArray, n: int, seed: int, split: int = _TRAIN
) -> NDArray[np.float32]:
    """x = Σ^(1/2) z, (n, d), with independent entries z of mean 0 and variance 1 and Σ = diag(``spectrum``).

    ``entries``: N(0, 1), ±1 with equal probability, or uniform on [−√3, √3]. The first k of n rows do not depend on n.

    Source: Hu, Xiao, Adlam & Pennington 2020, Assumption 3.1.
    """
    generator = stream(seed, split)
    shape = (n, len(spectrum))
    if entries == "gaussian":
        z = generator.standard_normal(shape, dtype=np.float32)
    elif entries == "rademacher":
        z = np.where(generator.random(shape, dtype=np.float32) < 0.5, np.float32(-1), np.float32(1))
    elif entries == "uniform":
        z = (generator.random(shape, dtype=np.float32) - np.float32(0.5)) * np.float32(
            math.sqrt(12)
        )
    else:
        raise InvalidInput("entries", entries, "one of " + ", ".join(ENTRIES))
    return z * np.sqrt(spectrum).astype(np.float32)


def covariance_ratio(x: NDArray) -> float:
    """Unbiased Tr[Σ²]/d from samples: the mean of (x·x')²/d over all pairs of different inputs."""
    flat = np.asarray(x, np.float64).reshape(len(x), -1)
    n, d = flat.shape
    squares = np.einsum("ij,ij->i", flat, flat)
    return float((np.sum((flat.T @ flat) ** 2) - np.sum(squares**2)) / (n * (n - 1) * d))


def synthetic_data(
    entries: str,
    spectrum: NDArray,
    target: str,
    *,
    num_samples: int,
    num_test: int,
    seed: int,
    teacher_width: int = 5,
    noise: float = 0.0,
) -> Dataset:
    """Draw training and test samples of one input distribution and one target, by ``seed``.

    Targets of x, with u, w_j ~ N(0, I) and a_j ~ N(0, 1), drawn once:

    - ``"teacher"``: a two-layer erf network k^(-1/2) Σ_j a_j φ(w_j·x/√d), k = ``teacher_width``,
    - ``"norm"``: ‖x‖/√d,
    - ``"sign"``: sign(u·x),
    - ``"linear"``: u·x/√d + ``noise`` · N(0, 1).

    Source: Hu, Xiao, Adlam & Pennington 2020, §3.4 (teacher and norm); the others are our choice.
    """
    check_choice("target", target, TARGETS)
    arrays: dict[str, NDArray] = {}
    for suffix, n, split in (("", num_samples, _TRAIN), ("_test", num_test, _TEST)):
        x = draw_inputs(entries, spectrum, n, seed, split)
        y = _target_of(target, x, seed, teacher_width)
        if target == "linear":
            y = y + noise * stream(seed, _NOISE, split).standard_normal(n)
        arrays |= {
            "x" + suffix: x,
            "y" + suffix: y[:, None],
            "labels" + suffix: np.zeros(0, np.int64),
        }
    return Dataset(
        name=f"{entries}, {target}",
        class_names=(),
        provenance=_provenance(entries, target),
        **arrays,
    )


def image_pair(name: str, classes: tuple[int, ...] | None = None, **options: object) -> Dataset:
    """Load two image classes with targets −1 and +1, each image scaled to mean 0 and variance 1.

    ``options`` are those of ``load_dataset`` (``num_samples``, ``num_test``, ``resolution``, ``seed``).

    Source: Hu, Xiao, Adlam & Pennington 2020, §4.2 and App. A.
    """
    check_choice("name", name, IMAGE_PAIRS)
    if classes is not None:
        options["classes"] = list(classes)
    data = load_dataset(name, targets="plus-minus", **options)
    return replace(
        data,
        x=standardized_images(data.x),
        x_test=standardized_images(data.x_test),
        provenance=data.provenance
        + " Each image is scaled to mean 0 and variance 1, as in Hu et al. (2020), App. A.",
    )


def standardized_images(x: NDArray) -> NDArray[np.float32]:
    """Scale each image to mean 0 and variance 1, hence norm √d; a constant image becomes 0."""
    flat = np.asarray(x, np.float64).reshape(len(x), -1)
    centered = flat - flat.mean(axis=1, keepdims=True)
    deviations = centered.std(axis=1, keepdims=True)
    return (
        (centered / np.where(deviations > 0, deviations, np.inf))
        .reshape(x.shape)
        .astype(np.float32)
    )


def _target_of(target: str, x: NDArray, seed: int, teacher_width: int) -> NDArray[np.float64]:
    d = x.shape[1]
    generator = stream(seed, _TARGET)
    if target == "norm":
        return np.linalg.norm(x.astype(np.float64), axis=1) / math.sqrt(d)
    if target == "teacher":
        outer = generator.standard_normal(teacher_width)
        inner = generator.standard_normal((teacher_width, d), dtype=np.float32)
        hidden = activation_function("erf")(jnp.asarray(x @ inner.T / np.float32(math.sqrt(d))))
        return np.asarray(hidden, np.float64) @ outer / math.sqrt(teacher_width)
    direction = generator.standard_normal(d, dtype=np.float32)
    along = (x @ direction).astype(np.float64) / math.sqrt(d)
    return np.sign(along) if target == "sign" else along


def _provenance(entries: str, target: str) -> str:
    law = {"gaussian": "N(0, 1)", "rademacher": "±1", "uniform": "uniform on [−√3, √3]"}[entries]
    return (
        f"Synthetic inputs x = Σ^(1/2) z, independent entries of z {law}, and target '{target}', drawn from the seed. "
        "The laws are those of Hu, Xiao, Adlam & Pennington (2020), Assumption 3.1. No licence applies."
    )
