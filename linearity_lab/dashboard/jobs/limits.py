"""Limits of the profile, checked before a spec becomes a job; without Streamlit."""

import math

from linearity_lab.dashboard.jobs.profile import Profile, profile
from linearity_lab.runs import Spec, check_size, check_time
from linearity_lab.settings.walk import Setting, settings, values_of
from ntk_core.errors import InvalidInput


class OverLimit(InvalidInput):
    """Error for a setting above this server's limit; ``nearest`` is the limit."""


def check_limits(spec: Spec, limits: Profile | None = None) -> None:
    """Refuse a spec beyond the limits of the profile, without tracing.

    Raises:
        OverLimit: for a width or the number of seeds.
        TooLarge: for memory, size of the result and time, see
            :func:`linearity_lab.runs.check_size` and ``check_time``.
        InvalidInput: if a limit of the environment is not a number.
    """
    limits = limits or profile()
    values = values_of(spec)
    for setting in settings(type(spec)):
        most = largest_of(setting, limits)
        if most is not None and setting.name in values:
            value = values[setting.name]
            if (given := max(value) if isinstance(value, tuple) else value) > most:
                raise OverLimit(setting.name, given, f"at most {most:,} on this server", most)
    check_size(spec, limits.max_memory_bytes, max_result_bytes=limits.max_result_bytes)
    if limits.max_seconds < math.inf:
        check_time(spec, limits.max_seconds, most=True)


def largest_of(setting: Setting, limits: Profile) -> int | None:
    """Return the largest value that the profile allows; None without a limit."""
    if setting.counts_neurons:
        return limits.max_width
    if setting.name == "num_seeds":
        return limits.max_seeds
    return None
