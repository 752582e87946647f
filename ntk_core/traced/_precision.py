"""Differences that rounding explains, and numbers outside of their type."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree

from ntk_core.errors import InvalidInput
from ntk_core.traced._contractions import whole
from ntk_core.traced._program import Program, Views
from ntk_core.traced._quickly import quickly

EXPLAINED = 30  # differences up to this multiple of one rounding are the program's precision


class Imprecise(InvalidInput):
    """A function whose derivatives rounding hides."""


class OutOfRange(InvalidInput):
    """A layer whose products are outside of their type."""


def rounded_otherwise(program: Program, params: PyTree) -> PyTree:
    """Return parameters perturbed by at most one rounding of the program."""
    return perturbed(params, program.epsilon)


def perturbed(params: PyTree, epsilon: float, seed: int = 0) -> PyTree:
    """Return parameters times 1 ± epsilon, with random signs."""
    rng = np.random.default_rng(seed)

    def moved(leaf: Array) -> Array:
        if not hasattr(leaf, "dtype") or not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        return (leaf * (1 + epsilon * rng.choice([-1, 1], jnp.shape(leaf)))).astype(leaf.dtype)

    return jax.tree.map(moved, params)


def refuse_imprecise(program: Program, difference: float, rounding: float) -> None:
    """Refuse a program whose precision explains the difference of two routes.

    Args:
        difference: relative difference of the routes.
        rounding: relative change of the plain route under perturbed rounding.
    """
    if not difference <= EXPLAINED * rounding:
        return
    kind = np.dtype(program.roughest).name
    raise Imprecise(
        "net",
        f"a function too sensitive to rounding in {kind}",
        f"a wider type than {kind}, since rounding of the parameters moves derivatives by "
        f"{rounding:.0e} of their size",
    )


def refuse_factors(program: Program, leaves: list[Array], rows: np.ndarray) -> None:
    """Refuse a layer whose products are outside of their type.

    They are a·a' and δ·δ', even if the product of both is inside. The derivatives δ of each output
    have their own size.

    Raises:
        InvalidInput: with the parameter and the sizes.
    """
    views = quickly(_views)(program, leaves, rows)
    for layer in program.layers:
        limits = jnp.finfo(layer.dtype)
        factors: list[tuple[str, Array]] = []
        for use in layer.uses:
            if use.kind != "look-up":
                factors.append(("inputs", views.inputs[use.name]))
            # (C, rows, …)
            factors += [("derivatives", each) for each in whole(views.cotangents[use.name])]
        for what, array in factors:
            largest = float(np.abs(np.asarray(array).astype(np.float64)).max(initial=0))
            square = largest**2
            is_exact = square >= float(limits.tiny) / float(limits.eps)
            if largest == 0 or (is_exact and square * array.size <= float(limits.max)):
                continue
            raise OutOfRange(
                "net",
                f"{what} around {largest:.0e} at the layer {layer.name}",
                "inputs and outputs in other units or a wider type: products are outside of "
                f"{np.dtype(layer.dtype)}",
            )


def refuse_small_derivatives(program: Program, leaves: list[Array], rows: np.ndarray) -> None:
    """Refuse derivatives of a few digits, near the least number of their type.

    Raises:
        InvalidInput: with the parameter and the size.
    """
    least = float(jnp.finfo(program.roughest).tiny)
    views = quickly(_views)(program, leaves, rows)
    for layer in program.layers:
        for use in layer.uses:
            cotangents = np.asarray(whole(views.cotangents[use.name])).astype(np.float64)
            largest = float(np.abs(cotangents).max(initial=0))
            if 0 < largest < 100 * least:
                raise OutOfRange(
                    "net",
                    f"derivatives around {largest:.0e} at the layer {layer.name}",
                    f"outputs in other units or a wider type: {np.dtype(program.roughest)} has all "
                    f"digits from {least:.0e} on",
                )


def _views(program: Program, leaves: list[Array], x: Array) -> Views:
    return program.views(leaves, x)
