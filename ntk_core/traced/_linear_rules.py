"""Custom backward rules that are not linear in their cotangent."""

from __future__ import annotations

import numpy as np
from jaxtyping import PyTree

from ntk_core.traced._derivatives import NonlinearRule, has_reverse_rule
from ntk_core.traced._plain_gradients import QUIET, gradient_of_mixture, largest_gap
from ntk_core.traced._program import Program, Rows
from ntk_core.traced._quickly import quickly

# Of a cotangent, to see whether a backward rule clips or rounds it; exact in every type.
CHANGES_OF_SIZE = (2.0**-10, 2.0**10)


@QUIET
def refuse_nonlinear_rules(program: Program, params: PyTree, x: Rows) -> None:
    """Refuse a custom backward rule that is not linear in its cotangent, once per program.

    Such a rule clips, rounds or normalizes gradients: there are no derivatives whose products a
    kernel could contain. The gradient of a random mixture u of the outputs is compared with those
    of its multiples and of its parts.

    Raises:
        NonlinearRule: if the gradient of c·u is not c times that of u, or not the sum over parts.
    """
    if "linear rules" in program.kept:
        return
    if not has_reverse_rule(program.closed.jaxpr):
        program.kept["linear rules"] = None
        return
    leaves = program.leaves(params)
    row = np.asarray(x[0])
    rng = np.random.default_rng(0)
    mixture = rng.standard_normal(program.num_outputs).astype(np.float32)
    first = np.where(np.arange(len(mixture)) % 2, 0, mixture)

    def gradient(seed: np.ndarray) -> list[np.ndarray]:
        found = quickly(gradient_of_mixture)(program, leaves, row, seed)
        return [np.asarray(leaf).astype(np.float64) for leaf in found]

    whole_gradient = gradient(mixture)
    pairs = []
    for factor in CHANGES_OF_SIZE:
        scaled = [factor * leaf for leaf in whole_gradient]
        pairs.append((scaled, gradient(np.float32(factor) * mixture)))
    parts = zip(gradient(first), gradient(mixture - first), strict=True)
    pairs.append((whole_gradient, [one + other for one, other in parts]))
    for expected, found in pairs:
        for leaf, other, place in zip(expected, found, program.names, strict=True):
            scale = np.full_like(leaf, np.abs(leaf).max(initial=0))
            if not np.isfinite(other).all():  # overflow allows no verdict
                continue
            if largest_gap(leaf, scale, other, leaves[place].dtype) > program.epsilon**0.5:
                raise NonlinearRule(
                    "net",
                    "a function whose custom_vjp is not linear in its cotangent",
                    "a linear backward rule; clip or round gradients in the optimizer, after "
                    "differentiation",
                )
    program.kept["linear rules"] = None
