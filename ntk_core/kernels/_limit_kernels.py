"""Kernels of a traced program at infinite width.

What the program needs is found before anything is computed; rows are then taken in blocks.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import ClosedJaxpr

from ntk_core.kernels._gaussian import NUM_NODES
from ntk_core.kernels._limit_draws import NUM_MEANS
from ntk_core.kernels._limit_moments import Moments, NeedsAllPairs, NeedsDraws
from ntk_core.kernels._limit_program import Interpreter, Scale
from ntk_core.kernels._limit_values import Known, Value

# Our choice.
CHECKED_ROWS = 4
BLOCK_ENTRIES = 2**24  # pairs of inputs and positions at a time: 128 MiB per array in float64


class Kernel(enum.IntEnum):
    """Which kernel of one output."""

    NTK = 0  # products of derivatives
    NNGP = 1  # covariances of random outputs


BOTH = (Kernel.NTK, Kernel.NNGP)


class Needs(NamedTuple):
    """Requirements of a program.

    Attributes:
        all_pairs: pairs of different positions.
        draws: means over draws of neurons.
        quadrature: expectations without closed form; known after drawing, where there are draws.
        entries: pairs of positions of two inputs that are kept at a time.
    """

    all_pairs: bool
    draws: bool
    quadrature: bool
    entries: int


class Drawn(NamedTuple):
    """Means over draws of neurons.

    Attributes:
        kernels: each (n1, n2).
        sampling_error: ‖standard error‖ / ‖kernel‖ of the tangent kernel.
        quadrature: whether there were expectations without closed form.
    """

    kernels: dict[Kernel, np.ndarray]
    sampling_error: float
    quadrature: bool


class _How(NamedTuple):
    """How a block of rows is computed.

    Attributes:
        all_pairs: of positions.
        has_one_side: whether both sides are the same rows.
        num_nodes: of every quadrature.
        wanted: kernels.
    """

    all_pairs: bool
    has_one_side: bool
    num_nodes: int
    wanted: tuple[Kernel, ...]


@dataclass(frozen=True, eq=False)
class LimitProgram:
    """A program with its parameters, whose kernels are computed in float64.

    Everything here runs under ``jax.enable_x64(True)``.

    Attributes:
        program: of (*parameters, one row as a batch of one).
        parameters: weights, and numbers that are the same in every network.
        scales: of the weights, by number.
        is_kept: whether it serves further calls, so that compiling it pays.
    """

    program: ClosedJaxpr
    parameters: tuple[Value, ...]
    scales: Mapping[int, Scale]
    is_kept: bool = False
    _found: list[Needs] = field(default_factory=list)
    _last: list[Needs] = field(default_factory=list)  # found by following the program

    def kernels(
        self,
        left: Array,
        right: Array,
        num_nodes: int = NUM_NODES,
        wanted: tuple[Kernel, ...] = BOTH,
    ) -> dict[Kernel, np.ndarray]:
        """Return these kernels, (n1, n2) each, in blocks of rows."""
        needs = self.needs(left, right, wanted)
        num_rows = max(1, BLOCK_ENTRIES // (len(right) * needs.entries))
        blocks: dict[Kernel, list[np.ndarray]] = {kernel: [] for kernel in wanted}
        for start in range(0, len(left), num_rows):
            rows = left if num_rows >= len(left) else left[start : start + num_rows]
            how = _How(needs.all_pairs, rows is right, num_nodes, wanted)
            for kernel, block in self._of_rows(rows, right, how).items():
                blocks[kernel].append(np.asarray(block))
        return {kernel: np.concatenate(each) for kernel, each in blocks.items()}

    def drawn_kernels(self, left: Array, right: Array, num_nodes: int = NUM_NODES) -> Drawn:
        """Return means over draws of neurons, which all inputs share."""
        joint = left if right is left else jnp.concatenate([left, right])
        is_exact = True

        def one(key: Array) -> dict[Kernel, Array]:
            nonlocal is_exact
            moments = Moments(len(joint), len(joint), True, num_nodes, key)
            found = self._followed(moments, joint, joint)
            is_exact = moments.is_exact
            return found

        means = jax.vmap(one)(jax.random.split(jax.random.key(0), NUM_MEANS))
        if joint is not left:
            means = {each: found[:, : len(left), len(left) :] for each, found in means.items()}
        kernels = {each: np.asarray(found.mean(axis=0)) for each, found in means.items()}
        spread = np.asarray(means[Kernel.NTK].std(axis=0, ddof=1)) / math.sqrt(NUM_MEANS)
        norm = max(np.linalg.norm(kernels[Kernel.NTK]), np.finfo(float).tiny)
        return Drawn(kernels, float(np.linalg.norm(spread) / norm), not is_exact)

    def needs(self, left: Array, right: Array, wanted: tuple[Kernel, ...] = BOTH) -> Needs:
        """Follow the program without computing; a kept one then is not followed again."""
        if not self._found:
            self._found.append(self._new_needs(left, right, wanted))
        return self._found[0]

    def _new_needs(self, left: Array, right: Array, wanted: tuple[Kernel, ...]) -> Needs:
        for all_pairs in (False, True):
            how = _How(all_pairs, left is right, NUM_NODES, wanted)
            try:
                if self.is_kept:
                    self._of_rows.trace(left, right, how)
                else:
                    one = jax.ShapeDtypeStruct((1, *left.shape[1:]), left.dtype)
                    jax.eval_shape(partial(self._of_rows, how=how), one, one)
            except NeedsAllPairs:
                continue
            except NeedsDraws:
                break
            return self._last[-1]
        return Needs(all_pairs=True, draws=True, quadrature=False, entries=1)

    @cached_property
    def _of_rows(self) -> Any:
        """Return the kernels of a block of rows."""

        def of_rows(left: Array, right: Array, how: _How) -> dict[Kernel, Array]:
            moments = Moments(
                len(left), len(right), how.all_pairs, how.num_nodes, has_one_side=how.has_one_side
            )
            found = self._followed(moments, left, left if how.has_one_side else right)
            found_needs = Needs(how.all_pairs, False, not moments.is_exact, moments.entries)
            self._last[:] = [found_needs]
            return {kernel: found[kernel] for kernel in how.wanted}

        return jax.jit(of_rows, static_argnums=2) if self.is_kept else of_rows

    def _followed(self, moments: Moments, left: Array, right: Array) -> dict[Kernel, Array]:
        interpreter = Interpreter(moments, dict(self.scales))
        # Each row is a batch of one.
        rows = Known(left[:, None], right[:, None], True)
        (output,) = interpreter.run(self.program, [*self.parameters, rows])
        ntk, nngp = interpreter.output(output)
        return {Kernel.NTK: ntk, Kernel.NNGP: nngp}


def quadrature_error(program: LimitProgram, rows: Array) -> float:
    """Return ‖K_N − K_{N/2}‖_∞ / ‖K_N‖_∞ at the first rows, N quadrature nodes."""
    few = rows[:CHECKED_ROWS]

    def kernel(num_nodes: int) -> np.ndarray:
        if program.needs(few, few).draws:  # of the same key, so only the quadrature differs
            return program.drawn_kernels(few, few, num_nodes).kernels[Kernel.NTK]
        return program.kernels(few, few, num_nodes, (Kernel.NTK,))[Kernel.NTK]

    whole = kernel(NUM_NODES)
    half = kernel(NUM_NODES // 2)
    return float(np.abs(whole - half).max() / max(np.abs(whole).max(), np.finfo(float).tiny))
