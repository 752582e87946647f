"""Neurons divided into heads, whose operations wait until neurons are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import JaxprEqn

from ntk_core.kernels._limit_functions import bound, is_float_type
from ntk_core.kernels._limit_moments import Shape
from ntk_core.kernels._limit_values import (
    NEURONS,
    Blocks,
    Drawn,
    Known,
    Random,
    Value,
    Weight,
    refusal,
)
from ntk_core.traced import aval_of, shape_of

CUTS = frozenset({"slice", "split", "dynamic_slice", "gather"})


def kept_for_draws(eqn: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
    """Keep an operation on neurons of a head, to apply it to draws of them."""
    taken: list[Random | Known | Drawn] = []
    for operand in operands:
        if isinstance(operand, Weight | Blocks):
            what = "a parameter" if isinstance(operand, Weight) else "concatenated branches"
            raise refusal(eqn.primitive.name, f"of {what} and neurons of a head")
        taken.append(operand)
    num_heads = max(each.num_heads if isinstance(each, Drawn) else 1 for each in taken)
    name = eqn.primitive.name
    if name in CUTS:  # a part of a division, such as queries among queries, keys and values
        num_heads = 1
    elif name == "reshape":
        num_heads = _divisions(taken[0].shape, tuple(shape_of(eqn.outvars[0]))) or num_heads

    def result(number: int, *values: Array) -> Array:
        own = [
            jnp.asarray(value, _wide(aval_of(atom).dtype))
            for value, atom in zip(values, eqn.invars, strict=True)
        ]
        found = bound(eqn, own)
        return jnp.asarray(found[number] if eqn.primitive.multiple_results else found)

    results: list[Value] = []
    for number, outvar in enumerate(eqn.outvars):
        shape = tuple(shape_of(outvar))
        results.append(Drawn(shape, tuple(taken), partial(result, number), num_heads))
    return results


def _wide(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64) if is_float_type(dtype) else dtype


def divided(value: Random, shape: Shape, num_heads: int) -> Drawn:
    """Return pre-activations whose neurons are divided into heads."""
    return Drawn(shape, (value,), lambda array: array.reshape(shape), num_heads, value)


def heads_after(value: Random, shape: Shape) -> int | None:
    """Return how many heads a reshape makes of the last axis.

    It is None if that axis is not one of neurons.
    """
    if not value.axes or value.axes[-1] != (NEURONS,):
        return None
    return _divisions(value.shape, shape)


def _divisions(before: Shape, after: Shape) -> int | None:
    """Return into how many parts a reshape divides the last axis; None if it does not."""
    lead = before[:-1]
    rest = [size for size in after[len(lead) :] if size > 1]
    return rest[0] if after[: len(lead)] == lead and len(rest) > 1 else None
