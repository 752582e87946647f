"""Kernels of shape (n, n): outputs traced, the diagonal alone, or outputs as rows."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, PyTree

from ntk_core.errors import InvalidInput
from ntk_core.kernels._arrays import real_array
from ntk_core.kernels._callable import types_of_function
from ntk_core.kernels._empirical import checked_model, unchecked_ntk
from ntk_core.kernels._generic import as_function
from ntk_core.kernels._scaled_outputs import refuse_out_of_range
from ntk_core.kernels._small_outputs import has_small_outputs, is_narrow
from ntk_core.traced import (
    Inputs,
    Model,
    Program,
    Route,
    Rows,
    Trainable,
    accepted,
    restricted,
    with_usual_settings,
)

ROWS_AT_ONCE = 16  # our choice


@with_usual_settings
def trace_outputs(kernel: Float[ArrayLike, "..."]) -> Float[Array, "n1 n2"]:
    """Average a kernel over its outputs.

    K[i, j] = (1/C) Σ_a K[i, j, a, a].

    >>> trace_outputs(np.ones((3, 2, 4, 4))).shape
    (3, 2)

    Args:
        kernel: an array (n1, n2, C, C).

    Returns:
        An array (n1, n2).

    Raises:
        InvalidInput: for other shapes.

    Source: Novak et al. 2020 (``trace_axes``).
    """
    array = jnp.asarray(real_array(kernel, "kernel"))
    if array.ndim != 4 or array.shape[2] != array.shape[3]:
        raise InvalidInput("kernel", f"shape {array.shape}", "shape (n1, n2, C, C)")
    return jnp.einsum("ijaa->ij", array) / array.shape[2]


@with_usual_settings
def diagonal_ntk(
    net: Model,
    params: PyTree,
    x: Inputs,
    *,
    trainable: Trainable = None,
    route: Route = "auto",
) -> Float[Array, "n C C"]:
    """Return the tangent kernel of every input with itself.

    K[i, a, b] = ⟨∇_w f_a(x_i), ∇_w f_b(x_i)⟩, in memory proportional to n.

    >>> from ntk_core.networks.architectures import FullyConnected
    >>> net = FullyConnected(width=8, num_outputs=2)
    >>> diagonal_ntk(net, net.init(jax.random.key(0), 5), jnp.ones((3, 5))).shape
    (3, 2, 2)

    Args:
        net: a network, or any callable, as for ``empirical_ntk``.
        params: its weights.
        x: inputs (n, *input_shape).
        trainable, route: as for ``empirical_ntk``.

    Returns:
        An array (n, C, C).

    Raises:
        InvalidInput, TracingDisagrees: as ``empirical_ntk``.

    Source: Jacot, Gabriel & Hongler 2018.
    """
    net, inputs, _ = accepted(restricted(net, params, trainable, route), params, x)
    found = unchecked_diagonal(net, params, inputs)
    refuse_out_of_range(net, params, inputs, found)
    return found


def unchecked_diagonal(net: Model, params: PyTree, inputs: Rows) -> Float[Array, "n C C"]:
    """Return :func:`diagonal_ntk` even if entries overflow or vanish."""
    same = checked_model(net, params, inputs)
    rows = jnp.asarray(inputs)
    function = as_function(same)

    def own(row: Array) -> Array:
        kernel: Array = unchecked_ntk(same, params, row[None])[0, 0]
        return kernel

    # Numbers inside of compiled loops are unknown, so their size is not seen.
    if not isinstance(rows, jax.core.Tracer) and is_narrow(
        types_of_function(function, params, rows)
    ):
        return jnp.stack([own(row) for row in rows])
    found: Array = jax.lax.map(own, rows, batch_size=min(ROWS_AT_ONCE, len(rows)))
    if isinstance(same, Program) and has_small_outputs(same, found):
        found = jnp.stack([own(row) for row in rows])
    return found


def as_matrix(kernel: ArrayLike, field: str = "kernel") -> np.ndarray:
    """Reshape (n1, n2, C, C) to (n1 C, n2 C), rows (i, a); return (n1, n2) unchanged.

    Raises:
        InvalidInput: for another shape.
    """
    array = np.asarray(real_array(kernel, field))
    if array.ndim == 4 and array.shape[2] == array.shape[3]:
        n1, n2, num_outputs, _ = array.shape
        return array.transpose(0, 2, 1, 3).reshape(n1 * num_outputs, n2 * num_outputs)
    if array.ndim != 2:
        raise InvalidInput(field, f"shape {array.shape}", "shape (n1, n2) or (n1, n2, C, C)")
    return array
