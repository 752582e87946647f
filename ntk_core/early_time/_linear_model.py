"""Linear models in their features: trained by descent from zero, exactly, and the best there is."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ntk_core.early_time._features import LinearFeatures

Vector = NDArray[np.float64]

# Eigenvalues of G below this share of the largest hold rounding of inputs in float32 (1e-7, squared) only.
_RANK_SHARE = 1e-12


class LinearModel:
    """Linear model that a network follows early in training.

    f_lin(x) = ψ(x)·β on n training samples, everything in float64 and in the space of the k features.

    With G = ΨᵀΨ/n = U Λ Uᵀ and b = Ψᵀy/n the loss ½βᵀGβ − bᵀβ + const is quadratic, so descent needs no loop.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3.

    >>> from ntk_core.early_time import activation_constants, two_layer_features
    >>> x = np.random.default_rng(0).standard_normal((20, 3))
    >>> model = LinearModel(two_layer_features(activation_constants("erf"), 3, 1.0, 0.1, 0.1), x, x[:, 0])
    >>> bool(np.allclose(model.outputs(model.optimal_weights()), x[:, 0]))
    True
    """

    def __init__(self, features: LinearFeatures, x: NDArray, y: NDArray):
        self.features = features
        self._psi = features(x)
        self._y = np.asarray(y, np.float64).reshape(-1)

    @cached_property
    def _modes(self) -> tuple[Vector, NDArray[np.float64], Vector]:
        """(λ, U, Uᵀb) of the directions in which descent moves: k, or n if the samples are fewer."""
        n, k = self._psi.shape
        if n < k:
            _, singular, rows = np.linalg.svd(self._psi, full_matrices=False)
            eigenvalues, basis = singular[::-1] ** 2 / n, rows[::-1].T
        else:
            eigenvalues, basis = np.linalg.eigh(self._psi.T @ self._psi / n)
        return eigenvalues, basis, basis.T @ (self._psi.T @ self._y / n)

    @property
    def largest_eigenvalue(self) -> float:
        """λ_max of G: descent diverges once the rate, which the features contain, makes this exceed 2."""
        return float(self._modes[0][-1])

    def weights_at(self, step: int) -> Vector:
        """β_t of full-batch descent from β₀ = 0: U (1 − (1 − Λ)ᵗ)/Λ Uᵀb, exactly."""
        eigenvalues, basis, target = self._modes
        kept = eigenvalues > _RANK_SHARE * max(eigenvalues[-1], 0.0)
        growth = np.full(len(eigenvalues), float(step))
        with np.errstate(over="ignore"):  # a diverging model is infinite, which the outcome records
            growth[kept] = (1 - (1 - eigenvalues[kept]) ** step) / eigenvalues[kept]
        return basis @ (growth * target)

    def optimal_weights(self) -> Vector:
        """β_∞: least squares of smallest norm, where descent ends."""
        eigenvalues, basis, target = self._modes
        kept = eigenvalues > _RANK_SHARE * max(eigenvalues[-1], 0.0)
        inverse = np.divide(1, eigenvalues, out=np.zeros_like(eigenvalues), where=kept)
        return basis @ (inverse * target)

    def after_batches(self, weights: Vector, batches: Iterable[NDArray]) -> Vector:
        """β after one step of minibatch descent for each array of sample indices, on the batches of the network."""
        for batch in batches:
            psi = self._psi[batch]
            weights = weights - psi.T @ (psi @ weights - self._y[batch]) / len(batch)
        return weights

    def outputs(self, weights: Vector) -> Vector:
        """ψ(x)·β on the training samples, (n,)."""
        return self._psi @ weights


# Singular values below this share of the largest hold rounding of float32 inputs only.
_SPAN_SHARE = 1e-5


class InputSpan:
    """V_lin = {Xβ}: the vectors of outputs on n test inputs that a linear function of the inputs can give.

    Attributes:
        dimension: rank of X. Images of mean 0 have one direction less than pixels.

    Source: Hu, Xiao, Adlam & Pennington 2020, §4.2.
    """

    def __init__(self, x: NDArray):
        flat = np.asarray(x, np.float64).reshape(len(x), -1)
        left, singular, _ = np.linalg.svd(flat, full_matrices=False)
        self._basis = left[:, singular > _SPAN_SHARE * singular[0]]
        self.dimension = self._basis.shape[1]

    def split(self, residual: NDArray) -> tuple[float, float]:
        """(1/2n) of the squared norms of ``residual``, (n,), inside V_lin and in its complement: the loss, in two."""
        inside = float(np.sum((self._basis.T @ residual) ** 2)) / (2 * len(residual))
        return inside, max(0.0, float(np.mean(np.square(residual))) / 2 - inside)
