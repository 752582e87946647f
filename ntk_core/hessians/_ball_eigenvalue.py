"""The smallest eigenvalue of the tangent kernel in a ball around the initialization.

PL* beyond w₀.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Key, PyTree

from ntk_core.hessians._ball import sphere_point, step_inside, unit
from ntk_core.hessians._requests import check_count, check_radii, checked_key
from ntk_core.kernels import checked_model, empirical_ntk, moving_of, refuse_traced
from ntk_core.progress import Progress
from ntk_core.traced import (
    Inputs,
    Model,
    Route,
    Trainable,
    accepted,
    restricted,
    with_usual_settings,
)

# Our choice: dense searches of small balls find little more (see tests).
NUM_STARTS = 3
NUM_STEPS = 32


@dataclass(frozen=True, repr=False)
class BallEigenvalue:
    """An upper bound of the infimum of λ_min(K(w)) over B(w0, radius), with its search.

    Attributes:
        value: the smallest value found, an upper bound of the infimum.
        at_center: λ_min(K(w0)).
        random: in each random direction, at distance ``radius``, (num_starts,).
        descent: the smallest value so far after each step, from w0 and from each random direction,
            (1 + num_starts, num_steps + 1).
        radius: R, in the Euclidean norm of all trained weights.
        num_starts: number of random directions.
    """

    value: float
    at_center: float
    random: np.ndarray
    descent: np.ndarray
    radius: float
    num_starts: int

    def __repr__(self) -> str:
        return (
            f"BallEigenvalue(down to {self.value:.4g} within {self.radius:g}, "
            f"{self.at_center:.4g} at the center; {self.num_starts} directions)"
        )


@with_usual_settings
def smallest_eigenvalue_in_ball(
    net: Model,
    params: PyTree,
    x: Inputs,
    radius: float,
    *,
    num_starts: int = NUM_STARTS,
    num_steps: int = NUM_STEPS,
    key: Key[Array, ""] | None = None,
    progress: Progress | None = None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> BallEigenvalue:
    """Search the smallest kernel eigenvalue in a ball.

    The smallest λ_min(K(w)) found by projected descents for ‖w − w0‖ <= radius; K over a batch
    ``x``.

    The square loss (1/2) Σ (f − y)² obeys μ-PL* wherever λ_min(K) >= μ. The gradient of a simple
    eigenvalue is that of its Rayleigh quotient with the eigenvector held fixed; step s of S moves
    by ``radius`` · (1 − s/S) along it, then back into the ball. One descent starts at w0, the
    others in random directions on the sphere. Steps may increase λ_min: where the two smallest
    eigenvalues cross, a monotone descent would stall at the kink.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones((1, 3))
    >>> params = net.init(jax.random.key(0), (3,))
    >>> found = smallest_eigenvalue_in_ball(net, params, x, 0.1, num_starts=1, num_steps=2)
    >>> found.value <= found.at_center
    True

    Args:
        net, params: a network, or any callable, as for ``empirical_ntk``, and w₀.
        x: a batch of inputs.
        radius: of the ball.
        num_starts, num_steps: number and length of the descents.
        key: of the random directions.
        progress: gets a report after each descent, and can stop the search.
        trainable, route: as for ``empirical_ntk``; only chosen parameters move.

    Returns:
        The smallest eigenvalue found, and that at w₀.

    Raises:
        InvalidInput: for a radius or number out of range.

    Source: Zhu, Liu & Belkin 2022, §4 (Eq. 16 and below).
    """
    check_radii([radius])
    check_count("num_starts", num_starts, 1)
    check_count("num_steps", num_steps, 0)
    refuse_traced((params, x), "x")
    net, inputs, _ = accepted(restricted(net, params, trainable, route), params, x)
    net = checked_model(net, params, inputs)
    rows = jnp.asarray(inputs)
    key = checked_key(key)
    progress = progress or Progress()
    visited: list[list[float]] = []
    for index in range(1 + num_starts):
        point = (
            sphere_point(net, params, jax.random.fold_in(key, index), radius) if index else params
        )
        values = []
        for step in range(num_steps + 1):
            value, downhill = _smallest(net, point, rows)
            values.append(float(value))
            if step < num_steps:
                point = step_inside(
                    net, params, point, downhill, radius * (1 - step / num_steps), radius
                )
        visited.append(values)
        progress.report((index + 1) / (1 + num_starts), f"descent {index + 1}")
    return BallEigenvalue(
        value=float(np.min(visited)),
        at_center=visited[0][0],
        random=np.asarray([values[0] for values in visited[1:]]),
        descent=np.minimum.accumulate(np.asarray(visited), axis=1),
        radius=float(radius),
        num_starts=num_starts,
    )


@partial(jax.jit, static_argnums=0)
def _smallest(net: Model, params: PyTree, x: Array) -> tuple[Float[Array, ""], PyTree]:
    """Return (λ_min, its unit direction of descent)."""
    moving, restore = moving_of(net, params)

    def matrix(moving: PyTree) -> Float[Array, "rows rows"]:
        kernel = empirical_ntk(net, restore(moving), x)
        rows = kernel.shape[0] * kernel.shape[2]
        return jnp.transpose(kernel, (0, 2, 1, 3)).reshape(rows, rows)

    with jax.default_matmul_precision("highest"):
        values, vectors = jnp.linalg.eigh(matrix(moving))
        vector = vectors[:, 0]
        gradient = jax.grad(lambda w: -vector @ matrix(w) @ vector)(moving)
        return values[0], unit(gradient)
