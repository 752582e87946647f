"""How a training ended, by what was recorded of it. Free of JAX."""

import math
from collections.abc import Sequence
from typing import Literal

Outcome = Literal["converged", "stuck", "over-budget", "diverged", "dead", "finished"]

# Our choice: slow trainings lose 7% or more of their loss in their last half, those on a plateau at most 2%.
PLATEAU_CHANGE = 0.03
PLATEAU_SHARE = 0.05


def ended(steps: Sequence[int], losses: Sequence[float], threshold: float | None, *, dead: bool = False) -> Outcome:
    """The outcome of a training, by its recorded steps and losses.

    ===============  =============================================================================================
    ``dead``         K(w₀) = 0: gradient descent moves nothing, and there is no automatic rate
    ``converged``    the last loss is at most the threshold
    ``diverged``     the last loss is not finite, or above the first
    ``stuck``        neither, and on a plateau, see :func:`on_plateau`
    ``over-budget``  none of these: the loss was still changing when the steps ran out
    ``finished``     neither dead nor diverged, without a threshold
    ===============  =============================================================================================
    """
    if dead:
        return "dead"
    if threshold is not None and losses[-1] <= threshold:
        return "converged"
    if not (math.isfinite(losses[-1]) and losses[-1] <= losses[0]):
        return "diverged"
    if threshold is None:
        return "finished"
    return "stuck" if on_plateau(steps, losses) else "over-budget"


def on_plateau(steps: Sequence[int], losses: Sequence[float]) -> bool:
    """Whether the loss has come to rest.

    In the last half of the steps (from the last record in the first half on) it varied by less than 3% of where it
    ended, and by at most a twentieth of all that it has fallen by.

    >>> on_plateau([0, 10, 100, 500, 1000], [1.0, 0.4, 0.21, 0.201, 0.2])
    True
    >>> on_plateau([0, 10, 100, 500, 1000], [1.0, 0.9999, 0.999, 0.995, 0.99])  # a tiny rate
    False
    """
    half = max((index for index, step in enumerate(steps) if 2 * step <= steps[-1]), default=0)
    change = max(losses[half:]) - min(losses[half:])
    return change < PLATEAU_CHANGE * losses[-1] and change <= PLATEAU_SHARE * (losses[0] - losses[-1])
