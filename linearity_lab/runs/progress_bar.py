"""Progress bars of runs in notebooks and terminals."""

import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing

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


def with_bar(events: Generator[Event, None, None], spec: Spec) -> Generator[Event, None, None]:
    """Pass events through, with a progress bar in notebooks."""
    show = notebook_place()
    return events if show is None else _followed(events, spec, show)


def _followed(
    events: Generator[Event, None, None], spec: Spec, show: Callable[[str], None]
) -> Generator[Event, None, None]:
    looked, finished, words = 0.0, 0, "Not finished."
    with closing(events):
        try:
            for event in events:
                if isinstance(event, PointFinished):
                    finished += 1
                if isinstance(event, Ended):
                    words = f"{ENDS[event.status]}: {counted_points(spec, finished)}. {event.reason}".rstrip()
                elif isinstance(event, Estimated):
                    show(_bar(0.0, event.seconds, "starting"))
                elif (
                    isinstance(event, PointProgress | PointFinished)
                    and time.monotonic() - looked > _BETWEEN_S
                ):
                    looked = time.monotonic()
                    words = (
                        event.message
                        if isinstance(event, PointProgress)
                        else f"{event.key} finished"
                    )
                    show(_bar(event.fraction, event.remaining_s, words))
                yield event
        finally:
            show(paragraph(words))


def _bar(fraction: float, remaining_s: float | None, words: str) -> str:
    left = "" if remaining_s is None else f", about {duration(remaining_s)} left"
    share = min(1.0, max(0.0, fraction))
    bar = f'<progress value="{share:.3f}" max="1" aria-label="share done" style="width:20em"></progress>'
    return bar + paragraph(f"{percent(share)}{left}: {words}")


def with_terminal_bar(events: Iterable[Event], prefix: str = "") -> Generator[Event, None, None]:
    """Pass events through, with a progress bar if stderr is a terminal."""
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
    """Redraw the bar."""
    bar = "█" * round(24 * event.fraction)
    left = "" if event.remaining_s is None else f", about {event.remaining_s:.0f} s left"
    words = prefix + (event.message if isinstance(event, PointProgress) else event.key)
    text = printable(f"{bar:░<24} {percent(round(event.fraction, 2)):>4}{left}  {words}")[:150]
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
