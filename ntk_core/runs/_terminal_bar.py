"""A bar on stderr that follows a run."""

import sys
from collections.abc import Generator, Iterator

from ntk_core.markup import printable
from ntk_core.numbers import percent
from ntk_core.runs.events import Event, PointFinished, PointProgress


def with_terminal_bar(events: Iterator[Event]) -> Generator[Event, None, None]:
    """The same events, above a bar where stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from events
        return
    try:
        for event in events:
            if isinstance(event, PointProgress):
                terminal_bar(event.fraction, event.remaining_s, event.message)
            elif isinstance(event, PointFinished):
                terminal_bar(event.fraction, event.remaining_s, event.key)
            yield event
    finally:
        clear_bar()


def terminal_bar(fraction: float, remaining_s: float | None, message: str) -> None:
    """Draw the bar in place of the last one."""
    bar = "█" * round(24 * fraction)
    left = "" if remaining_s is None else f", about {remaining_s:.0f} s left"
    text = printable(f"{bar:░<24} {percent(round(fraction, 2)):>4}{left}  {message}")[:150]
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def clear_bar() -> None:
    """Remove the bar."""
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)
