"""Who the server is for, and so how much one person may ask of it; free of Streamlit."""

import functools
import math
import os
from dataclasses import dataclass, replace
from typing import Any, Literal

from ntk_core.environment import stated_memory
from ntk_core.errors import InvalidInput

PROFILE_VARIABLE = "LINEARITY_LAB_PROFILE"
WORKERS_VARIABLE = "LINEARITY_LAB_WORKERS"
# A short job must outlast a busy moment of the machine.
LEAST_ALLOWED_S = 60.0
ProfileName = Literal["local", "classroom", "hosted"]


@dataclass(frozen=True)
class Profile:
    """Limits of one server, the same for everybody who uses it.

    Attributes:
        name: ``local`` for whoever started it, ``classroom`` for people who know each other, ``hosted`` for anybody.
        max_width: neurons of the widest layer.
        max_seeds: initializations of each point.
        max_seconds: estimated time of one run with all steps that its settings allow, in seconds.
        max_memory_bytes: estimated memory of one run, in bytes; what is free now counts besides.
        max_upload_bytes: one uploaded file, in bytes.
        max_held_bytes: uploaded files in memory, of everybody together, and as much for what was read of them.
        max_connections: open connections to the server, of everybody together.
        max_sessions: open browser sessions, of everybody together.
        max_sessions_per_address: open browser sessions of one network address.
        max_waiting: jobs in the queue, of everybody together.
        max_per_viewer: jobs of one browser session that wait or run.
        max_per_address: jobs of one network address that wait or run.
        max_workers: worker processes.
        num_workers: worker processes that are started.
    """

    name: ProfileName
    max_width: int
    max_seeds: int
    max_seconds: float
    max_memory_bytes: float
    max_upload_bytes: int
    max_held_bytes: int
    max_connections: int
    max_sessions: int
    max_sessions_per_address: int
    max_waiting: int
    max_per_viewer: int
    max_per_address: int
    max_workers: int
    num_workers: int = 1

    def allowed_s(self, most_s: float) -> float:
        """How long a job may run that should take ``most_s`` seconds at most; any time where a run's is not limited."""
        return max(LEAST_ALLOWED_S, 2 * most_s) if self.max_seconds < math.inf else math.inf

    @property
    def is_shared(self) -> bool:
        """Whether people other than the one who started it use it."""
        return self.name != "local"

    @property
    def address_share(self) -> float:
        """How much of what all together may hold one network address may: a quarter, but a room has one address."""
        return 0.25 if self.name == "hosted" else 1.0


# Limit → for one person, for a classroom, for anybody. A room behind one router has one address: there only the
# sessions are told apart.
_LIMITS: dict[str, tuple[float, float, float]] = {
    "max_width": (10_000_000, 100_000, 10_000),
    "max_seeds": (500, 300, 100),
    "max_seconds": (math.inf, 1800, 720),
    "max_memory_bytes": (math.inf, 4 * 2**30, 1.25 * 2**30),
    "max_upload_bytes": (64 * 2**20, 32 * 2**20, 8 * 2**20),
    "max_held_bytes": (1024 * 2**20, 512 * 2**20, 64 * 2**20),
    "max_connections": (1024, 1024, 512),
    "max_sessions": (250, 250, 150),
    "max_sessions_per_address": (250, 250, 20),
    "max_waiting": (32, 64, 16),
    "max_per_viewer": (96, 2, 2),
    "max_per_address": (96, 80, 4),
    "max_workers": (64, 16, 4),
}
_NAMES: tuple[ProfileName, ...] = ("local", "classroom", "hosted")
PROFILES: dict[str, Profile] = {
    name: Profile(name, **{limit: values[index] for limit, values in _LIMITS.items()})  # type: ignore[arg-type]
    for index, name in enumerate(_NAMES)
}
# Environment variable → (limit, unit in which it is given).
OVERRIDES: dict[str, tuple[str, int]] = {
    "LINEARITY_LAB_MAX_WIDTH": ("max_width", 1),
    "LINEARITY_LAB_MAX_SEEDS": ("max_seeds", 1),
    "LINEARITY_LAB_MAX_SECONDS": ("max_seconds", 1),
    "LINEARITY_LAB_MAX_UPLOAD_MIB": ("max_upload_bytes", 2**20),
    "LINEARITY_LAB_MAX_SESSIONS": ("max_sessions", 1),
    "LINEARITY_LAB_MAX_SESSIONS_PER_ADDRESS": ("max_sessions_per_address", 1),
    "LINEARITY_LAB_MAX_WAITING": ("max_waiting", 1),
    "LINEARITY_LAB_MAX_JOBS_PER_SESSION": ("max_per_viewer", 1),
    "LINEARITY_LAB_MAX_JOBS_PER_ADDRESS": ("max_per_address", 1),
}
_MOST = 1_000_000_000


def profile() -> Profile:
    """The profile that the environment asks for: ``LINEARITY_LAB_PROFILE``, and one variable for each limit.

    Raises:
        InvalidInput: for an unknown profile, or a limit that is not a number in its range.
    """
    names = (PROFILE_VARIABLE, WORKERS_VARIABLE, *OVERRIDES)
    return _profile(tuple((name, os.environ.get(name, "").strip()) for name in names), stated_memory())


@functools.lru_cache(maxsize=16)
def _profile(environment: tuple[tuple[str, str], ...], memory: float | None) -> Profile:
    given = dict(environment)
    name = given[PROFILE_VARIABLE] or "local"
    if name not in PROFILES:
        raise InvalidInput(PROFILE_VARIABLE, name, "one of " + ", ".join(PROFILES))
    chosen = PROFILES[name]
    changed: dict[str, Any] = {
        limit: _whole(variable, given[variable]) * unit
        for variable, (limit, unit) in OVERRIDES.items()
        if given[variable]
    }
    if memory is not None:
        changed["max_memory_bytes"] = memory
    changed["num_workers"] = _num_workers(given[WORKERS_VARIABLE], chosen)
    return replace(chosen, **changed)


def _whole(variable: str, text: str, highest: int = _MOST) -> int:
    if text.isascii() and text.isdigit() and 1 <= int(text[:12]) <= highest:
        return int(text)
    raise InvalidInput(variable, text, f"an integer from 1 to {highest:,}")


def _num_workers(text: str, chosen: Profile) -> int:
    """Half of the cores where nothing is asked for; one or two for one person or a small machine of a host."""
    if text:
        return _whole(WORKERS_VARIABLE, text, chosen.max_workers)
    half = max(1, (os.cpu_count() or 1) // 2)
    return min(half, chosen.max_workers if chosen.name == "classroom" else 2)
