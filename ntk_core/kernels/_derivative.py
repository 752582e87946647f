"""Directional derivatives of kernels: one forward derivative of the structured kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
from jax import Array
from jaxtyping import Float, PyTree

from ntk_core.kernels._blocks import checked_limit, in_blocks, rows_within
from ntk_core.kernels._callable import contract_jacobians, row_jacobian
from ntk_core.kernels._empirical import DEFAULT_MEMORY, VIEW_COPIES, rows_of
from ntk_core.kernels._generic import as_function, as_it_is, moving_of
from ntk_core.kernels._output_pairs import ALL_PAIRS
from ntk_core.kernels._scaled_outputs import (
    has_entries_beyond,
    has_lost_entries,
    refuse_rows_without_outputs,
)
from ntk_core.traced import (
    Apply,
    Inputs,
    Model,
    Program,
    Views,
    accepted,
    agree,
    checked,
    kernels_of,
)

Moving = tuple[PyTree, PyTree]  # a tree of arrays and its derivative
KernelPair = tuple[Float[Array, "n n C C"], Float[Array, "n n C C"]]


def kernel_derivative(
    net: Model,
    params: PyTree,
    direction: PyTree,
    x: Inputs,
    *,
    memory_limit: float | None = None,
) -> KernelPair:
    """(K(w), d/ds K(w + s·u) at s = 0) of φ(f), each of shape (n, n, C, C).

    Takes twice the memory and about three times the work of the kernel, and no array of size n·C·p
    for a network of this package.

    Args:
        net: a network, or any callable ``apply(params, x) -> (n, C)``, as in ``empirical_ntk``.
        direction: u, a tree like ``params``; untrained leaves are ignored.
        memory_limit: bytes for intermediate values, 4 GiB by default.

    Raises:
        InvalidInput: for a memory limit that is not above 0.
    """
    checked_limit(memory_limit)
    net, inputs, num_outputs = accepted(net, params, x)
    rows = rows_of(net, inputs)
    program = checked(net, params, rows)
    view: Callable[[Array], Moving]
    contract: Callable[[Moving, Moving | None], Moving]
    if program is not None and program.is_structured:
        leaves = program.leaves(params)
        moves = program.leaves(direction)
        row_bytes = 2 * VIEW_COPIES * program.row_bytes
        view = partial(_views, program, leaves, moves)
        contract = partial(_contract, program, leaves)
    else:
        function = program or as_it_is(as_function(net))
        moving, moves = (moving_of(function, tree)[0] for tree in (params, direction))
        row_bytes = 2 * 2 * num_outputs * sum(leaf.size * leaf.dtype.itemsize for leaf in moving)
        view = partial(_jacobians, function, params, moves)
        contract = _contract_jacobians
    size = min(len(rows), rows_within(memory_limit or DEFAULT_MEMORY, row_bytes))
    pair: KernelPair = in_blocks(view, contract, rows, None, size)
    if has_lost_entries(pair):
        refuse_rows_without_outputs(net, params, rows)
    # Entries beyond the type allow no comparison.
    if program is not None and not has_entries_beyond(program, params, rows, pair[0]):
        agree(program, params, rows, None, pair[0])
    return pair


@partial(jax.jit, static_argnums=0)
def _views(program: Program, leaves: list[Array], moves: list[Array], x: Array) -> Moving:
    places = list(program.names)

    def views(moving: list[Array]) -> Views:
        values = dict(enumerate(leaves)) | dict(zip(places, moving, strict=True))
        return program.views(list(values.values()), x)

    return jax.jvp(views, ([leaves[at] for at in places],), ([moves[at] for at in places],))


@partial(jax.jit, static_argnums=0)
def _contract(program: Program, leaves: list[Array], left: Moving, right: Moving | None) -> Moving:
    def kernel(views1: Views, views2: Views | None = None) -> Array:
        # Passing one object twice computes only the upper triangle.
        found: Array = kernels_of(program, False, leaves, views1, views2)
        return found

    return _moved(kernel, left, right)


@partial(jax.jit, static_argnums=0)
def _jacobians(apply: Apply, params: PyTree, moves: list[Array], x: Array) -> Moving:
    leaves, restore = moving_of(apply, params)
    return jax.jvp(lambda w: row_jacobian(apply, restore(w), x), (leaves,), (moves,))


@jax.jit
def _contract_jacobians(left: Moving, right: Moving | None) -> Moving:
    return _moved(lambda u, v=None: contract_jacobians(ALL_PAIRS, u, v), left, right)


def _moved(contract: Callable[..., Array], left: Moving, right: Moving | None) -> Moving:
    """A contraction of one or two views, and its derivative."""
    sides = (left,) if right is None else (left, right)
    return jax.jvp(contract, tuple(side[0] for side in sides), tuple(side[1] for side in sides))
