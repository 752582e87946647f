"""Random inputs with a given covariance, and standardized images."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ntk_core.errors import InvalidInput
from ntk_core.streams import stream

ENTRIES = ("gaussian", "rademacher", "uniform")
TRAIN_STREAM = 0  # purpose of the random numbers of training inputs


def covariance_spectrum(eigenvalues: tuple[float, ...], d: int) -> NDArray[np.float64]:
    """Return eigenvalues of Σ with Tr Σ = d.

    The given ones spread evenly over d directions, scaled.

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
    entries: str, spectrum: NDArray, n: int, seed: int, split: int = TRAIN_STREAM
) -> NDArray[np.float32]:
    """Draw x = Σ^(1/2) z, (n, d), with Σ = diag(``spectrum``).

    The entries of z are independent, with mean 0 and variance 1.

    ``entries``: N(0, 1), ±1 with equal probability, or uniform on [−√3, √3]. The first k of n
    rows do not depend on n.

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


class InputSizes(NamedTuple):
    """How far inputs are from orthogonal ones of equal norms.

    Attributes:
        norms: max over i of |‖x_i‖²/d − 1|.
        products: max over i ≠ j of |x_i·x_j|/d.
        matrix: ‖X Xᵀ‖/n.
    """

    norms: float
    products: float
    matrix: float


_ROWS = 1000  # of X Xᵀ at a time


def input_sizes(x: NDArray) -> InputSizes:
    """Return the largest deviations of norms and products, and ‖X Xᵀ‖/n, of inputs (n, d).

    In theory the first two are O(d^(-1/2)) up to logarithms, and the last one is of order 1 for n ≫
    d.

    Source: Hu, Xiao, Adlam & Pennington 2020, Claim 3.1.

    >>> input_sizes(2 * np.eye(4))
    InputSizes(norms=0.0, products=0.0, matrix=1.0)
    """
    flat = np.asarray(x, np.float64).reshape(len(x), -1)
    n, d = flat.shape
    squares = np.einsum("ij,ij->i", flat, flat)
    products = 0.0
    for first in range(0, n, _ROWS):
        rows = np.arange(first, min(first + _ROWS, n))
        of_rows = flat[rows] @ flat.T  # (rows, n)
        of_rows[rows - first, rows] = 0.0
        products = max(products, float(np.abs(of_rows).max()) / d)
    # XᵀX has the nonzero eigenvalues of X Xᵀ.
    largest = float(np.linalg.eigvalsh(flat.T @ flat)[-1])
    norms = float(np.abs(squares / d - 1).max())
    return InputSizes(norms, products, max(largest, 0.0) / n)


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
