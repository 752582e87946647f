"""Outputs so small that products of their derivatives vanish in a kernel.

K = Σ_layers (a·a')(δ·δ') may be inside of its type where δ·δ' is not: entries around 1e-30 of
inputs a around 1e4 have cotangents δ around 1e-19, whose products vanish in float32. Such outputs
are differentiated again, multiplied by powers of two. These are exact, so all other entries stay.

Derivatives in float16 lose digits below 6e-5, whatever the size of the kernel. There kernels of two
scales are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float, PyTree

from ntk_core.errors import InvalidInput
from ntk_core.kernels._output_pairs import ALL_PAIRS, OutputPairs
from ntk_core.traced import Program, Rows, is_narrow_type, wide

PAIRS_EXAMINED = 16  # of rows on each side, before all of them
# Bits of range that stay above the largest entries.
RESERVE = 4
# Of factors in float16, which are at most 2^13 and decrease by 2^4 until no derivative overflows.
NARROW_RESERVE = 3
NARROW_STEP = 4
ROUNDINGS = 4  # between kernels of two scales


class OutputFactors(NamedTuple):
    """Powers of two by which outputs are multiplied before they are differentiated.

    Attributes:
        factors: 2^e_c, (C,).
        reciprocals: 2^-e_c, (C,).
    """

    factors: Float[np.ndarray, " C"]
    reciprocals: Float[np.ndarray, " C"]

    @property
    def seeds(self) -> Float[Array, "C C"]:
        """The seed of the backward pass of each output."""
        return jnp.diag(jnp.asarray(self.factors))


class Types(NamedTuple):
    """Types of the numbers in a function and in its kernel.

    Attributes:
        num_outputs: C.
        output: of the outputs, and thus of the seeds.
        parts: in which the parts of the kernel are summed.
        roughest: the least precise one of the function.
    """

    num_outputs: int
    output: np.dtype
    parts: frozenset[np.dtype]
    roughest: DTypeLike

    @classmethod
    def of_program(cls, program: Program) -> Types:
        output = program.closed.out_avals[0].dtype
        return cls(program.num_outputs, output, program.part_types, program.roughest)


class Kernels(NamedTuple):
    """How kernels of one function and of its batches are computed.

    Attributes:
        compute: (factors or None) ↦ the kernel, or its parts.
        types: of the function.
        pairs: of outputs.
        has_one_side: whether the kernel is that of a batch with itself.
        has_output: whether a function φ of the differentiated outputs follows.
    """

    compute: Callable[[OutputFactors | None], Any]
    types: Types
    pairs: OutputPairs
    has_one_side: bool
    has_output: bool = False


class Known(NamedTuple):
    """A kernel, or its parts, and factors at which derivatives keep their digits; None for ones."""

    kernel: Any
    scale: OutputFactors | None


def with_small_outputs(kernels: Kernels, kernel: PyTree) -> Known:
    """Return a kernel, computed again where products of small derivatives vanish.

    One whose entries remain beyond a wide type is returned unchanged.

    Raises:
        InvalidInput: for derivatives that lose digits in a narrow type at every scale.
    """
    if is_narrow(kernels.types):
        return _in_narrow_type(kernels, kernel)
    scale = _factors_of_small_outputs(kernels, jax.tree.leaves(kernel))
    if scale is None:
        return Known(kernel, None)
    found = kernels.compute(scale)
    is_finite = all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(found))
    return Known(found, scale) if is_finite else Known(kernel, None)


def has_small_outputs(program: Program, blocks: Float[Array, "n C C"]) -> bool:
    """Whether an output is near the least number of its type in all of these blocks K[i, i]."""
    if isinstance(blocks, jax.core.Tracer):
        return False
    sizes = np.abs(np.asarray(blocks).diagonal(axis1=1, axis2=2)).max(0)  # (C,)
    border = _border(Types.of_program(program), [blocks])
    return _are_small(sizes[None].astype(np.float64), border)


def is_narrow(types: Types) -> bool:
    """Whether derivatives may leave the range of a type, as they do in float16."""
    return is_narrow_type(types.roughest)


def _factors_of_small_outputs(kernels: Kernels, leaves: list[Array]) -> OutputFactors | None:
    """Return the factors with which all outputs have entries of order one.

    None if no output of a known kernel, or of its parts, is near the least number of its type, or
    if other entries are not finite.
    """
    if kernels.pairs is ALL_PAIRS and kernels.has_output:
        return None  # the outputs that are differentiated are those before φ
    border = _border(kernels.types, leaves)
    sizes = _sizes(leaves, kernels.pairs, kernels.has_one_side, PAIRS_EXAMINED)  # (parts, C)
    if not _are_small(sizes, border):
        return None
    if not kernels.has_one_side:
        sizes = _sizes(leaves, kernels.pairs, kernels.has_one_side, None)
        if not _are_small(sizes, border):
            return None
    exponents = _exponents(kernels.types, sizes)
    return _factors(kernels.types, exponents) if exponents.any() else None


def _factors(types: Types, exponents: np.ndarray) -> OutputFactors:
    """Return 2^e and 2^-e of exponents (C,) or (1,)."""
    exponents = np.broadcast_to(exponents, (types.num_outputs,))
    one = np.ones((), wide(types.output))
    return OutputFactors(np.ldexp(one, exponents), np.ldexp(one, -exponents))


def _border(types: Types, leaves: list[Array]) -> float:
    """Return the least entry whose products are certain to be inside of their types."""
    return _border_of(types.parts | {np.dtype(leaf.dtype) for leaf in leaves})


@cache
def _border_of(types: frozenset[np.dtype]) -> float:
    return float(max(float(jnp.finfo(each).tiny) for each in types) ** 0.5)


def _are_small(sizes: Float[np.ndarray, "parts C"], border: float) -> bool:
    """Whether an output is below the border, in one part without being 0, or in all parts."""
    if sizes.min(initial=np.inf) >= border or not np.isfinite(sizes).all():
        return False
    has_small_part = (sizes > 0) & (sizes < border)
    vanishes = (sizes == 0).all(0)
    return bool(has_small_part.any() or vanishes.any())


def _exponents(types: Types, sizes: Float[np.ndarray, "parts C"]) -> np.ndarray:
    """Return e_c ≥ 0, so that 4^e_c times the least part of an output is around one."""
    least = np.where(sizes > 0, sizes, np.inf).min(0)  # (C,)
    largest = sizes.max(0)
    narrowest = min(
        types.parts, key=lambda each: int(jnp.finfo(each).maxexp), default=wide(types.roughest)
    )
    of_entries = int(jnp.finfo(narrowest).maxexp)
    of_outputs = int(jnp.finfo(types.output).maxexp)
    limit = min(of_entries // 2, of_outputs - 2) - RESERVE
    with np.errstate(divide="ignore"):
        wanted = np.floor(-np.log2(np.where(np.isfinite(least), least, 0)) / 2)
        allowed = np.floor((of_entries - 2 * RESERVE - np.log2(largest)) / 2)
    return np.clip(np.minimum(wanted, allowed), 0, limit).astype(int)


def _in_narrow_type(kernels: Kernels, kernel: PyTree) -> Known:
    """Return a kernel of which no derivative has lost digits, or refuse it.

    Powers of two are exact, so a kernel that depends on its factors has derivatives below the
    normal numbers of their type. The given kernel is compared with that of the largest factors
    whose derivatives do not overflow, and this one with the next.

    Raises:
        InvalidInput: if no factors keep all digits.
    """
    types = kernels.types
    is_uniform = kernels.pairs is OutputPairs.MEAN or (
        kernels.pairs is ALL_PAIRS and kernels.has_output
    )
    limits = jnp.finfo(types.roughest)
    most = int(min(limits.maxexp, jnp.finfo(types.output).maxexp)) - NARROW_RESERVE
    given = _own(kernel, kernels)
    exponents = np.full(1 if is_uniform else types.num_outputs, most)
    while True:
        found = kernels.compute(_factors(types, exponents))
        own = _own(found, kernels)
        is_lost = _lost_outputs(own)
        if is_uniform:
            is_lost = np.full(1, is_lost.any())
        if not is_lost.any():
            break
        if (exponents[is_lost] <= -most).any():
            return Known(kernel, None)  # numbers that are not finite at any scale
        exponents = np.where(is_lost, exponents - NARROW_STEP, exponents)
    unit = _factors(types, _exponents_of_gradients(own, most))
    if _agree(given, own, float(limits.eps)):
        return Known(kernel, unit)
    lower = _own(kernels.compute(_factors(types, exponents - NARROW_STEP)), kernels)
    if _agree(lower, own, float(limits.eps)):
        return Known(found, unit)
    kind = np.dtype(types.roughest).name
    raise InvalidInput(
        "net",
        f"derivatives that lose digits in {kind}",
        f"a wider type: at every scale of the outputs, some are outside of {kind}'s full digits, "
        f"{float(limits.tiny):.0e} to {float(limits.max):.0e}",
    )


def _exponents_of_gradients(parts: list[np.ndarray], most: int) -> np.ndarray:
    """Return e_c with which gradients have norms around one, (C,)."""
    sizes = np.sum([np.abs(part).reshape(-1, part.shape[-1]).max(0) for part in parts], axis=0)
    with np.errstate(divide="ignore"):
        wanted = np.round(-np.log2(sizes) / 2)
    return np.clip(wanted, -most, most).astype(int)


def _own(kernel: PyTree, kernels: Kernels) -> list[np.ndarray]:
    """Return the entries of equal outputs of each part, (rows, C) or (rows1, rows2, C)."""
    found = []
    for leaf in jax.tree.leaves(kernel):
        entries = _own_entries(np.asarray(leaf), kernels.has_one_side, None)
        if kernels.pairs is ALL_PAIRS:
            entries = entries.diagonal(axis1=-2, axis2=-1)
        elif kernels.pairs is OutputPairs.MEAN:
            entries = entries[..., None]
        found.append(np.asarray(entries, np.float64))
    return found


def _lost_outputs(parts: list[np.ndarray]) -> np.ndarray:
    """Whether entries of each output are not finite, (C,)."""
    found = [~np.isfinite(part).reshape(-1, part.shape[-1]).all(0) for part in parts]
    return np.logical_or.reduce(found)


def _agree(parts: list[np.ndarray], others: list[np.ndarray], epsilon: float) -> bool:
    """Whether entries agree up to rounding, each relative to the largest ones of its rows.

    Rows smaller than the square of rounding times the largest row have no digits of their own.
    """
    for one, two in zip(parts, others, strict=True):
        if not np.isfinite(one).all():
            return False
        size = np.abs(two)
        scale = size
        if size.ndim == 3:
            of_rows = size.max(1, keepdims=True)
            of_others = size.max(0, keepdims=True)
            scale = np.sqrt(of_rows * of_others)
        floor = epsilon**2 * size.reshape(-1, size.shape[-1]).max(0)  # (C,)
        gap = np.abs(one - two)
        if not (gap <= ROUNDINGS * epsilon * np.maximum(scale, floor)).all():
            return False
    return True


def _sizes(
    leaves: list[Array], pairs: OutputPairs, has_one_side: bool, most: int | None
) -> Float[np.ndarray, "parts C"]:
    """Return the largest |K[i, j, c, c]| of each output c and part; (parts, 1) for their mean.

    Those of a batch with itself are on the diagonal i = j. Otherwise at most ``most`` rows of each
    side are read.
    """
    # On a CPU the host reads entries in place, without a compiled program.
    is_on_host = jax.default_backend() == "cpu"
    found = []
    for leaf in leaves:
        kernel = np.asarray(leaf) if is_on_host else leaf
        entries = _own_entries(kernel, has_one_side, most)
        if pairs is ALL_PAIRS:
            entries = entries.diagonal(axis1=-2, axis2=-1)
        num_outputs = 1 if pairs is OutputPairs.MEAN else entries.shape[-1]
        absolute = jnp.abs(entries) if isinstance(entries, Array) else np.abs(entries)
        largest = absolute.reshape(-1, num_outputs).max(0)
        found.append(np.asarray(largest))
    return np.array(found, np.float64)


def _own_entries(kernel: Rows, has_one_side: bool, most: int | None) -> Rows:
    """Return entries (rows, …) of rows with themselves, or (rows1, rows2, …) of two sides."""
    if has_one_side:
        of_rows = kernel.diagonal(axis1=0, axis2=1)  # (…, rows)
        return of_rows.transpose(of_rows.ndim - 1, *range(of_rows.ndim - 1))
    if most is None:
        return kernel
    steps = [max(1, size // most) for size in kernel.shape[:2]]
    return kernel[:: steps[0], :: steps[1]]
