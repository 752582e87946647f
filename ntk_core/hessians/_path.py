"""Largest Hessian norm or kernel change along a path of parameters."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput
from ntk_core.hessians._ball import MAX_MATVECS, QuantityAtPlace, tree_norm
from ntk_core.kernels import moving_of
from ntk_core.traced import Inputs, Model, Route, Trainable, restricted, with_usual_settings


@dataclass(frozen=True, repr=False)
class PathSup:
    """A quantity along a path of parameters, such as training.

    Attributes:
        value: the largest value along the path.
        values: at each point, (num_points,).
        distances: ‖w − w0‖ at each point, w0 the first one, (num_points,).
        quantity: ``"hessian"`` or ``"kernel"``.
        converged: whether every Hessian norm behind the values reached its tolerance.
    """

    value: float
    values: np.ndarray
    distances: np.ndarray
    quantity: str
    converged: bool

    def __repr__(self) -> str:
        verdict = "" if self.converged else "; norms not converged"
        return (
            f"PathSup({self.quantity} up to {self.value:.4g}; {len(self.values)} points, "
            f"distances up to {self.distances.max():.4g}{verdict})"
        )


@with_usual_settings
def path_sup(
    net: Model,
    path: Iterable[PyTree],
    x: Inputs,
    quantity: str = "hessian",
    *,
    output_index: int | None = 0,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    trainable: Trainable = None,
    route: Route = "auto",
) -> PathSup:
    """Return the supremum of a quantity along a path.

    sup_t Q(w_t) and all Q(w_t) along a path w0, w1, … of parameters; Q and arguments as
    for :func:`ball_sup`.

    Q is ‖H‖ of one output or, with ``output_index=None``, the largest one; or
    ‖K(w_t) − K(w0)‖_F / ‖K(w0)‖_F. ``path`` may be a generator: only w0 and the current point are
    stored.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> path_sup(net, [params, params], x).distances.tolist()
    [0.0, 0.0]

    Args:
        net: a network, or any callable, as for :func:`ball_sup`.
        path: parameters w₀, w₁, …
        x, quantity, output_index, tolerance, max_matvecs, trainable, route: as for
            :func:`ball_sup`. Distances are those of the chosen parameters.

    Returns:
        The supremum and the value at every point.

    Raises:
        InvalidInput: for an empty path or an unknown quantity.

    Source: Liu, Zhu & Belkin 2020, §6 (sup over the steps of training).
    """
    points = iter(path)
    first = next(points, None)
    if first is None:
        raise InvalidInput("path", "no parameters", "at least one point")
    net = restricted(net, first, trainable, route)
    measure = QuantityAtPlace(
        net, first, x, quantity, output_index, tolerance, max_matvecs, with_direction=False
    )
    origin, _ = moving_of(net, first)
    values = []
    distances = []
    converged = True
    for point in itertools.chain([first], points):
        place = measure(point)
        values.append(place.value)
        moving, _ = moving_of(net, point)
        difference = jax.tree.map(jnp.subtract, moving, origin)
        distances.append(float(tree_norm(difference)))
        converged = converged and place.converged
    return PathSup(max(values), np.asarray(values), np.asarray(distances), quantity, converged)
