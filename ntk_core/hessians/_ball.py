"""The largest Hessian norm, or kernel change, in a ball around the initialization.

Theorems about transition to linearity hold in a ball B(w0, R), not only at w0. The supremum
over the ball cannot be computed exactly; projected gradient ascent from several starts
gives a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypedDict, Unpack, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Bool, Float, Key, PyTree

from ntk_core.errors import InvalidInput
from ntk_core.hessians._compiled import with_layers
from ntk_core.hessians._norm import checked_request
from ntk_core.hessians._operator import (
    operator,
    output_scalar,
    refuse_asymmetric_output,
    second_derivatives,
)
from ntk_core.hessians._range import refuse_out_of_range
from ntk_core.hessians._requests import check_count, check_radii, checked_key
from ntk_core.kernels import (
    ScaledNorm,
    checked_model,
    empirical_ntk,
    exponent_of,
    kernel_change,
    moving_of,
    refuse_traced,
    scaled,
    widened,
)
from ntk_core.networks.architectures import Network
from ntk_core.progress import Progress
from ntk_core.traced import (
    Inputs,
    Model,
    Route,
    Trainable,
    accepted,
    accepted_input,
    restricted,
    with_usual_settings,
)

QUANTITIES = ("hessian", "kernel")
MAX_MATVECS = 64
MAX_FURTHER_STEPS = 400  # of the best ascent in each ball
# An ascent ends when a window of steps gains no more than this. The pace is 0.5% in 50 steps; as it
# varies from window to window, 50 further steps then find at most about 1% (measured in
# docs/math/hessian_against_width.md).
STEPS_OF_A_WINDOW = 10
SMALL_GAIN = 1e-3


@dataclass(frozen=True, repr=False)
class BallSup:
    """A lower bound of the supremum over B(w0, radius), with its search.

    Attributes:
        value: the largest value found, a lower bound of the supremum.
        at_center: the value at w0 (for the kernel change 0).
        random: the value in each random direction, at distance ``radius``, (num_starts,).
        ascent: the value after each step from each start, (num_starts, num_steps + 1);
            step 0 is the start.
        radius: R, in the Euclidean norm of all trained weights.
        quantity: ``"hessian"`` or ``"kernel"``.
        num_starts: number of ascents; also of random directions.
        converged: whether every Hessian norm behind the values reached its tolerance.
        further: the value after each further step of the best ascent, (num_further,).
        last_gain: by which share the last 10 further steps raised the value; at most 0.001 unless
            the search ended at its largest number of steps. NaN without further steps.
    """

    value: float
    at_center: float
    random: np.ndarray
    ascent: np.ndarray
    radius: float
    quantity: str
    num_starts: int
    converged: bool
    further: np.ndarray
    last_gain: float

    def __repr__(self) -> str:
        verdict = "" if self.converged else "; norms not converged"
        return (
            f"BallSup({self.quantity} up to {self.value:.4g} within {self.radius:g}, "
            f"{self.at_center:.4g} at the center; {self.num_starts} ascents{verdict})"
        )


class Ascents(TypedDict, total=False):
    """Options of the search in a ball.

    Attributes:
        num_starts: number of ascents, and of random directions; 3 by default.
        num_steps: of each ascent; 8 by default.
        max_further_steps: of the best ascent, which continues while 10 steps raise the value by
            more than 0.1%; 400 by default.
        key: of the random directions; a fixed one by default.
        output_index: a, of every Hessian norm; None for the largest norm over all outputs.
        tolerance, max_matvecs: of every Hessian norm, as in ``hessian_norm``.
        progress: gets a report after each ascent, and can stop the search.
        trainable: the parameters that move, as for ``empirical_ntk``.
        route: of every norm and kernel, as for ``empirical_ntk``.
    """

    num_starts: int
    num_steps: int
    max_further_steps: int
    key: Key[Array, ""] | None
    output_index: int | None
    tolerance: float | None
    max_matvecs: int
    progress: Progress | None
    trainable: Trainable
    route: Route


@overload
def ball_sup(
    net: Model,
    params: PyTree,
    x: Inputs,
    radius: float,
    quantity: str = "hessian",
    **ascents: Unpack[Ascents],
) -> BallSup: ...
@overload
def ball_sup(
    net: Model,
    params: PyTree,
    x: Inputs,
    radius: Sequence[float],
    quantity: str = "hessian",
    **ascents: Unpack[Ascents],
) -> list[BallSup]: ...
@with_usual_settings
def ball_sup(
    net: Model,
    params: PyTree,
    x: Inputs,
    radius: float | Sequence[float],
    quantity: str = "hessian",
    **ascents: Unpack[Ascents],
) -> BallSup | list[BallSup]:
    """Return a lower bound of a supremum over a ball.

    A lower bound of sup { Q(w) : ‖w − w0‖ <= radius }, by projected ascent from random
    starts on the sphere.

    Q is the Hessian norm of one output for one input (``x`` without batch axis), with
    ``output_index=None`` the largest one over all outputs; or the kernel change
    ‖K(w) − K(w0)‖_F / ‖K(w0)‖_F over a batch ``x`` of inputs. The gradient of a simple eigenvalue
    is that of its Rayleigh quotient with the eigenvector held fixed. Each step moves by ``radius``
    along the unit gradient, then back into the ball; a step that lowers Q is rejected, and the next
    one is half as long. The best ascent continues while 10 steps raise Q by more than 0.1%, a pace
    of 0.5% in 50 steps.

    Functions move all floating-point parameters, or those of ``trainable``. Increasing radii give a
    list, where each ball starts from the best point of the smaller one. Needs memory for about six
    copies of the weights.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net, x = FullyConnected(width=8, depth=1), jnp.ones(3)
    >>> params = net.init(jax.random.key(0), (3,))
    >>> found = ball_sup(net, params, x, 0.1, num_starts=1, num_steps=2)
    >>> found.value >= found.at_center
    True

    Args:
        net: a network, or any callable ``apply(params, x) -> (n, C)``, as for ``hessian_norm``
            and ``empirical_ntk``.
        params: w₀, the center.
        x: one input without batch axis for ``hessian``, a batch for ``kernel``.
        radius: of the ball, or several increasing radii.
        quantity: ``hessian`` or ``kernel``.
        ascents: ``num_starts``, ``num_steps``, ``max_further_steps``, ``output_index``,
            ``tolerance``, ``max_matvecs`` and ``key`` of the ascents; ``progress`` gets their
            reports; ``trainable`` chooses the parameters that move, ``route`` the derivatives, as
            for ``empirical_ntk``.

    Returns:
        The largest value found, with the values along each ascent; a list for several radii.

    Raises:
        InvalidInput, TooLarge, TracingDisagrees: as ``hessian_norm``; also for a quantity, radius
            or number out of range.

    Source: Liu, Zhu & Belkin 2020, Theorem 3.2 and Proposition 2.3.
    """
    found = _ball_sups(net, params, x, _as_list(radius), quantity, **ascents)
    return found if np.ndim(radius) else found[0]


def _as_list(radius: Any) -> list[float]:
    """Return radii as a list."""
    if isinstance(radius, Sequence | np.ndarray | Array) and not isinstance(radius, str):
        return np.ravel(radius).tolist()
    return [radius]


def _ball_sups(
    net: Model,
    params: PyTree,
    x: Inputs,
    radii: Sequence[float],
    quantity: str = "hessian",
    *,
    num_starts: int = 3,
    num_steps: int = 8,
    max_further_steps: int = MAX_FURTHER_STEPS,
    key: Key[Array, ""] | None = None,
    output_index: int | None = 0,
    tolerance: float | None = None,
    max_matvecs: int = MAX_MATVECS,
    progress: Progress | None = None,
    trainable: Trainable = None,
    route: Route = "auto",
) -> list[BallSup]:
    """Return :func:`ball_sup` for increasing radii.

    A larger ball contains the smaller ones, so it inherits their best value and point: bounds never
    decrease with the radius.
    """
    _check_numbers(radii, num_starts, num_steps, max_further_steps)
    net = restricted(net, params, trainable, route)
    measure = QuantityAtPlace(net, params, x, quantity, output_index, tolerance, max_matvecs)
    origin = measure(params)
    best = origin
    key = checked_key(key)
    progress = progress or Progress()
    found = []
    for number, radius in enumerate(radii):
        of_ball = progress.part(number, len(radii)).named(f"ball of radius {radius:g}")
        ascents = _ascents(measure, params, best, radius, num_starts, num_steps, key, of_ball)
        best = max([best, *ascents.starts, *ascents.ends], key=lambda place: place.value)
        further, last_gain = continued(measure, params, best, radius, max_further_steps)
        best = further[-1] if further else best
        visited = [origin, *ascents.starts, *ascents.visited, *further]
        of_radius = BallSup(
            value=best.value,
            at_center=origin.value,
            random=np.asarray([place.value for place in ascents.starts]),
            ascent=np.asarray(ascents.values),
            radius=float(radius),
            quantity=quantity,
            num_starts=num_starts,
            converged=all(place.converged for place in visited),
            further=np.asarray([place.value for place in further]),
            last_gain=last_gain,
        )
        found.append(of_radius)
    return found


class _Ascents(NamedTuple):
    """Ascents in one ball.

    Attributes:
        starts: a random point of the sphere for each ascent.
        ends: the last point of each ascent.
        visited: all points of all ascents.
        values: of these points, one list for each ascent.
    """

    starts: list[Place]
    ends: list[Place]
    visited: list[Place]
    values: list[list[float]]


def _ascents(
    measure: QuantityAtPlace,
    center: PyTree,
    best: Place,
    radius: float,
    num_starts: int,
    num_steps: int,
    key: Array,
    progress: Progress,
) -> _Ascents:
    """Ascend from random points of the sphere; ``best`` is the best point of the smaller ball."""
    found = _Ascents([], [], [], [])
    for index in range(num_starts):
        direction_key = jax.random.fold_in(key, index)
        random = measure(sphere_point(measure.net, center, direction_key, radius))
        start = random
        # The first ascent continues from the best point of the smaller ball if that exceeds its
        # random direction.
        if index == 0 and best.value > random.value:
            start = best
        visited = ascend(measure, center, start, radius, num_steps)
        found.starts.append(random)
        found.ends.append(visited[-1])
        found.visited.extend(visited)
        found.values.append([place.value for place in visited])
        progress.report((index + 1) / (num_starts + 1), f"ascent {index + 1}")
    return found


def continued(
    measure: QuantityAtPlace, center: PyTree, best: Place, radius: float, most: int
) -> tuple[list[Place], float]:
    """Return the points of up to ``most`` further steps, and the gain of the last window.

    Every window begins with steps of full length, since rejected steps may have shortened
    the last ones too much.
    """
    visited: list[Place] = []
    gain = math.nan
    while len(visited) < most:
        num_steps = min(STEPS_OF_A_WINDOW, most - len(visited))
        before = visited[-1] if visited else best
        visited += ascend(measure, center, before, radius, num_steps)[1:]
        after = visited[-1].value
        gain = after / before.value - 1 if before.value > 0 else math.nan
        if not gain > SMALL_GAIN:
            break
    return visited, gain


def ascend(
    measure: QuantityAtPlace, center: PyTree, start: Place, radius: float, num_steps: int
) -> list[Place]:
    """Return the start and the point after each step; a rejected step halves the next one."""
    visited = [start]
    length = radius
    for _ in range(num_steps):
        place = visited[-1]
        point = step_inside(measure.net, center, place.point, place.direction, length, radius)
        proposed = measure(point)
        if proposed.value < place.value:
            length /= 2
        if proposed.value >= place.value:
            visited.append(proposed)
        else:
            visited.append(place)  # rejected
    return visited


def _check_numbers(
    radii: Sequence[float], num_starts: int, num_steps: int, max_further_steps: int
) -> None:
    check_radii(radii)
    check_count("num_starts", num_starts, 1)
    check_count("num_steps", num_steps, 0)
    check_count("max_further_steps", max_further_steps, 0)


class Place(NamedTuple):
    """Q at some parameters, with its direction.

    The direction is the unit gradient of moving parameters, None along a path. ``converged`` is
    whether Lanczos converged.
    """

    value: float
    point: PyTree
    direction: PyTree
    converged: bool


class QuantityAtPlace:
    """Maps parameters to a :class:`Place` for one quantity."""

    def __init__(
        self,
        net: Model,
        params: PyTree,
        x: Inputs,
        quantity: str,
        output_index: int | None,
        tolerance: float | None,
        max_matvecs: int,
        with_direction: bool = True,
    ):
        if quantity not in QUANTITIES:
            raise InvalidInput("quantity", quantity, "one of " + ", ".join(QUANTITIES))
        refuse_traced((params, x), "x")
        self._quantity = quantity
        self._with_direction = with_direction
        if quantity == "hessian":
            net, one, num_outputs = accepted_input(net, params, x)
            self.net = with_layers(net, params, one)
            self._x = one
            indices = range(num_outputs) if output_index is None else [output_index]
            relative, _ = checked_request(
                self.net, params, one, num_outputs, indices[0], tolerance, max_matvecs, None
            )
            self._num_outputs = num_outputs
            self._indices = indices
            self._settings = (relative, max_matvecs)
        else:
            net, inputs, _ = accepted(net, params, x)
            self.net = checked_model(net, params, inputs)
            self._x = jnp.asarray(inputs)
            self._kernel = empirical_ntk(self.net, params, inputs)

    def __call__(self, params: PyTree) -> Place:
        if self._quantity == "kernel":
            return self._of_kernel(params)
        places = [self._of_hessian(params, index) for index in self._indices]
        largest = max(places, key=lambda place: place.value)
        return largest._replace(converged=all(place.converged for place in places))

    def _of_hessian(self, params: PyTree, output_index: int) -> Place:
        refuse_asymmetric_output(self.net, params, self._x, self._num_outputs, output_index)
        with jax.default_matmul_precision("highest"):
            value, direction, converged = _hessian_ascent(
                self.net, params, self._x, output_index, *self._settings, self._with_direction
            )
            refuse_out_of_range(self.net, params, self._x, output_index, value)
        return Place(float(value), params, direction, bool(converged))

    def _of_kernel(self, params: PyTree) -> Place:
        with jax.default_matmul_precision("highest"):
            value, direction = _kernel_ascent(
                self.net, params, self._x, self._kernel, self._with_direction
            )
        return Place(float(value), params, direction, True)


@partial(jax.jit, static_argnums=(0, 5, 6))
def _hessian_ascent(
    net: Model,
    params: PyTree,
    x: Array,
    output_index: int | Array,
    tolerance: float | Array,
    max_matvecs: int,
    with_direction: bool,
) -> tuple[Float[Array, ""], PyTree, Bool[Array, ""]]:
    hessian = operator(net, params, x, output_scalar(net, output_index))
    found = hessian.leading(jax.random.key(0), max_matvecs, tolerance)
    value = jnp.abs(found.values[0])
    if not with_direction:
        return value, None, found.converged
    moving, restore = moving_of(net, params)
    vector, _ = moving_of(net, hessian.direction(found.vectors[0]))

    def rayleigh(moving: PyTree) -> Array:
        """Return yᵀ H(w) y times the sign of the eigenvalue.

        y is the fixed eigenvector of the present point.
        """
        bent = second_derivatives(net, restore(moving), x, vector)[output_index]
        return jnp.sign(found.values[0]) * bent

    return value, unit(jax.grad(rayleigh)(moving)), found.converged


@partial(jax.jit, static_argnums=(0, 4))
def _kernel_ascent(
    net: Model, params: PyTree, x: Array, kernel: Float[Array, "n n C C"], with_direction: bool
) -> tuple[Float[Array, ""], PyTree]:
    moving, restore = moving_of(net, params)

    def half_square(moving: PyTree) -> tuple[Array, Array]:
        now = empirical_ntk(net, restore(moving), x)
        # The gradient of ½‖now − K‖², divided by a power of two that prevents overflow.
        moved = jax.lax.stop_gradient(now - kernel)
        moved = scaled(moved, exponent_of(moved))
        return jnp.sum(moved * (now - kernel)), kernel_change(now, kernel)

    if not with_direction:
        _, change = half_square(moving)
        return change, None
    gradient, change = jax.grad(half_square, has_aux=True)(moving)
    return change, unit(gradient)


def tree_norm(tree: PyTree) -> Float[Array, ""]:
    """Return the Euclidean norm of all numbers of a tree, at any scale of them."""
    norm = _scaled_tree_norm(tree)
    return jnp.ldexp(norm.size, norm.exponent)


def unit(tree: PyTree) -> PyTree:
    """Return a tree divided by its norm, at any scale; zeros remain zeros."""
    norm = _scaled_tree_norm(tree)
    size = jnp.where(norm.size > 0, norm.size, 1)
    return jax.tree.map(
        lambda leaf: (scaled(widened(leaf), norm.exponent) / size).astype(leaf.dtype), tree
    )


def _scaled_tree_norm(tree: PyTree) -> ScaledNorm:
    """Return the norm of a tree, without squares that overflow or vanish."""
    leaves = [widened(leaf) for leaf in jax.tree.leaves(tree)]
    exponent = exponent_of(*leaves)
    squares = jnp.zeros((), leaves[0].dtype)
    for leaf in leaves:
        squares += jnp.sum(scaled(leaf, exponent) ** 2)
    return ScaledNorm(jnp.sqrt(squares), exponent)


@partial(jax.jit, static_argnums=0)
def sphere_point(
    net: Model, center: PyTree, key: Key[Array, ""], radius: Float[ArrayLike, ""]
) -> PyTree:
    """Return a random point at distance ``radius`` from the center, uniform on the sphere."""
    moving, restore = moving_of(net, center)
    leaves, structure = jax.tree.flatten(moving)
    keys = jax.random.split(key, len(leaves))
    draws = []
    for one_key, leaf in zip(keys, leaves, strict=True):
        draws.append(jax.random.normal(one_key, leaf.shape, leaf.dtype))
    direction = jax.tree.unflatten(structure, draws)
    if isinstance(net, Network):
        direction = _without_masked_edges(direction, center)
    return restore(
        jax.tree.map(lambda w, d: (w + radius * d).astype(w.dtype), moving, unit(direction))
    )


def _without_masked_edges(direction: PyTree, center: PyTree) -> PyTree:
    """Return the direction of a network's layers, with 0 for masked edges, which are fixed."""
    found = dict(direction)
    for name, moved in direction.items():
        if moved and "mask" in center[name]:
            found[name] = {**moved, "weight": moved["weight"] * center[name]["mask"]}
    return found


@partial(jax.jit, static_argnums=0)
def step_inside(
    net: Model,
    center: PyTree,
    point: PyTree,
    direction: PyTree,
    length: Array | float,
    radius: Array | float,
) -> PyTree:
    """Return the point after a step of this length, moved back into the ball along its radius."""
    start, restore = moving_of(net, center)
    now, _ = moving_of(net, point)
    offset = jax.tree.map(lambda w, d, c: w + length * d - c, now, direction, start)
    shrink = jnp.minimum(1, radius / tree_norm(offset))
    return restore(jax.tree.map(lambda c, o: (c + shrink * o).astype(c.dtype), start, offset))
