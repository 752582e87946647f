"""``output_index=None``: a result for each output."""

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

from jax import Array
from jaxtyping import Key, PyTree

from ntk_core.traced import Inputs, Model, Route, Trainable, accepted_input, restricted

Result = TypeVar("Result")


class LanczosOptions(TypedDict, total=False):
    """Options of Lanczos iterations, as of :func:`hessian_norm`."""

    tolerance: float | None
    max_matvecs: int
    key: Key[Array, ""] | None


class BlockOptions(LanczosOptions, total=False):
    """Options of :func:`hessian_block_norms`."""

    trainable: Trainable
    route: Route


class EigenpairOptions(BlockOptions, total=False):
    """Options of :func:`hessian_eigenpairs`."""

    num_wanted: int
    num_directions: int


class DensityOptions(TypedDict, total=False):
    """Options of :func:`hessian_density`."""

    num_probes: int
    num_steps: int
    key: Key[Array, ""] | None
    trainable: Trainable
    route: Route


def for_each_output(
    measure: Callable[..., Result],
    net: Model,
    params: PyTree,
    x: Inputs,
    *,
    trainable: Trainable = None,
    route: Route = "auto",
    **options: Any,
) -> list[Result]:
    """Return what ``measure`` returns for each output, with these options.

    Raises:
        InvalidInput: as ``measure``.
    """
    chosen = restricted(net, params, trainable, route)
    _, _, num_outputs = accepted_input(chosen, params, x)
    return [measure(chosen, params, x, index, **options) for index in range(num_outputs)]
