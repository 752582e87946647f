"""Where on the test inputs a model is still wrong: inside the span of the inputs, or outside of it."""

import numpy as np
from numpy.typing import NDArray

# Singular values below this share of the largest hold rounding of float32 inputs only.
_RANK_SHARE = 1e-5


class InputSpan:
    """V_lin = {Xβ}: the vectors of outputs on n test inputs that a linear function of the inputs can give.

    Attributes:
        dimension: rank of X. Images of mean 0 have one direction less than pixels.

    Source: Hu, Xiao, Adlam & Pennington 2020, §4.2.
    """

    def __init__(self, x: NDArray):
        flat = np.asarray(x, np.float64).reshape(len(x), -1)
        left, singular, _ = np.linalg.svd(flat, full_matrices=False)
        self._basis = left[:, singular > _RANK_SHARE * singular[0]]
        self.dimension = self._basis.shape[1]

    def split(self, residual: NDArray) -> tuple[float, float]:
        """(1/2n) of the squared norms of ``residual``, (n,), inside V_lin and in its complement: the loss, in two."""
        inside = float(np.sum((self._basis.T @ residual) ** 2)) / (2 * len(residual))
        return inside, max(0.0, float(np.mean(np.square(residual))) / 2 - inside)
