"""The smallest eigenvalue of the tangent kernel in a ball around the initialization: PL* beyond w₀."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Key, Shaped

from ntk_core.errors import InvalidInput
from ntk_core.hessians._ball import Place, ascend, free, sphere_point, unit
from ntk_core.kernels import empirical_ntk
from ntk_core.networks.architectures import Network, NetworkParams, merge


@dataclass(frozen=True)
class BallEigenvalue:
    """An upper bound of inf over B(w0, radius) of λ_min(K(w)), with what it rests on.

    Attributes:
        value: the smallest value met anywhere in the ball: an upper bound of the infimum.
        at_center: λ_min(K(w0)).
        random: in each random direction, at distance ``radius``, (num_starts,).
        descent: after each step from each start, (num_starts, num_steps + 1).
        radius: R, in the Euclidean norm of all trained weights.
        num_starts: number of descents; also of random directions.
    """

    value: float
    at_center: float
    random: np.ndarray
    descent: np.ndarray
    radius: float
    num_starts: int


def smallest_eigenvalue_in_ball(
    net: Network,
    params: NetworkParams,
    x: Shaped[Array, "n ..."],
    radius: float,
    *,
    num_starts: int = 3,
    num_steps: int = 8,
    key: Key[Array, ""] | None = None,
) -> BallEigenvalue:
    """The smallest λ_min(K(w)) that projected descent meets for ‖w − w0‖ <= radius; K over a batch ``x`` of inputs.

    The square loss (1/2) Σ (f − y)² obeys μ-PL* wherever λ_min(K) >= μ. The gradient of a simple eigenvalue is that of
    its Rayleigh quotient with the eigenvector held fixed; each step moves by ``radius`` along it, then back into the
    ball, and is halved where it does not go down.

    Raises:
        InvalidInput: for a radius or number out of range.

    Source: Zhu, Liu & Belkin 2022, §4 (Eq. 16 and below).
    """
    if not (np.isfinite(radius) and radius > 0):
        raise InvalidInput("radius", radius, "a finite number above 0")
    if num_starts < 1 or num_steps < 0:
        raise InvalidInput("num_starts", num_starts, "at least 1, with at least 0 steps each")
    center, fixed = net.partition(params)

    def measure(trained: NetworkParams, fixed: NetworkParams) -> Place:
        value, direction = _minus_smallest(net, trained, fixed, x)
        return Place(float(value), trained, direction, True)

    key = jax.random.key(0) if key is None else key
    starts = [
        measure(sphere_point(center, fixed, jax.random.fold_in(key, i), radius), fixed) for i in range(num_starts)
    ]
    visited = [[-place.value for place in ascend(measure, center, fixed, each, radius, num_steps)] for each in starts]
    at_center = -measure(center, fixed).value
    return BallEigenvalue(
        value=min(at_center, np.min(visited)),
        at_center=at_center,
        random=np.asarray([-place.value for place in starts]),
        descent=np.asarray(visited),
        radius=float(radius),
        num_starts=num_starts,
    )


@partial(jax.jit, static_argnums=0)
def _minus_smallest(
    net: Network, trained: NetworkParams, fixed: NetworkParams, x: Array
) -> tuple[Float[Array, ""], NetworkParams]:
    def matrix(trained: NetworkParams) -> Float[Array, "rows rows"]:
        kernel = empirical_ntk(net, merge(trained, fixed), x)
        rows = kernel.shape[0] * kernel.shape[2]
        return jnp.transpose(kernel, (0, 2, 1, 3)).reshape(rows, rows)

    with jax.default_matmul_precision("highest"):
        values, vectors = jnp.linalg.eigh(matrix(trained))
        vector = vectors[:, 0]
        gradient = jax.grad(lambda w: -vector @ matrix(w) @ vector)(trained)
        return -values[0], unit(free(gradient, fixed))
