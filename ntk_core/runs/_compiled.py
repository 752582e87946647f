"""Compiled programs are kept for the next call; a long-lived process must let them go before there are too many."""

import gc
from pathlib import Path

from ntk_core.environment import resident_memory, return_freed_memory

# Linux allows a process 65,530 memory maps, and every compiled program holds about three: beyond that, compiling
# ends the process with a segmentation fault.
MAX_MAPS = 25_000
# What compiling and the programs may add to the memory of a process, about 10 MB a program; other widths need others.
MOST_BYTES = 400e6
_MAPS = Path("/proc/self/maps")
_at_rest = 0.0  # bytes when this process last let them go


def num_maps() -> int:
    """Memory maps of this process; 0 where the system does not tell."""
    try:
        with _MAPS.open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return 0


def release_compiled(most: int = MAX_MAPS, most_bytes: float = MOST_BYTES) -> bool:
    """Forget all compiled programs once there are many; whether it did.

    Many are more than ``most`` memory maps, or ``most_bytes`` more memory than when this was first asked or last done.
    """
    global _at_rest
    _at_rest = _at_rest or resident_memory()
    if num_maps() <= most and resident_memory() - _at_rest <= most_bytes:
        return False
    import jax

    jax.clear_caches()
    gc.collect()
    return_freed_memory()
    _at_rest = resident_memory()
    return True
