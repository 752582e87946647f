"""What stays is spared the garbage collector, once a page."""

from __future__ import annotations

import gc

from dashboard import loaded
from tests.dashboard.open_pages import open_page


def test_a_page_settles_what_is_loaded_when_it_is_drawn_first_and_never_again(monkeypatch):
    monkeypatch.setattr(loaded, "_SETTLED", set())
    gc.unfreeze()
    open_page("glossary")
    first = gc.get_freeze_count()
    assert first > 100_000
    open_page("glossary")
    assert gc.get_freeze_count() <= first
    gc.unfreeze()
