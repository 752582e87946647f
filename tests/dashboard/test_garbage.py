"""Garbage collection: lasting objects are frozen once per page."""

import gc
import platform
import subprocess
import sys

import pytest
from streamlit import config

from linearity_lab.server import garbage
from tests.dashboard.open_pages import open_page


def test_page_freezes_loaded_objects_once(monkeypatch):
    monkeypatch.setattr(garbage, "_SETTLED", set())
    gc.unfreeze()
    open_page("glossary")
    first = gc.get_freeze_count()
    assert first > 100_000
    open_page("glossary")
    assert gc.get_freeze_count() <= first
    gc.unfreeze()


def test_old_garbage_waits_a_minute_young_garbage_does_not(monkeypatch):
    assert config.get_option("runner.postScriptGC") is False  # Streamlit's collection after every run
    counted: list[tuple[float, int]] = []
    now = 0.0
    monkeypatch.setattr(gc, "collect", lambda generation=2: counted.append((now, generation)))
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(garbage, "_SETTLED", {"hessian"})
    monkeypatch.setattr(garbage, "_collected_at", 0.0)
    monkeypatch.setattr(garbage.time, "monotonic", lambda: now)
    for second in range(100, 191, 10):
        now = float(second)
        garbage.collect_garbage("hessian")
    assert [at for at, generation in counted if generation == 2] == pytest.approx([100, 160])
    assert len(counted) == 10
    garbage.collect_garbage("dag")  # the first drawing of a page collects what it loaded
    assert counted[10:] == [(190, 2)]


def test_what_uploads_took_goes_back_to_the_system():
    program = """
import psutil, sys
from ntk_core.environment import keep_memory_returnable, return_freed_memory
def mib(): return psutil.Process().memory_info().rss / 2**20
if sys.argv[1] == "kept":
    keep_memory_returnable()
bytearray(24 * 2**20)  # glibc: from now on blocks of this size come from the heap
rest, held, stays = mib(), [], []
for _ in range(32):
    held.append(b"x" * 2**21)
    stays.append(b"x" * 4000)
held.clear()
if sys.argv[1] == "returned":
    return_freed_memory()
print(mib() - rest)
"""
    grown = {}
    for way in ("kept", "returned", "neither"):
        run = subprocess.run([sys.executable, "-c", program, way], capture_output=True, text=True, check=True)
        grown[way] = float(run.stdout)
    assert max(grown["kept"], grown["returned"]) < 4
    assert grown["neither"] > 10 or platform.libc_ver()[0] != "glibc"
