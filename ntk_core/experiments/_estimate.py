"""What a run will cost, before anything is traced; free of JAX, so that a page can ask at every change of a widget."""

from __future__ import annotations

import os
from collections.abc import Callable, Container

import psutil

from ntk_core.errors import InvalidInput, TooLarge
from ntk_core.events import Estimated
from ntk_core.experiments._registry import costs_of
from ntk_core.specs import Spec

MEMORY_VARIABLE = "LINEARITY_LAB_MEMORY_GIB"


def estimate(spec: Spec, finished: Container[str] = ()) -> Estimated:
    """Points, wall time (an order of magnitude) and peak memory of the largest point.

    Args:
        finished: keys of points that take no time any more.
    """
    costs, keys = costs_of(spec), spec.point_keys()
    return Estimated(
        num_points=len(keys),
        seconds=sum(costs.seconds(spec, key) for key in keys if key not in finished),
        peak_bytes=largest_bytes(spec),
    )


def largest_bytes(spec: Spec) -> float:
    """Expected peak memory of the largest point, in bytes."""
    costs = costs_of(spec)
    return max(costs.peak_bytes(spec, key) for key in spec.point_keys())


def check_size(spec: Spec) -> None:
    """Refuse a spec whose largest point does not fit into memory.

    Raises:
        TooLarge: for the swept setting, with the largest value that fits, or for ``dataset.num_samples`` when none
            does.
        InvalidInput: when the memory limit of the environment is not a number.
    """
    limit, required = memory_limit(), largest_bytes(spec)
    if required <= limit:
        return
    swept: tuple[int, ...] = getattr(spec, spec.swept_field)

    def alone(value: int) -> Spec:
        return spec.model_copy(update={spec.swept_field: (value,)})

    field, given, nearest = spec.swept_field, max(swept), 1
    if largest_bytes(alone(1)) <= limit:
        nearest = _largest(lambda value: largest_bytes(alone(value)) <= limit, given)
    elif (dataset := getattr(spec, "dataset", None)) is not None:
        field, given = "dataset.num_samples", dataset.num_samples

        def of_samples(count: int) -> Spec:
            return alone(1).model_copy(update={"dataset": dataset.model_copy(update={"num_samples": count})})

        nearest = _largest(lambda count: largest_bytes(of_samples(count)) <= limit, given)
    raise TooLarge(field, given, required=required, limit=limit, unit="bytes", nearest=nearest)


def memory_limit() -> float:
    """Bytes that a run may use: ``LINEARITY_LAB_MEMORY_GIB``, or four fifths of what is free now."""
    given = os.environ.get(MEMORY_VARIABLE)
    if not given:
        return 0.8 * psutil.virtual_memory().available
    try:
        gibibytes = float(given)
    except ValueError:
        gibibytes = -1.0
    if not 0 < gibibytes < 1e6:
        raise InvalidInput(MEMORY_VARIABLE, given, "a number of GiB above 0")
    return gibibytes * 2**30


def _largest(fits: Callable[[int], bool], too_large: int) -> int:
    """The largest integer below ``too_large`` that fits, rounded down to two digits; fits(1) is taken for granted."""
    low, high = 1, too_large
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    digits = 10 ** max(0, len(str(low)) - 2)
    return low // digits * digits
