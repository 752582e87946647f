"""A message while a first call compiles: a line on stderr, a bar in a notebook."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import jax

from ntk_core.markup import is_kernel, notebook_place, paragraph

PATIENCE_S = 3.0
_LOOK_S = 0.1
_compiling = threading.Event()  # between the end of lowering and the end of XLA's work


@contextmanager
def compiling(what: str) -> Iterator[None]:
    """Name what is being compiled, where this block takes longer than three seconds and XLA is at work.

    Args:
        what: such as "the tangent kernel of 14 layers".
    """
    _listen()
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(what, done), daemon=True)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()


def name_of(net: object) -> str:
    """A function or network in a sentence."""
    return str(getattr(net, "__name__", type(net).__name__))


@cache
def _listen() -> None:
    def note(event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith("jaxpr_to_mlir_module_duration"):
            _compiling.set()
        elif event.endswith("backend_compile_duration"):
            _compiling.clear()

    jax.monitoring.register_event_duration_secs_listener(note)


def _watch(what: str, done: threading.Event) -> None:
    _compiling.clear()
    if done.wait(PATIENCE_S):
        return
    start = time.monotonic() - PATIENCE_S
    while not _compiling.is_set():
        if done.wait(_LOOK_S):
            return
    message = f"Compiling {what}, for {time.monotonic() - start:.0f} s so far; further calls of these shapes reuse it."
    show = _shown_in_a_notebook()
    if show is None:
        print(message, file=sys.stderr, flush=True)
        return
    show(f'<progress aria-label="compiling" style="width:20em"></progress>{paragraph(message)}')
    done.wait()
    show("")


def _shown_in_a_notebook() -> Callable[[str], None] | None:
    """As ``notebook_place``; not in marimo, whose outputs belong to the thread of the cell."""
    return notebook_place() if is_kernel() else None
