"""Does differentiation leave the outputs as they are?

Custom derivative rules return values, too, and may change them.

JAX differentiates a function with a rule at the values that the rule returns, and evaluates it
without the rule. If the two differ, f(w) + J δ is no linear model of f, and a kernel is that
of another function.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Jaxpr
from jaxtyping import Float, PyTree

from ntk_core.errors import InvalidInput
from ntk_core.traced._custom_rules import has_rules
from ntk_core.traced._drawn import draws, numbers_for
from ntk_core.traced._layers import wide
from ntk_core.traced._precision import EXPLAINED, perturbed
from ntk_core.traced._program import Rows, roughest_type
from ntk_core.traced._quickly import quickly
from ntk_core.traced._row_trees import layout_of
from ntk_core.traced._trace import Seen

ROWS_COMPARED = 2
NUM_KEPT = 64
_COMPARED: list[Seen] = []  # at random numbers; the latest first


class OtherValues(InvalidInput):
    """A function with other outputs when it is differentiated.

    >>> str(OtherValues("net", "a rule", "another"))
    'net: a rule cannot be used; use another'
    """


def refuse_other_values(net: Seen, program: Jaxpr, params: PyTree, x: Rows) -> None:
    """Refuse a function whose derivative rules return other values than the function.

    Outputs are compared at the given numbers at every call, and once at random ones, each output on
    its own scale. Functions without custom rules cost nothing.

    Args:
        net: an accepted function.
        program: its equations.

    Raises:
        OtherValues: with the relative difference.
    """
    if not has_rules(program):
        return
    epsilon = float(jnp.finfo(roughest_type(program)).eps)
    with jax.core.eval_context():
        numbers = numbers_for((params, x))
        if numbers is None:
            return
        params = numbers[0]
        rows = _some_rows(net, *numbers)
        _refuse_at(net, params, rows, epsilon)
        if any(each == net for each in _COMPARED):
            return
        layout = layout_of(net)
        each_leaf = None if layout is None else layout.each
        for drawn, (others,) in draws(params, rows, each_leaf=each_leaf):
            if _refuse_at(net, drawn, others, epsilon):
                break
    _COMPARED[:] = [net, *_COMPARED][:NUM_KEPT]


def _some_rows(net: Seen, params: PyTree, x: Rows) -> Rows:
    """Return two rows, or all of them for a function of one number of rows."""
    some = x[:ROWS_COMPARED]
    try:
        jax.eval_shape(net, params, some)
    except (TypeError, ValueError):
        return x
    return some


def _refuse_at(net: Seen, params: PyTree, rows: Rows, epsilon: float) -> bool:
    """Compare the outputs at these numbers; return whether all of them were finite."""
    plain, ruled = _evaluated(net, params, rows)
    finite = np.isfinite(plain) & np.isfinite(ruled)
    gaps = np.abs(np.where(finite, plain, 0) - np.where(finite, ruled, 0))
    sizes = np.abs(np.where(finite, plain, 0)).max(0, keepdims=True)
    allowed = 10 * epsilon**0.5 * sizes
    if (gaps > allowed).any():
        moved, _ = _evaluated(net, perturbed(params, epsilon), rows)
        rounding = np.abs(np.where(finite, moved - plain, 0)).max(0, keepdims=True)
        wrong = gaps > np.maximum(allowed, EXPLAINED * rounding)
        if wrong.any():
            largest = float(np.max(gaps[wrong]))
            size = float(np.max(np.broadcast_to(sizes, gaps.shape)[wrong]))
            raise OtherValues(
                "net",
                f"a custom rule whose values differ by {largest:.0e} of {size:.0e}",
                "a custom_jvp or custom_vjp whose first result is the value of its function",
            )
    return bool(finite.all())


def _evaluated(
    net: Seen, params: PyTree, rows: Rows
) -> tuple[Float[np.ndarray, "n ..."], Float[np.ndarray, "n ..."]]:
    """Return the outputs without and with the rules, in float64."""
    plain, ruled = quickly(_both)(net, params, jnp.asarray(rows))
    return np.asarray(plain, np.float64), np.asarray(ruled, np.float64)


def _both(net: Seen, params: PyTree, x: Array) -> tuple[Array, Array]:
    leaves, structure = jax.tree.flatten(params)
    places = []
    for at, leaf in enumerate(leaves):
        if hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.inexact):
            places.append(at)

    def outputs(moving: list[Array]) -> Array:
        values = list(leaves)
        for at, leaf in zip(places, moving, strict=True):
            values[at] = leaf
        return net(jax.tree.unflatten(structure, values), x)

    moving = [leaves[at] for at in places]
    plain = outputs(moving)
    ruled, _ = jax.vjp(outputs, moving)
    return plain.astype(wide(plain.dtype)), ruled.astype(wide(ruled.dtype))
