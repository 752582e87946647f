"""Smaller runs: the largest that this server allows, and one of a few seconds.

Free of Streamlit.
"""

import contextlib
import math
from collections.abc import Iterator

from linearity_lab.dashboard.jobs.limits import OverLimit, check_limits
from linearity_lab.dashboard.jobs.profile import Profile
from linearity_lab.data.uploads import MissingUpload
from linearity_lab.runs import Spec, capped, check_time, setting_of
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from linearity_lab.settings.walk import settings
from ntk_core.errors import InvalidInput, TooLarge

# A confidence interval of an exponent needs as many.
INTERVAL_SEEDS = 3
INTERVAL_VALUES = 4


def largest_fit(
    spec: Spec, limits: Profile | None = None, expected_s: float = math.inf
) -> Spec | None:
    """Return ``spec`` with refused settings at the nearest allowed values.

    None if that does not suffice.
    """
    for _ in settings(type(spec)):
        refusal = _refusal(spec, limits, expected_s)
        if refusal is None:
            break
        if not isinstance(refusal.nearest, int) or not isinstance(
            setting_of(spec, refusal.field), int | tuple
        ):
            return None
        before = spec
        spec = capped(spec, refusal.field, refusal.nearest)
        if spec == before:
            return None
    try:
        return with_settings(spec, {})
    except InvalidSpec:  # smaller, but no longer a whole
        return None


def quick(spec: Spec, expected_s: float) -> Spec | None:
    """Return ``spec`` with fewer seeds and swept values, but both ends, within this expected time.

    Intervals need three seeds and four values, which are removed last. If two values of one seed
    take too long, return their :func:`largest_fit`; None if that does not suffice.
    """
    thinned = list(_thinned(spec))
    fitting = (each for each in thinned if _refusal(each, None, expected_s) is None)
    return next(fitting, None) or largest_fit((spec, *thinned)[-1], expected_s=expected_s)


def _refusal(spec: Spec, limits: Profile | None, expected_s: float) -> InvalidInput | None:
    try:
        check_limits(spec, limits)
        check_time(spec, expected_s)
    except (OverLimit, TooLarge, MissingUpload) as refusal:
        return refusal
    return None


def _thinned(spec: Spec) -> Iterator[Spec]:
    """``spec`` with fewer values of its sweep, and then with fewer seeds."""
    values = getattr(spec, spec.swept_field)
    seeds = getattr(spec, "num_seeds", 1)
    for num_seeds in sorted({seeds, min(seeds, INTERVAL_SEEDS), 1}, reverse=True):
        least = min(INTERVAL_VALUES if num_seeds > 1 else 2, len(values))
        for count in range(len(values), least - 1, -1):
            chosen = [
                values[round(index * (len(values) - 1) / max(1, count - 1))]
                for index in range(count)
            ]
            with contextlib.suppress(InvalidSpec):  # fewer values than such a sweep needs
                yield with_settings(
                    spec,
                    {spec.swept_field: chosen} | ({"num_seeds": num_seeds} if seeds > 1 else {}),
                )
