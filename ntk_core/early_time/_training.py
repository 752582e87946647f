"""Descent of a network from f = 0, and linear models in their features."""

from collections.abc import Iterable, Iterator
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from ntk_core.dynamics import Loss, Model, NetworkModel, Samples, Start
from ntk_core.early_time._features import LinearFeatures
from ntk_core.errors import InvalidInput, kind_of
from ntk_core.networks.architectures import Network, NetworkParams
from ntk_core.real_numbers import items_of, real_array
from ntk_core.streams import stream

EVALUATED_ROWS = 1000  # inputs per forward pass; bounds the memory of convolutions
_OUTPUT_LAYER = "output"


def early_start(
    net: Network, params: NetworkParams, x: NDArray, y: NDArray
) -> tuple[dict[str, Model], dict[str, Start], Samples]:
    """Return models, weights and data of ``descend`` for a network with one output, from f = 0.

    The loss is (1/2n) Σ (f(x_i) − f₀(x_i) − y_i)². Subtracting the initial outputs f₀ does not
    change the kernel (Hu, Xiao, Adlam & Pennington 2020, §3, App. A).

    Args:
        params: w₀, not overwritten.
    """
    trained, fixed = net.partition(jax.tree.map(jnp.copy, params))
    # ½(f − f₀ − y)² is the loss of f with targets y + f₀, so subtraction costs nothing.
    targets = jnp.asarray(y).reshape(-1) + _in_blocks(net, params, x)
    data = Samples(jnp.asarray(x), targets[:, None])
    model = NetworkModel(net, Loss("linear"))
    return {"network": model}, {"network": Start(trained, fixed)}, data


def layer_rates(params: NetworkParams, hidden: float, last: float) -> dict[str, Array]:
    """Return learning rates by layer: that of every layer but the last, and that of the last."""
    rates = {False: jnp.asarray(hidden), True: jnp.asarray(last)}
    return {name: rates[name.endswith(_OUTPUT_LAYER)] for name in params}


def outputs_in_blocks(net: Network, params: NetworkParams, x: NDArray) -> NDArray[np.float64]:
    """f(x), (n,), of a network with one output."""
    return np.asarray(_in_blocks(net, params, x), np.float64)


def _in_blocks(net: Network, params: NetworkParams, x: NDArray) -> Array:
    blocks = [x[first : first + EVALUATED_ROWS] for first in range(0, len(x), EVALUATED_ROWS)]
    return jnp.concatenate([_outputs(net, params, jnp.asarray(block)) for block in blocks])


def batch_order(n: int, batch_size: int, num_steps: int, seed: int) -> NDArray[np.int32]:
    """Return sample indices of each step, (num_steps, batch_size), reshuffled every epoch."""
    needed = num_steps * batch_size
    epochs = [
        np.argsort(stream(seed, epoch).random(n, dtype=np.float32), kind="stable").astype(np.int32)
        for epoch in range(-(-needed // n))
    ]
    return np.concatenate(epochs)[:needed].reshape(num_steps, batch_size)


@partial(jax.jit, static_argnums=0)
def _outputs(net: Network, params: NetworkParams, x: Array) -> Array:
    return net.apply(params, x)[:, 0]


Vector = NDArray[np.float64]

# Eigenvalues of G below this share of the largest are rounding of float32 inputs (1e-7, squared).
_RANK_SHARE = 1e-12


class LinearModel:
    """Linear model that a network follows early in training.

    f_lin(x) = ψ(x)·β on n training samples, everything in float64 and in the space of the k
    features.

    With G = ΨᵀΨ/n = U Λ Uᵀ and b = Ψᵀy/n the loss ½βᵀGβ − bᵀβ + const is quadratic, so
    descent has a closed form.

    Raises:
        InvalidInput: for inputs or targets that are not finite, or do not fit each other.

    Source: Hu, Xiao, Adlam & Pennington 2020, §3.

    >>> from ntk_core.early_time import activation_constants, two_layer_features
    >>> x = np.random.default_rng(0).standard_normal((20, 3))
    >>> features = two_layer_features(activation_constants("erf"), 3, 1.0, 0.1, 0.1)
    >>> model = LinearModel(features, x, x[:, 0])
    >>> bool(np.allclose(model.outputs(model.optimal_weights()), x[:, 0]))
    True
    """

    def __init__(self, features: LinearFeatures, x: NDArray, y: NDArray):
        self.features = features
        self._psi = features(x)
        self._y = real_array(y, "y").reshape(-1)
        if len(self._y) != len(self._psi):
            raise InvalidInput(
                "y", f"{self._y.size} numbers", f"{len(self._psi)}, one for each input"
            )
        if not np.isfinite(self._y).all():
            raise InvalidInput("y", "values NaN or infinite", "finite numbers")

    @cached_property
    def _modes(self) -> tuple[Vector, NDArray[np.float64], Vector, NDArray[np.bool_]]:
        """(λ, U, Uᵀb, whether λ is above rounding) of the directions of descent: min(k, n)."""
        n, k = self._psi.shape
        if n < k:
            _, singular, rows = np.linalg.svd(self._psi, full_matrices=False)
            eigenvalues = singular[::-1] ** 2 / n
            basis = rows[::-1].T
        else:
            eigenvalues, basis = np.linalg.eigh(self._psi.T @ self._psi / n)
        kept = eigenvalues > _RANK_SHARE * max(eigenvalues[-1], 0.0)
        return eigenvalues, basis, basis.T @ (self._psi.T @ self._y / n), kept

    @property
    def largest_eigenvalue(self) -> float:
        """λ_max of G, including the rate: descent diverges above 2."""
        return float(self._modes[0][-1])

    def weights_at(self, step: int) -> Vector:
        """β_t of full-batch descent from β₀ = 0: U (1 − (1 − Λ)ᵗ)/Λ Uᵀb, exactly."""
        eigenvalues, basis, target, kept = self._modes
        growth = np.full(len(eigenvalues), float(step))
        with np.errstate(over="ignore"):  # diverging models become infinite
            growth[kept] = (1 - (1 - eigenvalues[kept]) ** step) / eigenvalues[kept]
        return basis @ (growth * target)

    def optimal_weights(self) -> Vector:
        """β_∞: least squares of smallest norm, where descent ends."""
        eigenvalues, basis, target, kept = self._modes
        inverse = np.divide(1, eigenvalues, out=np.zeros_like(eigenvalues), where=kept)
        return basis @ (inverse * target)

    def after_batches(self, weights: Vector, batches: Iterable[NDArray]) -> Vector:
        """Return β after one minibatch step per array of sample indices.

        Raises:
            InvalidInput: for weights of another shape, and for batches that are no indices of
                samples.
        """
        weights = self._checked_weights(weights)
        for batch in self._checked_batches(batches):
            psi = self._psi[batch]
            weights = weights - psi.T @ (psi @ weights - self._y[batch]) / len(batch)
        return weights

    def outputs(self, weights: Vector) -> Vector:
        """ψ(x)·β on the training samples, (n,).

        Raises:
            InvalidInput: for weights of another shape.
        """
        return self._psi @ self._checked_weights(weights)

    def _checked_weights(self, weights: Vector) -> Vector:
        return real_array(weights, "weights", self._psi.shape[1:])

    def _checked_batches(self, batches: Iterable[NDArray]) -> Iterator[NDArray[np.int64]]:
        n = len(self._psi)
        for batch in items_of(batches, "batches", "arrays of sample indices"):
            indices = real_array(batch, "batches")
            whole = indices.astype(np.int64) if np.isfinite(indices).all() else np.empty(0, int)
            is_index = whole.size and np.array_equal(whole, indices)
            if whole.ndim != 1 or not is_index or whole.min() < 0 or whole.max() >= n:
                raise InvalidInput(
                    "batches", kind_of(batch), f"arrays of sample indices from 0 to {n - 1}"
                )
            yield whole


# Singular values below this share of the largest are rounding of float32 inputs.
_SPAN_SHARE = 1e-5


class InputSpan:
    """V_lin = {Xβ}: outputs of linear functions on n test inputs.

    Attributes:
        dimension: rank of X; one less than the number of pixels for images of mean 0.

    Source: Hu, Xiao, Adlam & Pennington 2020, §4.2.
    """

    def __init__(self, x: NDArray):
        flat = np.asarray(x, np.float64).reshape(len(x), -1)
        left, singular, _ = np.linalg.svd(flat, full_matrices=False)
        self._basis = left[:, singular > _SPAN_SHARE * singular[0]]
        self.dimension = self._basis.shape[1]

    def split(self, residual: NDArray) -> tuple[float, float]:
        """Split the loss (1/2n) ‖residual‖² into parts inside V_lin and in its complement."""
        inside = float(np.sum((self._basis.T @ residual) ** 2)) / (2 * len(residual))
        return inside, max(0.0, float(np.mean(np.square(residual))) / 2 - inside)
