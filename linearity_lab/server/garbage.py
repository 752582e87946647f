"""What has been loaded once and stays: libraries, tables, results of the gallery. Free of Streamlit."""

import gc
import time

from ntk_core.environment import return_freed_memory

COLLECT_EVERY_S = 10.0
_SETTLED: set[str] = set()
_collected_at = 0.0


def collect_garbage(page: str) -> None:
    """Collect garbage after a run of a page, at most every ten seconds.

    Streamlit would do it after each run of each part of each page, which holds every session up for as long as it takes
    to look at every object: under thirty sessions more than half of all the time of the server. That is turned off
    (``runner.postScriptGC``), and Python collects what has become much by itself besides. What is alive when a page
    has been drawn for the first time, libraries, tables and results of the gallery, is mostly there to stay and is
    spared from then on.
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
