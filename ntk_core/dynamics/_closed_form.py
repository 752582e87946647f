"""Training in closed form: linear models by an eigendecomposition, one sample by a recursion.

Free of JAX.
"""

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray

from ntk_core.errors import InvalidInput
from ntk_core.real_numbers import real_array, real_number, whole_number

FloatArray = NDArray[np.float64]


class ClosedForm:
    """Closed-form training of the linear model.

    f_lin at training and other points under (1/2n) Σ ‖f_i − y_i‖², in float64.

    With K = K(X, X) as an nC × nC matrix and the residual r₀ = f₀ − y at the training points,

    * gradient flow at time τ:   f(x) = f₀(x) − K(x, X) (1 − e^(−Kτ/n)) K⁻¹ r₀,
    * descent, t steps of rate η: f(x) = f₀(x) − K(x, X) (1 − (1 − ηK/n)^t) K⁻¹ r₀,

    which at the training points are y + e^(−Kτ/n) r₀ and y + (1 − ηK/n)^t r₀; zero eigenvalues need
    no inverse. Compare both at τ = η t.

    >>> closed = ClosedForm(np.full((1, 1, 1, 1), 2.0), np.array([[1.0]]), np.zeros((1, 1)))
    >>> closed.descent([0, 1, 2], 0.25)[0].ravel()
    array([1.  , 0.5 , 0.25])

    Args:
        kernel: (n, n, C, C), or (n, n) for a kernel equal for all outputs and zero between them.
        start: f₀ at the training points, (n, C).
        targets: y, (n, C) or (n,).
        other_kernel: K(x, X) of other points, (n', n, C, C) or (n', n); optional.
        other_start: f₀ at the other points, (n', C).

    Raises:
        InvalidInput: for incompatible shapes or nonfinite numbers.

    Source: Lee et al. 2019, §2.2; Jacot, Gabriel & Hongler 2018, §5.
    """

    def __init__(
        self,
        kernel: ArrayLike,
        start: ArrayLike,
        targets: ArrayLike,
        other_kernel: ArrayLike | None = None,
        other_start: ArrayLike | None = None,
    ):
        self.start, self.targets = (
            each[:, None] if each.ndim == 1 else each
            for each in (real_array(start, "start"), real_array(targets, "targets"))
        )
        if self.start.ndim != 2 or self.targets.shape != self.start.shape:
            raise InvalidInput(
                "start", self.start.shape, f"shape (n, C), that of the targets {self.targets.shape}"
            )
        if not self.start.size:
            raise InvalidInput("start", self.start.shape, "outputs of at least one input")
        matrix = self._matrix("kernel", kernel, len(self.start))
        self._symmetric = (matrix + matrix.T) / 2
        self._other: tuple[FloatArray, FloatArray] | None = None
        if other_kernel is not None and other_start is not None:
            others = real_array(other_start, "other_start")
            others = others[:, None] if others.ndim == 1 else others
            num_outputs = self.start.shape[1]
            if others.ndim != 2 or others.shape[1] != num_outputs:
                allowed = f"shape (n', {num_outputs}), one row for each other point"
                raise InvalidInput("other_start", f"shape {others.shape}", allowed)
            self._other = (self._matrix("other_kernel", other_kernel, len(others)), others)

    @cached_property
    def eigen(self) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, "rows rows"]]:
        """Eigenvalues of K, ascending and clipped at zero, and eigenvectors."""
        values, vectors = np.linalg.eigh(self._symmetric)
        # Inputs given twice have zero eigenvalues, which rounding makes about n ε λ_max.
        rounding = len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
        return np.where(values > rounding, values, 0.0), vectors

    @property
    def stable_rate(self) -> float:
        """2n / λ_max: descent diverges above."""
        largest = float(self.eigen[0][-1])
        return 2 * len(self.start) / largest if largest > 0 else math.inf

    def flow(
        self, times: ArrayLike
    ) -> tuple[Float[np.ndarray, "T n C"], Float[np.ndarray, "T others C"] | None]:
        """Return f under gradient flow at times τ.

        The outputs are those of training points (T, n, C) and other points (T, n', C).
        """
        shares = _sequence(times, "times")[:, None] / len(self.start)
        values = self.eigen[0]
        # At τ = ∞ the directions of zero eigenvalues still do not move, although ∞ · 0 is NaN.
        decay = np.where(values > 0, shares, 0.0) * values
        return self._outputs(np.exp(-decay), -np.expm1(-decay), shares)

    def descent(
        self, steps: ArrayLike, learning_rate: float
    ) -> tuple[Float[np.ndarray, "T n C"], Float[np.ndarray, "T others C"] | None]:
        """Return f at both sets of points after these numbers of gradient descent steps.

        Infinite after overflow.
        """
        share = learning_rate * self.eigen[0] / len(self.start)
        count = _sequence(steps, "steps")[:, None]
        slow = share < 0.5
        rates = np.log1p(-np.where(slow, share, 0.0))  # exact for the many small eigenvalues
        exponents = np.where(rates < 0, count, 0.0) * rates
        with np.errstate(over="ignore"):
            left = np.where(slow, np.exp(exponents), np.power(1 - share, count))
        gone = np.where(slow, -np.expm1(exponents), 1 - left)
        return self._outputs(left, gone, count * learning_rate / len(self.start))

    def _outputs(
        self, left: FloatArray, gone: FloatArray, limit: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Combine the parts of each eigendirection.

        They are the remaining part, the removed part, and the limit of removed / λ at λ = 0.
        """
        values, vectors = self.eigen
        size = len(values)
        with np.errstate(invalid="ignore", over="ignore"):
            # One column per output, or a single one.
            modes = vectors.T @ (self.start - self.targets).reshape(size, -1)
            residuals = np.einsum("nk,tkc->tnc", vectors, left[:, :, None] * modes, optimize=True)
            train = self.targets + residuals.reshape(len(left), *self.start.shape)
            if self._other is None:
                return train, None
            kernel, start = self._other
            # Directions of zero eigenvalues have no part in K(x, X) either.
            unmoved = np.where(np.isfinite(limit), limit, 0.0)
            scaled = np.where(values > 0, gone / np.where(values > 0, values, 1.0), unmoved)
            moved = np.einsum(
                "nk,tkc->tnc", kernel @ vectors, scaled[:, :, None] * modes, optimize=True
            )
        return train, start - moved.reshape(len(left), *start.shape)

    def _matrix(self, field: str, kernel: ArrayLike, rows: int) -> FloatArray:
        """Reshape to (rows, n), or to (rows · C, n · C) with joint indices of point and output."""
        array = real_array(kernel, field)
        n, num_outputs = self.start.shape
        if array.shape not in ((rows, n), (rows, n, num_outputs, num_outputs)):
            raise InvalidInput(
                field,
                f"shape {array.shape}",
                f"({rows}, {n}) or ({rows}, {n}, {num_outputs}, {num_outputs})",
            )
        if not np.isfinite(array).all():
            raise InvalidInput(field, "infinite or missing entries", "finite numbers")
        return (
            array
            if array.ndim == 2
            else array.transpose(0, 2, 1, 3).reshape(rows * num_outputs, n * num_outputs)
        )


def _sequence(given: ArrayLike, field: str) -> FloatArray:
    """Return times or steps as a vector of numbers from 0 to infinity."""
    found = real_array(given, field)
    if found.ndim != 1 or not (found >= 0).all():
        raise InvalidInput(field, given, "a sequence of numbers from 0 on, infinity included")
    return found


class OneSamplePath(NamedTuple):
    """The recursion, row t at step t.

    Attributes:
        u: ‖x‖²η²(g − y)²/(m d), (T + 1,): the squared residual, 2 L ‖x‖²η²/(m d).
        v: ηλ, (T + 1,): the curvature in units of the rate; the linear model diverges above 2.
        w: ‖x‖²η²(g − y) y/(m d), (T + 1,).
    """

    u: FloatArray
    v: FloatArray
    w: FloatArray


def one_sample_catapult(u: float, v: float, w: float, num_steps: int) -> OneSamplePath:
    """Return the catapult dynamics of one training sample.

    The quadratic model g of f = a·relu(Wx/√d)/√m trained on one sample with L = ½(g − y)².

    u' = (1 − v + u + w)² u,  v' = v − u(4 − v) − 4w,  w' = (1 − v + u + w) w: exact, without a
    network. Rows after divergence are not finite.

    >>> one_sample_catapult(0.01, 1.0, 0.0, 1).u.round(6).tolist()  # v = 1: one step is enough
    [0.01, 1e-06]

    Args:
        u: squared residual ‖x‖²η²(g − y)²/(m d) at the start.
        v: ηλ at the start.
        w: ‖x‖²η²(g − y) y/(m d) at the start.
        num_steps: steps after the start.

    Returns:
        u, v and w at every step, ``num_steps + 1`` rows.

    Raises:
        InvalidInput: for a start that is not finite, or a negative number of steps.

    Source: Zhu, Liu, Radhakrishnan & Belkin 2022, §3.
    """
    rows = [(real_number(u, "u"), real_number(v, "v"), real_number(w, "w"))]
    whole_number(num_steps, "num_steps", 0)
    with np.errstate(over="ignore", invalid="ignore"):
        now = np.asarray(rows[0], np.float64)
        for _ in range(num_steps):
            u_, v_, w_ = now
            factor = 1 - v_ + u_ + w_
            now = np.array([factor**2 * u_, v_ - u_ * (4 - v_) - 4 * w_, factor * w_])
            rows.append(tuple(now))
    return OneSamplePath(*np.asarray(rows, np.float64).T)
