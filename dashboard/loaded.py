"""What has been loaded once and stays: libraries, tables, results of the gallery. Free of Streamlit."""

from __future__ import annotations

import gc

_SETTLED: set[str] = set()


def settle(page: str) -> None:
    """Spare the garbage collector all that is there once a page has been drawn for the first time.

    Streamlit collects all garbage after every run of a page, which holds every session up for as long as it takes to
    look at each object of each library. What is alive when a page has been drawn first is mostly there to stay.
    """
    if page in _SETTLED:
        return
    _SETTLED.add(page)
    gc.collect()
    gc.freeze()
