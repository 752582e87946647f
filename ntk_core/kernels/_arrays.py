"""Arrays of real numbers, as kernels and targets must be."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from ntk_core.errors import InvalidInput
from ntk_core.traced import checked_array


def real_array(x: object, field: str) -> Array | np.ndarray:
    """Return ``x`` as an array of real numbers, without copying arrays.

    Raises:
        InvalidInput: for anything else, complex numbers too.
    """
    if isinstance(x, Sequence) and any(isinstance(each, jax.Array) for each in jax.tree.leaves(x)):
        x = jnp.asarray(x)
    array = checked_array(x, field)
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise InvalidInput(field, f"complex numbers, of type {array.dtype}", "an array of reals")
    return array


def in_float64(x: object, field: str) -> Float[np.ndarray, "..."]:
    """Return real numbers as a NumPy array in float64.

    Raises:
        InvalidInput: for other values, and inside of ``jax.jit`` and ``jax.grad``, where
            numbers are unknown.
    """
    array = real_array(x, field)
    refuse_traced(array, field)
    return np.asarray(array).astype(np.float64)


def refuse_not_finite(rows: Array | np.ndarray, field: str) -> None:
    """Refuse inputs with NaN or infinite numbers.

    Raises:
        InvalidInput: with the remedy.
    """
    if not np.isfinite(np.asarray(rows)).all():
        raise InvalidInput(field, "inputs that are not finite", "finite numbers")


def in_jax_floats(kernel: Float[np.ndarray, "..."], field: str) -> Array:
    """Return a kernel of float64 in the type of JAX's floats, without compiling.

    Raises:
        InvalidInput: for a largest entry beyond the range of this type.
    """
    kind = np.dtype(jnp.result_type(float))
    smallest = float(np.finfo(kind).tiny)
    greatest = float(np.finfo(kind).max)
    found = float(np.abs(kernel).max(initial=0.0))
    if found and not smallest <= found <= greatest:
        raise InvalidInput(
            field,
            f"inputs with kernel entries up to {found:.0e}",
            f"inputs in other units: entries of {kind} are from {smallest:.0e} to {greatest:.0e}",
        )
    return jnp.asarray(kernel.astype(kind))


def refuse_traced(x: object, field: str) -> None:
    """Refuse traced arrays in functions that compute on the host.

    ``jax.jit``, ``jax.grad`` and ``jax.vmap`` trace.

    Raises:
        InvalidInput: with the remedy.
    """
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(x)):
        raise InvalidInput(
            field,
            "an array inside of jax.jit, jax.grad or jax.vmap",
            "known numbers: this function computes on the host, so call it outside of them",
        )


def unit(x: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """Return x divided by its largest entry, so that squares are finite; 0 stays 0."""
    largest = np.abs(x).max(initial=0.0)
    return x / largest if 0 < largest < np.inf else x
