"""A bar on stderr that follows a run."""

import sys
from collections.abc import Generator, Iterable

from ntk_core.markup import printable
from ntk_core.numbers import percent
from ntk_core.runs.events import Event, PointFinished, PointProgress


def with_terminal_bar(events: Iterable[Event], prefix: str = "") -> Generator[Event, None, None]:
    """The same events, above a bar where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from events
        return
    try:
        for event in events:
            if isinstance(event, PointProgress | PointFinished):
                _draw(event, prefix)
            yield event
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _draw(event: PointProgress | PointFinished, prefix: str) -> None:
    """Draw the bar in place of the last one."""
    bar = "█" * round(24 * event.fraction)
    left = "" if event.remaining_s is None else f", about {event.remaining_s:.0f} s left"
    words = prefix + (event.message if isinstance(event, PointProgress) else event.key)
    text = printable(f"{bar:░<24} {percent(round(event.fraction, 2)):>4}{left}  {words}")[:150]
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
