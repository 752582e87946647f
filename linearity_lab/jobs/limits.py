"""Limits of the profile, checked before a spec becomes a job; free of Streamlit."""

import math

from linearity_lab.jobs.profile import Profile, profile
from ntk_core.errors import InvalidInput
from ntk_core.runs import Spec, check_size, check_time
from ntk_core.settings.walk import Setting, settings, values_of


class OverLimit(InvalidInput):
    """A setting above what this server allows; ``nearest`` is the largest value that it allows."""


def check_limits(spec: Spec, limits: Profile | None = None) -> None:
    """Refuse a spec that asks for more than the profile allows; nothing is traced.

    Raises:
        OverLimit: for a width or the number of seeds.
        TooLarge: for memory and time, see :func:`ntk_core.runs.check_size` and ``check_time``.
        InvalidInput: when a limit of the environment is not a number.
    """
    limits = limits or profile()
    values = values_of(spec)
    for setting in settings(type(spec)):
        most = largest_of(setting, limits)
        if most is not None and setting.name in values:
            value = values[setting.name]
            if (given := max(value) if isinstance(value, tuple) else value) > most:
                raise OverLimit(setting.name, given, f"at most {most:,} on this server", most)
    check_size(spec, limits.max_memory_bytes)
    if limits.max_seconds < math.inf:
        check_time(spec, limits.max_seconds, most=True)


def largest_of(setting: Setting, limits: Profile) -> int | None:
    """Return the largest value that the profile allows; None without a limit."""
    return limits.max_width if setting.counts_neurons else limits.max_seeds if setting.name == "num_seeds" else None
