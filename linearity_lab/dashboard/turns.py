"""Pages with previews, and pictures of running jobs, are drawn one after the other.

A class that picks at once, or follows its jobs, would otherwise draw thirty pages at once: Python
computes them in turns of milliseconds, so that all of them, and every page that someone opens
meanwhile, would be ready only at the end.
"""

import enum
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 3.0  # after which a page continues beside one that takes long; our choice


class Kind(enum.IntEnum):
    """Kinds of drawings, in the order of their turns."""

    PAGE = 0
    FIRST_MARK = 1
    LATER_PICTURE = 2


class Turns:
    """Places in a row; those of one kind are served in the order of their arrival."""

    def __init__(self, patience_s: float = PATIENCE_S):
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._count = itertools.count()
        self._waiting: list[tuple[Kind, int]] = []
        self._num_drawing = 0

    @contextmanager
    def turn(self, kind: Kind) -> Iterator[None]:
        """Wait for a turn, and give it back at the end of the block."""
        with self._changed:
            place = kind, next(self._count)
            self._waiting.append(place)
            self._changed.wait_for(
                lambda: not self._num_drawing and place == min(self._waiting), self._patience_s
            )
            self._waiting.remove(place)
            self._num_drawing += 1
        try:
            yield
        finally:
            with self._changed:
                self._num_drawing -= 1
                self._changed.notify_all()


drawing = Turns()
