"""Server profiles and their limits; without Streamlit."""

import math
import os
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from linearity_lab.environment import environment_settings
from linearity_lab.variable_names import PREFIX
from ntk_core.errors import InvalidInput

WORKERS_VARIABLE = f"{PREFIX}WORKERS"
# Seconds between two pictures of a running job, and the followers who may have them that often.
NEWS_S = 0.3
CROWD = 8
ProfileName = Literal["local", "classroom", "hosted"]


def _limit(*values: float, variable: str = "", unit: int = 1) -> Any:
    """Define a limit by profile (local, classroom, hosted).

    A variable, in this unit, overrides it.
    """
    return field(
        metadata={"values": values, "variable": variable and PREFIX + variable, "unit": unit}
    )


@dataclass(frozen=True)
class Profile:
    """Limits of one server, the same for all users.

    ``local`` is for the user who started it, ``classroom`` for a known group,
    ``hosted`` for anyone.
    """

    name: ProfileName
    max_width: int = _limit(10_000_000, 100_000, 10_000, variable="MAX_WIDTH")
    """Largest width in the settings; derived wider layers are limited by memory and time."""
    max_seeds: int = _limit(500, 300, 100, variable="MAX_SEEDS")
    """Initializations of each point."""
    max_seconds: float = _limit(math.inf, 1800, 720, variable="MAX_SECONDS")
    """Estimated time of one run with the maximum number of steps, in seconds."""
    max_memory_bytes: float = _limit(
        math.inf, 4 * 2**30, 1.25 * 2**30, variable="MEMORY_GIB", unit=2**30
    )
    """Memory of one run: larger estimates are refused, and runs that use more are ended."""
    max_result_bytes: int = _limit(
        1024 * 2**20, 128 * 2**20, 32 * 2**20, variable="MAX_RESULT_MIB", unit=2**20
    )
    """Result of one run: larger estimates are refused, larger messages of workers end their run."""
    max_kept_bytes: int = _limit(1024 * 2**20, 256 * 2**20, 32 * 2**20)
    """Results of ended runs in the server's memory;
    others are read from the store when they are shown.
    """
    max_upload_bytes: int = _limit(
        64 * 2**20, 32 * 2**20, 8 * 2**20, variable="MAX_UPLOAD_MIB", unit=2**20
    )
    """One uploaded file."""
    max_held_bytes: int = _limit(1024 * 2**20, 512 * 2**20, 32 * 2**20)
    """Uploaded files of all users in memory, and the same amount for parsed files."""
    max_waiting: int = _limit(32, 64, 16, variable="MAX_WAITING")
    """Jobs of all users in the queue."""
    max_per_address: float = _limit(math.inf, math.inf, 4)
    """Unfinished jobs of one network address; clients behind one router share it."""
    max_job_s: float = _limit(7 * 24 * 3600, 300, 300, variable="MAX_JOB_SECONDS")
    """Wall clock of one job, in seconds."""
    max_workers: int = _limit(64, 16, 4)
    """Worker processes."""
    num_workers: int = 1
    """Largest number of worker processes to start."""

    @property
    def is_shared(self) -> bool:
        """Whether other users than its owner use it."""
        return self.name != "local"

    @property
    def is_public(self) -> bool:
        """Whether strangers use it.

        Logs are JSON, and workers, whose output may name data, are silent.
        """
        return self.name == "hosted"

    @property
    def most_workers_by_default(self) -> int:
        """Worker processes without a setting: one or two except on a classroom's larger machine."""
        return self.max_workers if self.name == "classroom" else 2


_LIMITS = {each.name: each.metadata for each in fields(Profile) if each.metadata}
# Environment variable → (limit, unit in which it is given).
OVERRIDES = {
    each["variable"]: (name, each["unit"]) for name, each in _LIMITS.items() if each["variable"]
}
PROFILES: dict[str, Profile] = {
    name: Profile(name, **{limit: each["values"][index] for limit, each in _LIMITS.items()})
    for index, name in enumerate(get_args(ProfileName))
}


def profile() -> Profile:
    """Return the profile of the environment: ``LINEARITY_LAB_PROFILE``, and one variable per limit.

    Raises:
        InvalidInput: for an unknown profile, or a limit that is not a number in its range.
    """
    given = environment_settings()
    chosen = PROFILES[given.profile]
    changed = {}
    for variable, (limit, unit) in OVERRIDES.items():
        value = getattr(given, variable.removeprefix(PREFIX).lower())
        if value is not None:
            changed[limit] = value * unit
    half_of_cores = max(1, (os.cpu_count() or 1) // 2)
    by_default = min(half_of_cores, chosen.most_workers_by_default)
    if given.workers is not None and given.workers > chosen.max_workers:
        raise InvalidInput(
            WORKERS_VARIABLE, given.workers, f"an integer from 1 to {chosen.max_workers:,}"
        )
    return replace(chosen, **changed, num_workers=given.workers or by_default)


def news_every_s(num_viewers: int, alone_s: float = NEWS_S) -> float:
    """Return the seconds between two pictures of running jobs, all of which each viewer draws.

    A crowd has fewer of them; a few viewers have one in ``alone_s``.
    """
    return alone_s * max(1.0, num_viewers / CROWD)


NEUTRAL = (
    "the results of this server cannot be read or written at the moment; the server log has "
    "the cause"
)


def error_text(error: InvalidInput) -> str:
    """Describe an error in one clause, without a shared server's database details."""
    is_local = os.environ.get(f"{PREFIX}PROFILE") in (None, "", "local")
    return str(error) if is_local or error.field != f"{PREFIX}STORE" else NEUTRAL
