"""Progress bars of runs in notebooks and terminals."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from linearity_lab.runs._spec import Spec
from linearity_lab.runs.events import (
    ENDS,
    Ended,
    Estimated,
    Event,
    PointFinished,
    PointProgress,
    counted_points,
)
from ntk_core.markup import notebook_place, paragraph, printable
from ntk_core.numbers import duration, percent

_BETWEEN_S = 0.2  # between two updates of the bar


Listener = Callable[[Event], None]


@contextmanager
def notebook_bar(spec: Spec) -> Iterator[Listener]:
    """Context with a function that draws each event as a progress bar in notebooks.

    Elsewhere it draws nothing.
    """
    show = notebook_place()
    if show is None:
        yield lambda event: None
        return
    bar = _NotebookBar(spec, show)
    try:
        yield bar.hear
    finally:
        show(paragraph(bar.words))


class _NotebookBar:
    """The bar of one run; ``words`` remain below it at the end."""

    def __init__(self, spec: Spec, show: Callable[[str], None]):
        self.words = "Not finished."
        self._spec = spec
        self._show = show
        self._drawn_at = 0.0
        self._finished = 0

    def hear(self, event: Event) -> None:
        """Draw an event; those of progress a few times a second."""
        if isinstance(event, PointFinished):
            self._finished += 1
        if isinstance(event, Ended):
            counted = counted_points(self._spec, self._finished)
            self.words = f"{ENDS[event.status]}: {counted}. {event.reason}".rstrip()
        elif isinstance(event, Estimated):
            self._show(_bar(0.0, event.seconds, "starting"))
        elif isinstance(event, PointProgress | PointFinished) and self._is_due():
            self._drawn_at = time.monotonic()
            self.words = f"{event.key} finished"
            if isinstance(event, PointProgress):
                self.words = event.message
            self._show(_bar(event.fraction, event.remaining_s, self.words))

    def _is_due(self) -> bool:
        return time.monotonic() - self._drawn_at > _BETWEEN_S


def _bar(fraction: float, remaining_s: float | None, words: str) -> str:
    left = "" if remaining_s is None else f", about {duration(remaining_s)} left"
    share = min(1.0, max(0.0, fraction))
    bar = (
        f'<progress value="{share:.3f}" max="1" aria-label="share done" '
        'style="width:20em"></progress>'
    )
    return bar + paragraph(f"{percent(share)}{left}: {words}")


@contextmanager
def terminal_bar(prefix: str = "") -> Iterator[Listener]:
    """Context with a function that draws each event as a progress bar if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda event: None
        return
    try:
        yield partial(_draw, prefix=prefix)
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _draw(event: Event, prefix: str) -> None:
    """Redraw the bar."""
    if not isinstance(event, PointProgress | PointFinished):
        return
    bar = "█" * round(24 * event.fraction)
    left = "" if event.remaining_s is None else f", about {event.remaining_s:.0f} s left"
    words = prefix + (event.message if isinstance(event, PointProgress) else event.key)
    text = printable(f"{bar:░<24} {percent(round(event.fraction, 2)):>4}{left}  {words}")[:150]
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
