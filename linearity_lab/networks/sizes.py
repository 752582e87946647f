"""Sizes of networks by counting, without JAX: the basis of estimates and limits."""

import functools
from collections.abc import Sequence

from linearity_lab.networks.spec import ArchitectureSpec
from ntk_core.networks.graphs import Composition, LayerSize, lay_out


def num_copies(architecture: ArchitectureSpec) -> int:
    """Number of computed networks: 2 if a copy makes the output 0 at w₀."""
    return 1 if architecture.initial_output == "random" else 2


def min_width(architecture: ArchitectureSpec, sizes: Sequence[LayerSize]) -> int:
    """Return the smallest hidden width, or expected in-degree with dropped edges.

    Source: Zhu, Liu & Belkin 2022, Eq. 8.
    """
    if architecture.record.by_in_degree:
        kept = 1 - architecture.written_out.drop_probability
        return max(1, round(kept * min(size.fan_in for size in sizes[1:])))
    return min(size.features for size in sizes[:-1])


@functools.lru_cache(maxsize=256)  # the same network at every width of a sweep
def _written_out(architecture: ArchitectureSpec) -> Composition:
    return architecture.written_out


@functools.lru_cache(maxsize=256)
def layer_sizes(
    architecture: ArchitectureSpec,
    width: int,
    input_shape: tuple[int, ...],
    num_outputs: int,
    dimensions: int = 2,
) -> tuple[LayerSize, ...]:
    """Return the layers of a network in order; convolutions have ``dimensions`` dimensions."""
    return lay_out(_written_out(architecture).steps, width, input_shape, dimensions, num_outputs)
