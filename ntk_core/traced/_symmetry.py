"""Are second derivatives symmetric? Those of custom derivative rules need not be.

A ``jax.custom_vjp`` replaces the first derivative of a function. Its second derivative is the
derivative of that rule, which is a Hessian only if the rule is the derivative of something.
Straight-through estimators and reversed gradients are not: uᵀ H v differs from vᵀ H u, and no
number of this matrix is a norm or an eigenvalue of a Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Bool, Float, PyTree

from ntk_core.errors import InvalidInput
from ntk_core.networks.architectures import Network
from ntk_core.traced._custom_rules import has_rules
from ntk_core.traced._derivatives import linearized
from ntk_core.traced._drawn import numbers_for
from ntk_core.traced._layers import wide
from ntk_core.traced._precision import perturbed
from ntk_core.traced._program import Apply, Model, Rows, roughest_type
from ntk_core.traced._quickly import quickly
from ntk_core.traced._trace import moving_leaves, program_of, refuse_no_curvature

# Relative asymmetry that counts in every type. Correct rules reach 7e-6 in float32 and
# 0.035 in bfloat16.
LARGEST_GAP = 0.1
NUM_ROUNDINGS = 4  # of the parameters, to measure what rounding does to the asymmetry
EXPLAINED = 5  # an asymmetry of this multiple of what rounding does is no rounding; our choice
Scalar = Callable[..., Array]


class AsymmetricHessian(InvalidInput):
    """A function whose second derivatives, by its own derivative rules, are no symmetric matrix.

    >>> str(AsymmetricHessian("net", "a rule", "another"))
    'net: a rule cannot be used; use another'
    """


@dataclass(frozen=True)
class OutputMixture:
    """⟨weights, f⟩ of a model; equal for equal models, as compiled programs need."""

    function: Apply

    def __call__(self, params: PyTree, x: Array, weights: Float[Array, "n C"]) -> Float[Array, ""]:
        outputs = self.function(params, x)
        return jnp.sum(outputs.astype(wide(outputs.dtype)) * weights)


class Asymmetry(NamedTuple):
    """Bilinear forms at pairs of random directions, in units of the largest entry of H u and H v.

    Attributes:
        gap: uᵀ H v − vᵀ H u, (2,).
        size: the larger one of the norms of the terms u_p (H v)_p and v_p (H u)_p, (2,).
            Random sums of these terms, and of their rounding, are proportional to it at every
            number of parameters.
    """

    gap: Float[Array | np.ndarray, " pairs"]
    size: Float[Array | np.ndarray, " pairs"]


def refuse_asymmetric(
    net: Model, params: PyTree, x: Rows, other: Rows, value: Scalar | None = None
) -> None:
    """Refuse a model with second derivatives that are not symmetric at these parameters.

    Models without custom derivative rules are symmetric, and cost nothing here.

    Args:
        net: an accepted model.
        params: where the Hessian is taken.
        x: rows, (n, ...).
        other: weights of the outputs, (n, C); with ``value``, its third argument.
        value: the differentiated scalar of (params, x, other); ⟨weights, f⟩ by default.

    Raises:
        AsymmetricHessian: with the relative asymmetry.
        NoSecondDerivative: for rules that have no derivatives themselves.
    """
    if isinstance(net, Network):
        return
    refuse_no_curvature(net)
    closed = program_of(net, params, x)
    if closed is not None and has_rules(closed.jaxpr):
        scalar = OutputMixture(net) if value is None else value
        check_symmetric(scalar, roughest_type(closed.jaxpr), params, x, other)


def random_weights(num_inputs: int, num_outputs: int) -> Float[np.ndarray, "n C"]:
    """Return weights of a mixture of all outputs, in which no two cancel."""
    shape = (num_inputs, num_outputs)
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def check_symmetric(value: Scalar, dtype: DTypeLike, params: PyTree, *arrays: Rows) -> None:
    """Refuse a scalar value(params, *arrays) with asymmetric second derivatives.

    They are those in the parameters.

    The difference counts if it is neither small nor explained by rounding of the parameters.
    Numbers that are unknown inside of ``jax.jit`` are replaced by random ones.

    Args:
        value: a function that compares equal if it computes the same.
        dtype: the least precise type of its computations.
        params, arrays: its arguments.

    Raises:
        AsymmetricHessian: with the relative asymmetry.
    """
    epsilon = float(jnp.finfo(dtype).eps)
    with jax.core.eval_context():
        numbers = numbers_for((params, arrays))
        if numbers is None:
            return
        params, arrays = numbers
        found = _measured(value, params, arrays)
        gap = np.abs(found.gap)
        allowed = min(10 * epsilon**0.5, LARGEST_GAP) * found.size
        # Sums that are not finite allow no verdict; neither does a Hessian of zeros.
        suspicious = np.isfinite(gap) & (gap > allowed)
        if not suspicious.any():
            return
        rounding = np.zeros_like(gap)
        for seed in range(NUM_ROUNDINGS):
            moved = _measured(value, perturbed(params, epsilon, seed), arrays)
            rounding = np.maximum(rounding, np.abs(moved.gap - found.gap))
    if not np.any(suspicious & (gap > EXPLAINED * rounding)):
        return
    share = float(np.max(np.where(suspicious, gap / np.where(suspicious, found.size, 1), 0)))
    raise AsymmetricHessian(
        "net",
        f"a function with an asymmetric Hessian ({share:.1%} of its size)",
        "custom_vjp and custom_jvp rules that are derivatives of their functions; "
        "straight-through, reversed and rescaled gradients have no Hessian",
    )


def _measured(value: Scalar, params: PyTree, arrays: tuple[Rows, ...]) -> Asymmetry:
    found = quickly(_asymmetry)(value, params, arrays)
    return Asymmetry(np.asarray(found.gap, np.float64), np.asarray(found.size, np.float64))


def _asymmetry(value: Scalar, params: PyTree, arrays: tuple[Array, ...]) -> Asymmetry:
    """Measure pairs of normal directions: one of equal entries, one in units of each parameter.

    The former resembles the norm of H; the latter shows small parameters beside large ones.
    """
    leaves, structure = jax.tree.flatten(params)
    places = [at for at, moves in enumerate(moving_leaves(value, params)) if moves]
    moving = [leaves[at] for at in places]

    def own(moving: list[Array]) -> Array:
        values = list(leaves)
        for at, leaf in zip(places, moving, strict=True):
            values[at] = leaf
        return value(jax.tree.unflatten(structure, values), *arrays)

    def drawn(key: Array, by_size: Bool[Array, ""]) -> list[Array]:
        found = []
        for at, leaf in enumerate(moving):
            largest = jnp.max(jnp.abs(leaf), initial=0)
            unit = jnp.where(by_size & (largest > 0), largest, 1).astype(leaf.dtype)
            normal = jax.random.normal(jax.random.fold_in(key, at), leaf.shape)
            found.append(unit * normal.astype(leaf.dtype))
        return found

    def pair(given: tuple[Array, Array]) -> Asymmetry:
        key, by_size = given
        u, v = (drawn(each, by_size) for each in jax.random.split(key))
        hu, hv = (list(map(_widened, product(each))) for each in (u, v))
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(each), initial=0) for each in (*hu, *hv)]))
        unit = jnp.where(largest > 0, largest, 1)
        one = [_widened(a) * (b / unit) for a, b in zip(u, hv, strict=True)]
        other = [_widened(a) * (b / unit) for a, b in zip(v, hu, strict=True)]
        gap = jnp.asarray(sum(map(jnp.sum, one)) - sum(map(jnp.sum, other)))
        squares = []
        for side in (one, other):
            squares.append(jnp.asarray(sum(jnp.sum(each**2) for each in side)))
        return Asymmetry(gap, jnp.sqrt(jnp.maximum(*squares)))

    with jax.default_matmul_precision("highest"):
        _, product = linearized(jax.grad(own), moving)
        return jax.lax.map(pair, (jax.random.split(jax.random.key(0)), jnp.array([False, True])))


def _widened(leaf: Array) -> Array:
    return leaf.astype(wide(leaf.dtype))
