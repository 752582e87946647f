"""Types of numbers in stored results, checked when a result is made and when it is read."""

from typing import Annotated

from pydantic import AfterValidator


def _not_negative(value: float) -> float:
    if value < 0:  # false for NaN
        raise ValueError(f"{value:g} is negative")
    return value


# A norm, a relative change or a loss. Unlike ``pydantic.NonNegativeFloat`` it may be NaN, the
# outcome of a training that diverged.
NonNegative = Annotated[float, AfterValidator(_not_negative)]
