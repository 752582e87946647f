"""Do forward and reverse mode give one derivative? Transposes that users define need not.

``jax.lax.custom_linear_solve`` takes the solvers of a linear map and of its transpose from the
user. Reverse mode uses the latter, forward mode the former. If the two do not belong together,
kernels and training have another derivative than linear models and Hessians, and neither can be
called the right one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Jaxpr, subjaxprs
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput
from ntk_core.traced._drawn import draws, numbers_for
from ntk_core.traced._layers import wide
from ntk_core.traced._program import Apply, Rows, roughest_type
from ntk_core.traced._quickly import quickly
from ntk_core.traced._row_trees import layout_of
from ntk_core.traced._trace import moving_leaves

STATED = frozenset({"custom_linear_solve"})  # operations whose transpose is stated
# Operations that JAX cannot apply to each row of a batch, or whose rows users define.
WITHOUT_ROWS = {
    "linear_call": "jax.custom_derivatives.linear_call",
    "custom_vmap_call": "jax.custom_batching.custom_vmap",
}
ROWS_COMPARED = 2
# Relative difference that counts in every type, since iterative solvers stop early; our choice.
LARGEST_GAP = 1e-3


class OtherTranspose(InvalidInput):
    """A function whose forward and reverse derivatives differ.

    >>> str(OtherTranspose("net", "a rule", "another"))
    'net: a rule cannot be used; use another'
    """


def refuse_other_transposes(net: Apply, program: Jaxpr, params: PyTree, x: Rows) -> None:
    """Refuse a function whose stated transposes are not those of its linear maps.

    ⟨u, J v⟩ by forward mode is compared with ⟨Jᵀ u, v⟩ by reverse mode, at the given numbers and at
    random ones, at every call. Functions without stated transposes cost nothing.

    Args:
        net: a function that compares equal if it computes the same.
        program: its equations.

    Raises:
        OtherTranspose: with the relative difference.
        InvalidInput: for a ``linear_call`` or a ``custom_vmap``.
    """
    for primitive, name in WITHOUT_ROWS.items():
        if _has(program, frozenset({primitive})):
            remedy = "plain operations or jax.custom_vjp: JAX does not differentiate it row by row"
            raise InvalidInput("net", name, remedy)
    if not _has(program, STATED):
        return
    epsilon = float(jnp.finfo(roughest_type(program)).eps)
    allowed = max(LARGEST_GAP, 10 * epsilon**0.5)
    with jax.core.eval_context():
        numbers = numbers_for((params, x[:ROWS_COMPARED]))
        if numbers is None:
            return
        places = [numbers]
        layout = layout_of(net)
        each_leaf = None if layout is None else layout.each
        for drawn, (rows,) in draws(numbers[0], numbers[1], each_leaf=each_leaf):
            places.append((drawn, rows))
        for own, rows in places:
            try:
                forward, reverse, size = map(float, quickly(_both)(net, own, jnp.asarray(rows)))
            except (
                TypeError,
                NotImplementedError,
            ):
                # No forward mode: reverse mode is the only one.
                return
            gap = abs(forward - reverse)
            # Numbers that are not finite allow no verdict.
            if np.isfinite(gap) and gap > allowed * size:
                raise OtherTranspose(
                    "net",
                    f"a transpose that is none, by {gap / size:.0%} of the derivative,",
                    "solvers of one linear map and of its transpose in custom_linear_solve; "
                    "symmetric=True needs a symmetric map",
                )


def _has(program: Jaxpr, names: frozenset[str]) -> bool:
    if any(eqn.primitive.name in names for eqn in program.eqns):
        return True
    return any(_has(inner, names) for inner in subjaxprs(program))


def _both(net: Apply, params: PyTree, x: Array) -> tuple[Array, Array, Array]:
    """Return ⟨u, J v⟩ by both modes, and the size of its terms."""
    leaves, structure = jax.tree.flatten(params)
    places = [at for at, moves in enumerate(moving_leaves(net, params)) if moves]
    moving = [leaves[at] for at in places]
    keys = jax.random.split(jax.random.key(0), len(places) + 1)

    def outputs(moving: list[Array]) -> Array:
        values = list(leaves)
        for at, leaf in zip(places, moving, strict=True):
            values[at] = leaf
        return net(jax.tree.unflatten(structure, values), x)

    v = []
    for key, leaf in zip(keys[1:], moving, strict=True):
        unit = jnp.maximum(jnp.max(jnp.abs(leaf), initial=0), jnp.finfo(leaf.dtype).tiny)
        v.append(unit * jax.random.normal(key, leaf.shape, leaf.dtype))
    found, pull = jax.vjp(outputs, moving)
    u = jax.random.normal(keys[0], found.shape).astype(found.dtype)
    (pulled,) = pull(u)
    _, pushed = jax.jvp(outputs, (moving,), (v,))
    ahead = (pushed * u).astype(wide(found.dtype))
    back = []
    for leaf, direction in zip(pulled, v, strict=True):
        back.append((leaf * direction).astype(wide(leaf.dtype)).ravel())
    terms = jnp.concatenate(back)
    size = jnp.maximum(jnp.linalg.norm(ahead), jnp.linalg.norm(terms))
    return jnp.sum(ahead), jnp.sum(terms), size
