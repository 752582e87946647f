"""Models whose outputs are divided by a power of two.

They serve kernels beyond the range of their numbers.

K of outputs around 1e30 has entries around 1e60, which float32 cannot represent. ΔK, distances and
predictions do not depend on the scale of the outputs, so the kernel of f / 2^e gives them.
"""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput
from ntk_core.kernels._generic import as_function, as_it_is, moving_of
from ntk_core.kernels._scale import exponent_of, widened
from ntk_core.traced import Apply, Model, Rows, takes_trees

SMALL_ENTRY = 1e-28  # below, rounding of float32 entries is no longer relative to their size
EXPONENTS_OF_MIXTURES = 8  # above and below one, of random weights; our choice
DIGITS = 4  # of smaller entries that the type still represents; our choice
EXAMINED_ROWS = 4  # our choice
STRETCH = 2**17  # entries that stay in a core's cache


@dataclass(frozen=True)
class ScaledOutputs:
    """f / 2^e of a function f; equal for equal functions, as compiled programs need.

    Attributes:
        function: f.
        exponent: e.
    """

    function: Apply
    exponent: int

    def __call__(self, params: PyTree, x: Array) -> Array:
        # Two factors, since 2^-e alone may be outside of the type.
        half = -self.exponent // 2
        outputs = self.function(params, x)
        return outputs * 2.0**half * 2.0 ** (-self.exponent - half)


def scaled_model(net: Model, params: PyTree, x: Rows) -> tuple[Model, int]:
    """Return (f / 2^e, e) with gradients of order one at the first inputs.

    (net, 0) for zero or infinite gradients. Mixtures of the outputs times 2^-e keep their digits in
    the outputs' type.
    """
    function = as_function(net)
    limits = jnp.finfo(_type_of_outputs(function, params, x))
    least = EXPONENTS_OF_MIXTURES // 2 - int(limits.maxexp)
    most = -int(limits.minexp) - EXPONENTS_OF_MIXTURES
    exponent = max(least, min(_gradient_exponent(net, params, x), most))
    return (ScaledOutputs(function, exponent), exponent) if exponent else (net, 0)


def _type_of_outputs(function: Apply, params: PyTree, x: Rows) -> np.dtype:
    return jax.eval_shape(function, params, jnp.asarray(x[:1])).dtype


def _gradient_exponent(net: Model, params: PyTree, x: Rows) -> int:
    """Return e with gradients of order 2^e at the first inputs; 0 for zero or infinite ones."""
    rows = jnp.asarray(x[:EXAMINED_ROWS])
    function = as_function(net)
    size = partial(_gradient_size, as_it_is(function), params, rows, net)
    # Gradients may overflow or vanish where those of a multiple of f do not.
    half = int(jnp.finfo(_type_of_outputs(function, params, x)).maxexp) // 2
    for power in (0, half, -half):
        exponent, is_known = map(int, size(2.0**power))
        if is_known:
            return exponent - power
    return 0


@partial(jax.jit, static_argnums=(0, 3))
def _gradient_size(
    function: Apply, params: PyTree, x: Array, net: Model, factor: ArrayLike
) -> tuple[Array, Array]:
    """Return the exponent of the gradients of factor · f, and whether they have one."""
    moving, restore = moving_of(net, params)
    outputs, pull = jax.vjp(lambda w: function(restore(w), x), moving)
    signs = jax.random.rademacher(jax.random.key(0), outputs.shape, outputs.dtype)
    (gradients,) = pull(signs * jnp.asarray(factor, outputs.dtype))
    entries = jnp.concatenate([widened(leaf).ravel() for leaf in jax.tree.leaves(gradients)])
    mantissas, _ = jnp.frexp(entries)  # 0 for denormal numbers that the processor reads as 0
    return exponent_of(entries), jnp.isfinite(entries).all() & mantissas.any()


def has_entries_beyond(net: Model, params: PyTree, x: Rows, kernel: PyTree) -> bool:
    """Whether entries of a known kernel overflow or vanish although the gradients do not."""
    return _decimal_beyond(net, params, x, kernel) is not None


def refuse_out_of_range(
    net: Model, params: PyTree, x: Rows, kernel: PyTree, largest: float | None = None
) -> None:
    """Refuse a kernel whose entries overflow or vanish although the gradients do not.

    Args:
        largest: its largest |entry|, if it is known.

    Raises:
        InvalidInput: with the size of the entries, and the remedy; for trees, with a row that has
            no outputs.
    """
    leaves = [*jax.tree.leaves(params), x, *jax.tree.leaves(kernel)]
    if any(isinstance(each, jax.core.Tracer) for each in leaves):
        return
    if largest is None:
        largest = largest_entry(kernel)
    if SMALL_ENTRY <= largest < math.inf:
        return
    refuse_rows_without_outputs(net, params, x)
    decimal = _decimal_beyond(net, params, x, kernel)
    if decimal is None:
        return
    dtype = jax.tree.leaves(kernel)[0].dtype
    limits = jnp.finfo(dtype)
    raise InvalidInput(
        "net",
        f"outputs with kernel entries around 1e{decimal:.0f}",
        f"outputs in other units, such as f / 1e{decimal / 2:.0f}; entries of {dtype} are from "
        f"{float(limits.tiny):.0e} to {float(limits.max):.0e}",
    )


def refuse_rows_without_outputs(net: Model, params: PyTree, x: Rows, field: str = "x") -> None:
    """Refuse rows of a tree whose outputs are not finite at finite parameters.

    A mask that selects nothing divides by 0. Rows of one array are kept, with results of NaN.

    Raises:
        InvalidInput: with these rows.
    """
    given = (*jax.tree.leaves(params), x)
    if not takes_trees(net) or any(isinstance(each, jax.core.Tracer) for each in given):
        return
    outputs = np.asarray(as_function(net)(params, jnp.asarray(x)))
    is_lost = ~np.isfinite(outputs).reshape(len(outputs), -1).all(axis=1)
    if not is_lost.any() or (is_lost.all() and has_lost_entries(moving_of(net, params)[0])):
        return
    lost = ", ".join(map(str, np.flatnonzero(is_lost)[:5]))
    raise InvalidInput(
        field,
        f"rows {lost}, whose outputs are not finite,",
        "rows with finite outputs; a mask that selects nothing divides by 0",
    )


def has_lost_entries(kernel: PyTree) -> bool:
    """Whether entries of a kernel, or of its parts, are known and not finite."""
    leaves = jax.tree.leaves(kernel)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return False
    return not largest_entry(leaves) < math.inf


def largest_entry(kernel: PyTree) -> float:
    """Return the largest |entry| of a known kernel, or of its parts; NaN if there is one."""
    return float(np.max([_largest(leaf) for leaf in jax.tree.leaves(kernel)]))


def _decimal_beyond(net: Model, params: PyTree, x: Rows, kernel: PyTree) -> float | None:
    """Return log10 of the size of entries that the type of the kernel cannot represent, or None."""
    leaves = jax.tree.leaves(kernel)
    if any(isinstance(each, jax.core.Tracer) for each in (*jax.tree.leaves(params), x, *leaves)):
        return None
    largest = largest_entry(leaves)
    if SMALL_ENTRY <= largest < math.inf:
        return None
    exponent = _gradient_exponent(net, params, x)
    # Products of one parameter have its type, at least float32, also where their sum has a wider
    # one.
    narrowest = leaves[0].dtype
    for leaf in (*jax.tree.leaves(params), x):
        kind = jnp.result_type(leaf)
        if jnp.issubdtype(kind, jnp.floating) and jnp.finfo(kind).bits < jnp.finfo(narrowest).bits:
            narrowest = jnp.promote_types(kind, jnp.float32)
    limits = jnp.finfo(narrowest)
    decimal = 2 * exponent * math.log10(2)
    # The size is an estimate from a few rows; smaller entries, and products within them,
    # would be denormal.
    smallest = math.log10(limits.tiny) + DIGITS
    if smallest < decimal < math.log10(limits.max) - DIGITS:
        return None
    return decimal


def has_small_entries(kernel: Rows) -> bool:
    """Whether all entries of a known kernel are too small to be exact to rounding."""
    return not isinstance(kernel, jax.core.Tracer) and _largest(kernel) < SMALL_ENTRY


def _largest(kernel: Rows) -> float:
    """Return the largest |entry|; NaN if there is one."""
    if jax.default_backend() != "cpu":
        return float(_largest_on_device(kernel))
    # The host reads it in place, without a compiled program, and each stretch once from memory.
    entries = np.asarray(kernel).reshape(-1)
    largest = 0.0
    for start in range(0, entries.size, STRETCH):
        stretch = entries[start : start + STRETCH]
        largest = np.maximum(largest, np.maximum(stretch.max(), -stretch.min()))
    return float(largest)


@jax.jit
def _largest_on_device(kernel: Array) -> Array:
    return jnp.max(jnp.abs(kernel), initial=0.0)
