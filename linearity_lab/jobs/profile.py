"""Who the server is for, and so how much one person may ask of it; free of Streamlit."""

from __future__ import annotations

import functools
import math
import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from ntk_core.environment import PREFIX, settings
from ntk_core.errors import InvalidInput

if TYPE_CHECKING:
    from ntk_core.variables import Settings

WORKERS_VARIABLE = "LINEARITY_LAB_WORKERS"
ProfileName = Literal["local", "classroom", "hosted"]


@dataclass(frozen=True)
class Profile:
    """Limits of one server, the same for everybody who uses it.

    Attributes:
        name: ``local`` for the user who started it, ``classroom`` for a known group, ``hosted`` for anyone.
        max_width: neurons of the widest layer.
        max_seeds: initializations of each point.
        max_seconds: estimated time of one run with all steps that its settings allow, in seconds.
        max_memory_bytes: memory of one run, in bytes: refused where more is estimated, ended where more is taken.
        max_upload_bytes: one uploaded file, in bytes.
        max_held_bytes: uploaded files in memory, of everybody together, and as much for what was read of them.
        max_waiting: jobs in the queue, of everybody together.
        max_per_address: unfinished jobs of one network address; a room behind one router has one address.
        max_job_s: wall clock of one job, in seconds.
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
    max_waiting: int
    max_per_address: float
    max_job_s: float
    max_workers: int
    num_workers: int = 1

    @property
    def is_shared(self) -> bool:
        """Whether people other than the one who started it use it."""
        return self.name != "local"


# Limit → for one person, for a classroom, for anybody.
_LIMITS: dict[str, tuple[float, float, float]] = {
    "max_width": (10_000_000, 100_000, 10_000),
    "max_seeds": (500, 300, 100),
    "max_seconds": (math.inf, 1800, 720),
    "max_memory_bytes": (math.inf, 4 * 2**30, 1.25 * 2**30),
    "max_upload_bytes": (64 * 2**20, 32 * 2**20, 8 * 2**20),
    "max_held_bytes": (1024 * 2**20, 512 * 2**20, 64 * 2**20),
    "max_waiting": (32, 64, 16),
    "max_per_address": (math.inf, math.inf, 4),
    "max_job_s": (7 * 24 * 3600, 300, 300),
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
    "LINEARITY_LAB_MAX_WAITING": ("max_waiting", 1),
    "LINEARITY_LAB_MAX_JOB_SECONDS": ("max_job_s", 1),
}


def profile() -> Profile:
    """The profile of the environment: ``LINEARITY_LAB_PROFILE``, and one variable for each limit.

    Raises:
        InvalidInput: for an unknown profile, or a limit that is not a number in its range.
    """
    return _profile(settings())


@functools.lru_cache(maxsize=16)
def _profile(given: Settings) -> Profile:
    chosen = PROFILES[given.profile]
    changed: dict[str, Any] = {
        limit: value * unit
        for variable, (limit, unit) in OVERRIDES.items()
        if (value := getattr(given, variable.removeprefix(PREFIX).lower())) is not None
    }
    if given.memory_gib is not None:
        changed["max_memory_bytes"] = given.memory_gib * 2**30
    changed["num_workers"] = _num_workers(given.workers, chosen)
    return replace(chosen, **changed)


def _num_workers(asked: int | None, chosen: Profile) -> int:
    """Half of the cores by default; one or two for one person or a small machine of a host."""
    if asked is None:
        half = max(1, (os.cpu_count() or 1) // 2)
        return min(half, chosen.max_workers if chosen.name == "classroom" else 2)
    if asked > chosen.max_workers:
        raise InvalidInput(WORKERS_VARIABLE, asked, f"an integer from 1 to {chosen.max_workers:,}")
    return asked


NEUTRAL = "the results of this server cannot be read or written at the moment; the server log has the cause"

_CAUSES = re.compile(
    r"RESOURCE_EXHAUSTED|[Oo]ut of memory|over (?:memory|time)|No space left on device|disk is full|readonly database"
    r"|Too many open files|SIG[A-Z]+|CUDA_ERROR_[A-Z_]+|\b[A-Z][A-Za-z]+(?:Error|Exception)\b"
)


def known_causes(text: str) -> str:
    """The causes in a text that only programs write, for logs; the rest of it may name a user's data."""
    return ", ".join(dict.fromkeys(_CAUSES.findall(text)))[:200]


def error_text(error: InvalidInput) -> str:
    """One clause about an error; of the server's own database nothing that only its operator should know."""
    from ntk_core.runs.store import VARIABLE  # not before there is an error: the server listens before it is loaded

    try:
        neutral = error.field == VARIABLE and profile().is_shared
    except InvalidInput:  # reported by lifespan
        neutral = True
    return NEUTRAL if neutral else str(error)
