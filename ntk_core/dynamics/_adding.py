"""How far a model is from adding.

Changes by several tasks at once against the sum of their changes.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import ArrayLike
from numpy.typing import NDArray

from ntk_core.errors import InvalidInput
from ntk_core.real_numbers import items_of, real_array


def addition_error(together: ArrayLike, parts: Sequence[ArrayLike]) -> float:
    """Measure how far changes of outputs are from adding.

    E = ‖F − Σ_k F_k‖ / ‖Σ_k F_k‖, for F = f(w₀ + Σ_k τ_k) − f(w₀) and F_k = f(w₀ + τ_k) − f(w₀). It
    is 0 for a model that is linear in its parameters.

    Args:
        together: F at any inputs, an array of any shape.
        parts: F_k of each task at these inputs, of the same shape.

    Returns:
        E; NaN if Σ_k F_k is 0 or anything is not finite.

    Raises:
        InvalidInput: for parts that are no arrays of this shape, and without any part.

    Source: after Ortiz-Jimenez, Favero & Frossard 2023, §3; docs/math/adding-networks.md.

    >>> import numpy as np
    >>> addition_error(np.array([3.0, 0.0]), [np.array([1.0, 0.0]), np.array([1.0, 0.0])])
    0.5
    """
    whole = real_array(together, "together")
    listed = items_of(parts, "parts", "a list of arrays, one for each task")
    changes = [real_array(part, "parts") for part in listed]
    if not changes:
        raise InvalidInput("parts", parts, "the change of one task or more")
    for part in changes:
        if part.shape != whole.shape:
            raise InvalidInput(
                "parts", part.shape, f"arrays of the shape of together, {whole.shape}"
            )
    total = sum(changes[1:], start=changes[0])
    size = _norm(total)
    if size == 0:
        return float("nan")
    return _norm(whole - total) / size


def _norm(values: NDArray[np.float64]) -> float:
    """Return ‖values‖ over all entries; squares of float64 hold those of any float32."""
    return float(np.linalg.norm(values))
