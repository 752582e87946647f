"""Compiled programs are kept for the next call; a long-lived process must let them go before there are too many."""

from pathlib import Path

# Linux allows a process 65,530 memory maps, and every compiled program holds about three: beyond that, compiling
# ends the process with a segmentation fault.
MAX_MAPS = 25_000
_MAPS = Path("/proc/self/maps")


def num_maps() -> int:
    """Memory maps of this process; 0 where the system does not tell."""
    try:
        with _MAPS.open("rb") as lines:
            return sum(1 for _ in lines)
    except OSError:
        return 0


def release_compiled(most: int = MAX_MAPS) -> bool:
    """Forget all compiled programs once the process holds more than ``most`` memory maps; whether it did."""
    if num_maps() <= most:
        return False
    import jax

    jax.clear_caches()
    return True
