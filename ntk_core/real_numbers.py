"""Real numbers from outside as float64, or a refusal by name. Free of JAX."""

import contextlib
import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import TypeGuard

import numpy as np

from ntk_core.errors import InvalidInput, kind_of


def real_array(values: object, field: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return real numbers as an array in float64.

    Args:
        shape: of the array; any by default.

    Raises:
        InvalidInput: for text, objects, complex numbers, rows of different lengths, or another
            shape.

    >>> real_array([1, 2], "values").tolist()
    [1.0, 2.0]
    """
    refuse_masked(values, field)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError):  # the last for deleted arrays of JAX
        given = f"{kind_of(values)} that is no array"
        raise InvalidInput(field, given, "an array of real numbers") from None
    # Types such as bfloat16 have the kind of plain bytes.
    if array.dtype.kind not in "biuf" and not np.can_cast(array.dtype, np.float64):
        given = f"{kind_of(values)} of type {array.dtype}"
        raise InvalidInput(field, given, "an array of real numbers")
    if shape is not None and array.shape != shape:
        raise InvalidInput(field, f"shape {array.shape}", f"shape {shape}")
    return array.astype(np.float64)


def refuse_masked(values: object, field: str) -> None:
    """Refuse masked arrays of NumPy, of which other functions take the hidden entries.

    >>> refuse_masked(np.ones(2), "x")
    """
    if isinstance(values, np.ma.MaskedArray):
        allowed = "an array in which every entry counts, such as values.filled(0)"
        raise InvalidInput(field, "a masked array", allowed)


def items_of(values: object, field: str, allowed: str) -> list[object]:
    """Return the items of a list, a tuple, an array or another iterable.

    Raises:
        InvalidInput: for text, dictionaries, and values that cannot be iterated.

    >>> items_of((1, 2), "steps", "a list of steps")
    [1, 2]
    """
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        with contextlib.suppress(TypeError, RuntimeError):  # the last for deleted arrays of JAX
            return list(values)
    raise InvalidInput(field, kind_of(values), allowed)


def real_number(value: object, field: str, at_least: float = -math.inf) -> float:
    """Return one finite number.

    Raises:
        InvalidInput: for anything else.

    >>> real_number(2, "rate")
    2.0
    """
    allowed = "a finite number" if at_least == -math.inf else f"a number from {at_least:g} on"
    array = real_array(value, field)
    if array.shape or not math.isfinite(array) or array < at_least:
        raise InvalidInput(field, value if not array.shape else f"shape {array.shape}", allowed)
    return float(array)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Whether a value is one real number that float64 contains; truth values are none.

    >>> is_finite_number(2), is_finite_number(10**400), is_finite_number(math.nan)
    (True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # of an integer
        return False


def whole_number(value: object, field: str, at_least: int) -> int:
    """Return one integer from ``at_least`` on.

    Raises:
        InvalidInput: for anything else.

    >>> whole_number(2, "depth", 1)
    2
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise InvalidInput(field, value, f"an integer from {at_least} on")
    return int(value)
