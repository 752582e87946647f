"""Counts of neurons and of numbers in a Hessian direction, without JAX."""

from collections.abc import Sequence

from ntk_core.networks.graphs import LayerSize

LANCZOS_VECTORS = 20  # typical, until the residual is small


def small_space_pays(positions: int, fan_in: int, features: int) -> bool:
    """Whether Hessian directions of a layer live in the span of inputs and cotangents.

    With P positions below fan_in k and features F, a direction has P (k + F − P) numbers instead of
    k F. A Hessian product passes through it four times, with 2 P² (k + F) multiplications via the
    bases or P k F directly, and is orthogonalized twice: docs/math/hessian_in_a_small_space.md.
    """
    k = fan_in
    f = features
    p = positions
    if p >= min(k, f):
        return False
    return (
        4 * 2 * p**2 * (k + f) + 2 * LANCZOS_VECTORS * p * (k + f - p)
        < (4 * p + 2 * LANCZOS_VECTORS) * k * f
    )


def num_features(sizes: Sequence[LayerSize]) -> int:
    """Neurons of all layers for one input, at every position, and scores."""
    return sum(size.num_features for size in sizes)
