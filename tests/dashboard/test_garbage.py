"""What stays is spared the garbage collector, once a page."""

from __future__ import annotations

import gc

import pytest
from streamlit import config

from dashboard.server import garbage
from tests.dashboard.open_pages import open_page


def test_a_page_settles_what_is_loaded_when_it_is_drawn_first_and_never_again(monkeypatch):
    monkeypatch.setattr(garbage, "_SETTLED", set())
    gc.unfreeze()
    open_page("glossary")
    first = gc.get_freeze_count()
    assert first > 100_000
    open_page("glossary")
    assert gc.get_freeze_count() <= first
    gc.unfreeze()


def test_garbage_is_collected_now_and_then_and_not_after_every_run(monkeypatch):
    assert config.get_option("runner.postScriptGC") is False  # Streamlit's own, after every run
    counted: list[float] = []
    now = 0.0
    monkeypatch.setattr(gc, "collect", lambda: counted.append(now))
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(garbage, "_SETTLED", {"hessian"})
    monkeypatch.setattr(garbage, "_collected_at", 0.0)
    monkeypatch.setattr(garbage.time, "monotonic", lambda: now)
    for second in range(100, 131):
        now = float(second)
        garbage.collect_garbage("hessian")
    assert counted == pytest.approx([100, 110, 120, 130])
    garbage.collect_garbage("dag")  # what a page has loaded is looked at when it is drawn first
    assert len(counted) == 5
