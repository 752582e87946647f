"""Garbage collection between runs of pages. Free of Streamlit."""

import gc
import time

from ntk_core.environment import return_freed_memory

COLLECT_EVERY_S = 10.0
_SETTLED: set[str] = set()
_collected_at = 0.0


def collect_garbage(page: str) -> None:
    """Collect garbage after a run of a page, at most every ten seconds.

    Streamlit's own collection (``runner.postScriptGC``, turned off) takes more than half of the server's time under
    thirty sessions. Objects that live after a page's first run are excluded from later collections.
    """
    global _collected_at
    is_first = page not in _SETTLED
    if not is_first and time.monotonic() - _collected_at < COLLECT_EVERY_S:
        return
    _SETTLED.add(page)
    _collected_at = time.monotonic()
    gc.collect()
    if is_first:
        gc.freeze()
    return_freed_memory()
