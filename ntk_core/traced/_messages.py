"""Message while a first call compiles: a line on stderr, a bar in a notebook."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax

from ntk_core.markup import is_kernel, notebook_place, paragraph

PATIENCE_S = 3.0


class _Block:
    """A computation, its start, and the timer that reports it."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.start = time.monotonic()
        self.timer: threading.Timer | None = None
        self.show: Callable[[str], None] | None = None
        self.named = False

    def begin(self) -> None:
        """Start the timer when XLA starts compiling."""
        if not self.named:
            self.timer = threading.Timer(
                max(0.0, self.start + PATIENCE_S - time.monotonic()), self.name
            )
            self.timer.daemon = True
            self.timer.start()

    def end(self) -> None:
        """Stop the timer when XLA is done."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer.join()
            self.timer = None

    def name(self) -> None:
        """Report the compilation once."""
        self.named = True
        spent = time.monotonic() - self.start
        message = (
            f"Compiling {self.what}, for {spent:.0f} s so far; further calls of these shapes "
            "reuse it."
        )
        # Not in marimo, whose outputs belong to the thread of the cell.
        self.show = notebook_place() if is_kernel() else None
        if self.show is None:
            print(message, file=sys.stderr, flush=True)
        else:
            self.show(
                '<progress aria-label="compiling" '
                f'style="width:20em"></progress>{paragraph(message)}'
            )


class _Here(threading.local):
    block: _Block | None = None


_here = _Here()


@contextmanager
def compiling(what: str) -> Iterator[None]:
    """Report a compilation that takes longer than three seconds in this block.

    Args:
        what: such as "the tangent kernel of my_model".
    """
    _listen()
    outer = _here.block
    block = _Block(what)
    _here.block = outer or block
    try:
        yield
    finally:
        _here.block = outer
        block.end()
        if block.show is not None:
            block.show("")


def name_of(net: object) -> str:
    """Return the name of a function or network."""
    while not hasattr(net, "__name__"):
        if isinstance(net, functools.partial):
            net = net.func
        elif hasattr(net, "function"):  # wrapped by validation
            net = net.function
        else:
            break
    return str(getattr(net, "__name__", type(net).__name__))


@functools.cache
def _listen() -> None:
    """Follow JAX in this thread: XLA compiles after lowering ends."""

    def note(event: str, duration_secs: float, **_: str | int) -> None:
        block = _here.block
        if block is not None and event.endswith("jaxpr_to_mlir_module_duration"):
            block.begin()
        elif block is not None and event.endswith("backend_compile_duration"):
            block.end()

    jax.monitoring.register_event_duration_secs_listener(note)
