"""Display of runs in notebooks (settings, cost, bar, figure, numbers) and the terminal bar."""

import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from importlib.metadata import entry_points

from linearity_lab.runs import ResultValue, Spec, estimate, run_summary
from linearity_lab.runs.events import Ended, Estimated, Event, PointFinished, PointProgress
from linearity_lab.settings.grammar import settings_html
from ntk_core.errors import InvalidInput
from ntk_core.machine import how_to_install
from ntk_core.markup import Part, folded, lines, notebook_place, paragraph, printable
from ntk_core.numbers import duration, percent, size

FIGURES = "linearity_lab.figures"  # entry points: result → (Plotly figure, sentences below it)
HOW_TO_DRAW = (
    f"Its figure is drawn here where the dashboard is installed too: {how_to_install('app')}."
)
_ENDS = {
    "completed": "Completed",
    "cancelled": "Stopped",
    "stopped": "Stopped by the server",
    "failed": "Failed",
}
_BETWEEN_S = 0.2  # between two updates of the bar


def spec_html(spec: Spec) -> str:
    """Settings that differ from their defaults, and the estimated cost here."""
    try:
        cost = estimate_words(estimate(spec))
    except InvalidInput as error:  # data missing here
        cost = f"No estimate: {error}."
    return paragraph(cost, title=type(spec).__name__) + settings_html(spec)


def estimate_words(found: Estimated) -> str:
    """``6 points, about 12 s on this machine, at most 0.4 GiB at a time.``"""
    points = f"{found.num_points} point{'s' * (found.num_points != 1)}"
    time_s = f"about {duration(found.seconds)}" if found.seconds >= 1 else "less than a second"
    return f"{points}, {time_s} on this machine, about {size(found.peak_bytes)} of memory for the largest."


def result_parts(result: ResultValue, with_figure: bool) -> list[Part]:
    """Return outcome, figure with its sentences, numbers and settings, from top to bottom."""
    parts: list[Part] = [_outcome(result)]
    found = figure_of(result) if with_figure and result.points else None
    if found is not None:
        parts += [found[0], paragraph(found[1])]
    elif with_figure:
        parts.append(paragraph(HOW_TO_DRAW))
    settings = folded("Settings that are not at their defaults", settings_html(result.spec))
    return [*parts, lines(run_summary(result.spec, result.points)), settings]


def ended_parts(event: Ended, with_figure: bool) -> list[Part]:
    """Return the reason of an early end, and the result."""
    why: list[Part] = [paragraph(event.reason, title=_ENDS[event.status])] if event.reason else []
    return why + (result_parts(event.result, with_figure) if event.result is not None else [])


def figure_of(result: ResultValue) -> tuple[Part, str] | None:
    """Return the dashboard's figure of a result and its sentences; None without the dashboard or a view."""
    for entry in entry_points(group=FIGURES):
        try:
            draw = entry.load()
        except ImportError:  # its plotting packages are missing
            continue
        found: tuple[Part, str] | None = draw(result)
        return found
    return None


def _outcome(result: ResultValue) -> str:
    spec, origin = result.spec, result.provenance
    kind, _, name = origin.device.partition(": ")
    ended = (
        f"{_ENDS[result.status]}: {_counted(spec, len(result.points))} in {duration(result.runtime_s)} "
        f"on {kind if name == kind else origin.device} in {origin.dtype}, {origin.started_at}."
    )
    if result.num_imported:
        ended += f" {result.imported_words}."
    return paragraph(ended, title=type(result).__name__)


def _counted(spec: Spec, count: int) -> str:
    asked = len(spec.point_keys())
    return f"{count} of {asked} {spec.point_words[asked != 1]}"


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
                    words = f"{_ENDS[event.status]}: {_counted(spec, finished)}. {event.reason}".rstrip()
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
