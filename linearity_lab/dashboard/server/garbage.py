"""Garbage collection between runs of pages. Free of Streamlit."""

import gc
import time

from linearity_lab.memory import return_freed_memory

# Python's own thresholds start a full collection, which stops all threads for .2 s, for
# every few figures.
_THRESHOLDS = (50_000, 10, 150)
_FULL_EVERY_S = 60.0
_SETTLED: set[str] = set()
_collected_at = 0.0


def collect_garbage(page: str) -> None:
    """Collect after a run of a page: young garbage.

    Everything after its first run, and once per minute.
    """
    global _collected_at
    is_first = page not in _SETTLED
    if not is_first and time.monotonic() - _collected_at < _FULL_EVERY_S:
        gc.collect(1)
        return
    _SETTLED.add(page)
    _collected_at = time.monotonic()
    gc.collect()
    return_freed_memory()


def collect_left() -> None:
    """Collect what closed sessions have left, and return the memory to the system."""
    gc.collect()
    return_freed_memory()


def settle() -> None:
    """Exclude what the server has loaded from later collections; call it before the first session.

    A later ``gc.freeze`` would keep the objects of live sessions, whose reference
    cycles then stay for ever.
    """
    gc.set_threshold(*_THRESHOLDS)
    gc.collect()
    gc.freeze()
